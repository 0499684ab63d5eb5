# SPDX-License-Identifier: MIT
"""Write tests/data/checkpoints.tar.xz: checkpoints of each kind, and broken ones, as PyTorch saves
them.  Needs PyTorch and PyYAML; the tests need only what this wrote.

    make_checkpoints.py OUT.tar.xz
"""
import collections
import io
import lzma
import os
import pathlib
import sys
import tarfile
import tempfile

import torch
import torch.distributed
import yaml
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

import checkpoint_kinds as kinds


class Command:
    """Runs a command where it is unpickled by a reader that allows that."""

    def __reduce__(self):
        return os.system, ("touch executed-by-a-checkpoint",)


def state(arrays):
    """A state_dict as modules give it: an ordered dictionary of parameters, with versions."""
    out = collections.OrderedDict((n, torch.from_numpy(a.copy())) for n, a in arrays.items())
    out._metadata = collections.OrderedDict({"": {"version": 1}, "decoder": {"version": 1}})
    return out


def whole(model):
    """What a training run saves besides."""
    return {"model": model, "epoch": 3, "best": 0.25, "window": slice(0, 3),
            "optimizer": {"state": {0: {"step": torch.tensor(7.0)}},
                          "param_groups": [{"lr": 1e-4, "betas": (0.9, 0.95), "params": [0]}]}}


def views(model):
    """The same numbers in other layouts: transposed, in the middle of a storage, a parameter."""
    name = "decoder.decoder.blocks.0.ga.proj_value.weight"
    model[name] = model[name].transpose(1, 2).contiguous().transpose(1, 2)
    name = "decoder.decoder.blocks.0.norm_ffn.affine_weight"
    model[name] = torch.cat([torch.zeros(5), model[name].flatten()])[5:].view(model[name].shape)
    name = "decoder.mix_cm.0.weight"
    model[name] = torch.nn.Parameter(model[name])
    name = "decoder.mix_cm.0.bias"
    model[name] = model[name].double()
    return model


def broken():
    value, long = "decoder.decoder.blocks.0.ga.proj_value.weight", "zero-order"
    arrays = kinds.tensors(long)[1]
    yield "missing", whole(state({n: a for n, a in arrays.items() if n != value}))
    yield "extra", whole(state(dict(arrays, **{"decoder.decoder.extra.weight": arrays[value]})))
    yield "shape", whole(state(dict(arrays, **{value: arrays[value][:, :, :-1]})))
    yield "integers", whole(state(dict(arrays, **{value: arrays[value].astype(int)})))
    yield "command", {"model": {}, "epoch": Command()}
    yield "command-inside", {"model": {value: Command()}}
    yield "module", {"module": {"decoder.mix_cm.0.bias": torch.zeros(8)}, "global_steps": 3}
    yield "no-tensor", {"model": {"decoder.mix_cm.0.bias": [1.0, 2.0]}}
    with tempfile.NamedTemporaryFile() as store:
        torch.distributed.init_process_group("gloo", f"file://{store.name}", rank=0, world_size=1)
        mesh = init_device_mesh("cpu", (1,))
        yield "shard", {"model": {value: DTensor.from_local(torch.zeros(2, 2), mesh)}}
        torch.distributed.destroy_process_group()


def main():
    files = {}

    def save(name, what, **options):
        data = io.BytesIO()
        torch.save(what, data, **options)
        files[name + ".pt"] = data.getvalue()

    for kind in kinds.KINDS:
        model = state(kinds.tensors(kind)[1])
        save(kind, whole(views(model) if kind == "published" else model))
        files[kind + ".yaml"] = yaml.safe_dump(kinds.config(kind)).encode()
    for name, dtype in (("half", torch.float16), ("bfloat16", torch.bfloat16)):
        model = state(kinds.tensors("published")[1])
        save(name, whole({n: t.to(dtype) if t.is_floating_point() else t
                          for n, t in model.items()}))
    more = state(kinds.tensors("zero-order")[1])
    more.update({n.replace("omol25", "spice"): t for n, t in more.items() if "omol25" in n})
    save("two-heads", whole(more))
    for name, what in broken():
        save(name, what)
    save("old", {"model": {"decoder.mix_cm.0.bias": torch.zeros(8)}},
         _use_new_zipfile_serialization=False)
    with lzma.open(sys.argv[1], "wb", preset=9 | lzma.PRESET_EXTREME) as packed, \
            tarfile.open(fileobj=packed, mode="w") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    print(torch.__version__, len(files), "files", sum(map(len, files.values())), "bytes, packed",
          pathlib.Path(sys.argv[1]).stat().st_size)


if __name__ == "__main__":
    main()
