# SPDX-License-Identifier: MIT
"""`tessera model convert` on checkpoints that PyTorch itself wrote (tests/make_checkpoints.py), one
of each kind that is computed: the file holds exactly their numbers and `tessera model show` accepts
it.  Broken ones are refused by name, and what a checkpoint asks to be executed is not."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np

import checkpoint_kinds as kinds

SOURCE = pathlib.Path(os.environ.get("TS_SOURCE_DIR", "."))
PROGRAM = str((pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")) / "tessera").resolve())
VALUE = "decoder.decoder.blocks.0.ga.proj_value.weight"


def convert(folder, checkpoint, kind, *options):
    """Run in an empty folder, in which nothing but the result may appear."""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    path = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [PROGRAM, "model", "convert", folder / checkpoint, folder / f"{kind}.yaml", "-o",
         place / "out.safetensors", *options], cwd=place, env=dict(os.environ, PATH=path),
        capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    made = [p.name for p in place.iterdir()]
    assert made == (["out.safetensors"] if done.returncode == 0 else []), (checkpoint, made)
    return done, place / "out.safetensors"


def read(path):
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    description = json.loads(header.pop("__metadata__")["tessera"])
    arrays = {}
    for name, t in header.items():
        first, last = t["data_offsets"]
        kind = {"F32": "<f4", "F64": "<f8"}[t["dtype"]]
        arrays[name] = np.frombuffer(raw[start + first:start + last], kind).reshape(t["shape"])
    return description, arrays


def accepted(folder, checkpoint, kind, *options, head="omol25"):
    done, out = convert(folder, checkpoint, kind, *options)
    assert done.returncode == 0, done.stderr
    description, arrays = read(out)
    assert description == dict(kinds.cc.describe(kinds.config(kind), head))
    expected = kinds.tensors(kind, head)[0]
    if description["merge"] == "cluster":
        expected = {n: a for n, a in expected.items() if n not in kinds.cc.NORM_FINAL}
    assert set(arrays) == set(expected)
    for name, array in arrays.items():
        assert np.array_equal(array, expected[name]), name
    shown = subprocess.run([PROGRAM, "model", "show", out], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    return done, description


def refused(folder, checkpoint, expected, kind="zero-order"):
    done, _ = convert(folder, checkpoint, kind)
    assert done.returncode == 1, (checkpoint, done.stdout)
    assert done.stderr.startswith("tessera model convert: "), done.stderr
    assert expected in done.stderr, f"{done.stderr!r} lacks {expected!r}"


def test_kinds(folder):
    for kind in kinds.KINDS:
        _, description = accepted(folder, f"{kind}.pt", kind)
        print(f"{kind}: lmax {description['lmax']}, {len(description['stages'])} stage(s)")
    _, description = accepted(folder, "bell.pt", "bell")
    assert description["stages"][1]["envelope"] == "bell"
    assert description["stages"][1]["max_neighbors"] == 80
    _, description = accepted(folder, "degree-3.pt", "degree-3")
    assert description["lmax"] == 3 and description["stages"][0]["orders"] == ["first"]


def test_half(folder):
    for name in ("half", "bfloat16"):
        done, _ = accepted(folder, f"{name}.pt", "published")
        assert "have 16 bits a number" in done.stdout, done.stdout


def test_heads(folder):
    refused(folder, "two-heads.pt", "choose one with --head; the checkpoint has: omol25, spice")
    done, out = convert(folder, "two-heads.pt", "zero-order", "--head", "spice")
    assert done.returncode == 0 and read(out)[0]["head"] == "spice"


def test_broken(folder):
    refused(folder, "missing.pt", f"tensor {VALUE} is missing; expected shape [3, 8, 8]")
    refused(folder, "extra.pt", "tensor decoder.decoder.extra.weight is not known")
    refused(folder, "shape.pt", f"tensor {VALUE} has shape [3, 8, 7]; expected [3, 8, 8]")
    refused(folder, "integers.pt", f"tensor {VALUE} has type int64; expected float")
    refused(folder, "zero-order.pt", "is missing", kind="published")
    refused(folder, "published.pt", "ga.proj_zero.weight is missing", kind="zero-order")
    refused(folder, "degree-3.pt", "so2_tp.path_norm: expected one over", kind="degree-1")
    refused(folder, "module.pt", "under 'model'; found module, global_steps")
    refused(folder, "no-tensor.pt", "model['decoder.mix_cm.0.bias'] is no tensor")
    refused(folder, "old.pt", "is not a file of torch.save in its zip format")
    refused(folder, "absent.pt", "absent.pt")
    (folder / "cut.pt").write_bytes((folder / "zero-order.pt").read_bytes()[:-5000])
    refused(folder, "cut.pt", "cut.pt is not a file of torch.save")
    with zipfile.ZipFile(folder / "other.pt", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(folder, "other.pt", "no data.pkl")
    with zipfile.ZipFile(folder / "damaged.pt", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}q\x00X\xff")
    refused(folder, "damaged.pt", "damaged.pt is damaged")


def test_shards(folder):
    refused(folder, "shard.pt", "such as a rank's part of a sharded one; expected whole tensors")
    (folder / "shards").mkdir()
    (folder / "shards" / ".metadata").write_bytes(b"")
    refused(folder, "shards", "is a folder, such as a sharded checkpoint is")


def test_nothing_is_executed(folder):
    """The command would leave a file behind, which convert() would find."""
    refused(folder, "command.pt", "holds an object of posix.system")
    refused(folder, "command-inside.pt", "nothing of it was executed")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with tarfile.open(SOURCE / "tests" / "data" / "checkpoints.tar.xz") as archive:
            for entry in archive:
                with open(folder / entry.name, "wb") as out:
                    shutil.copyfileobj(archive.extractfile(entry), out)
        test_kinds(folder)
        test_half(folder)
        test_heads(folder)
        test_broken(folder)
        test_shards(folder)
        test_nothing_is_executed(folder)
    print("checkpoints: each kind, 16 bits, several heads, broken, sharded, with commands")


main()
