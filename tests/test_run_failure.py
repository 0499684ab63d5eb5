# SPDX-License-Identifier: MIT
"""Runs that cannot go on say why and leave in order.  Status 2: atoms that are lost, overlap, are
too hot or not finite, with step, atoms and positions, and no checkpoint of that state.  Status 1:
inputs that are wrong, and nothing is written.  Status 3: no place to write; with room again the
run goes on.  Needs h5py (PyPI)."""
import json
import re
import resource
import struct
import subprocess
import sys

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)

POINT = r"\(-?[\d.]+, -?[\d.]+, -?[\d.]+\)"
JOB = {"structure": "cluster.xyz", "model": "cluster.safetensors", "steps": 12, "timestep_fs": 0.1,
       "velocities": {"temperature_K": 100}, "execution": {"radial_tolerance": 1e-6, "workers": 1},
       "output": {"log_every": 1, "trajectory": {"every": 1}, "checkpoint": {"every": 1}}}
READ = ("velocities.source=read",)


def words(directory, *sets):
    return [word for key in (f"output.directory={directory}", *sets) for word in ("--set", key)]


def fails(folder, name, pattern, *sets, step=0):
    """Status 2 with that message at that step; the same again from the last checkpoint."""
    where = folder / name
    done = program.run(folder / "job.json", *words(name, *sets), status=2)
    line = done.stderr.splitlines()[-1]
    assert re.search(f"^tessera: error: step {step}: {pattern}", line), f"{name}: {line}"
    summary = json.loads((where / "summary.json").read_text())
    last = summary.get("last", {"step": -1})["step"]
    assert summary["status"] == "failed" and last == step - 1, summary
    saved = where / "checkpoint.h5"
    if step < 2:
        assert not saved.exists(), f"{name}: a checkpoint of step {step}"
    else:
        assert program.checkpoint(saved)["step"][0] == step - 1
        assert f"the newest checkpoint is of step {step - 1}" in done.stderr, done.stderr
        again = program.run(folder / "job.json", "--resume", *words(name, *sets), status=2)
        assert again.stderr.splitlines()[-1] == line, f"{name}: {line}, then {again.stderr}"
    print(f"{name}: {line[16:]}")


def overflowing(where, model):
    """A copy of a model whose head has the largest weights that a float can be."""
    data = bytearray(model.read_bytes())
    size = int.from_bytes(data[:8], "little")
    tensor = json.loads(data[8:8 + size])["head.energy_heads.omol25.mlp.0.weight"]
    begin, end = (8 + size + offset for offset in tensor["data_offsets"])
    data[begin:end] = struct.pack("<f", 3.4e38) * ((end - begin) // 4)
    where.write_bytes(data)


def simulation_fails(folder, cluster):
    still = [[0.0, 0.0, 0.0] for _ in cluster["symbols"]]

    def moving(name, speed, **atoms):
        velocities = [list(v) for v in still]
        velocities[5][0] = speed
        program.write_xyz(folder / f"{name}.xyz", dict(cluster, **atoms), velocities=velocities)

    overlap = [list(x) for x in cluster["positions"]]
    overlap[3] = [overlap[7][0] + cluster["cell"][0][0], *overlap[7][1:]]  # of an image
    moving("fast", 5.0)
    moving("overlap", 0.0, positions=overlap)
    pair = {"cell": cluster["cell"], "pbc": [False] * 3, "symbols": ["O", "O"],
            "positions": [[100.0, 0, 0], [100.75, 0, 0]]}
    program.write_xyz(folder / "pair.xyz", pair, velocities=[[0.05, 0, 0], [-0.05, 0, 0]])
    overflowing(folder / "infinite.safetensors", folder / "cluster.safetensors")

    fails(folder, "long timestep", rf"atom \d+ is lost: it moved [\d.]+ Å from {POINT} to {POINT}",
          "timestep_fs=20", step=1)
    fails(folder, "fast", rf"atom 6 is lost: it moved 5 Å from {POINT} to {POINT} .*velocity \(5, ",
          "timestep_fs=1", "structure=fast.xyz", *READ, step=1)
    fails(folder, "overlap", rf"atoms 4 at {POINT} and 8 at {POINT} overlap: 0 Å apart",
          "structure=overlap.xyz")
    fails(folder, "collision", rf"atoms 1 at {POINT} and 2 at {POINT} overlap: 0\.0\d* Å apart",
          "structure=pair.xyz", "timestep_fs=1", *READ, step=7)
    moving("hot", 60.0)
    fails(folder, "hot", r"the run has blown up: temperature [\d.e+]+ K .*on atom \d+ at ",
          "timestep_fs=0.01", "structure=hot.xyz", *READ)
    fails(folder, "not finite",
          r"atom \d+ has a value that is not finite: position \(.*no force is finite",
          "model=infinite.safetensors")
    # nothing was made of a structure that failed at once: the folder may be used again
    program.run(folder / "job.json", *words("overlap"))


def inputs_are_wrong(folder):
    job = folder / "job.json"
    good = (folder / "cluster.xyz").read_text()
    (folder / "element.xyz").write_text(good.replace("\nCl ", "\nXx ", 1))
    (folder / "nan.xyz").write_text(re.sub(r"\nCl \S+", "\nCl nan", good, count=1))
    for sets, says in ((["structure=none.xyz"], ["none.xyz", "No such file"]),
                       (["model=none.safetensors"], ["none.safetensors"]),
                       (["model=cluster.xyz"], ["cluster.xyz: not a safetensors file"]),
                       (["model=job.json"], ["job.json: not a safetensors file"]),
                       (["model=taught.safetensors"],
                        ["cluster.xyz has Cl",
                         "taught.safetensors was not taught; expected H C N O K"]),
                       (["structure=element.xyz"], ["element.xyz:", "Xx"]),
                       (["structure=nan.xyz"], ["nan.xyz:", "nan"]),
                       (["stepz=5"], ["stepz", "steps"]),
                       (["ensemble.temperature_K=5"], ["ensemble.kind"]),
                       (list(READ), ["cluster.xyz", "has no velocities"]),
                       (["execution.scheduler=none"], ["none", "lws"])):
        print(program.refuses(job, *words("wrong", *sets), says=says))
    assert not (folder / "wrong").exists() or not list((folder / "wrong").iterdir())
    program.run(job, *words("used"))
    before = program.state(folder / "used")
    program.refuses(job, *words("used", "task=energy"), says=["holds a run already"])
    program.refuses(job, "--resume", *words("used", "task=energy"), says=["--resume"])
    program.assert_same(before, program.state(folder / "used"), "a refused energy")


def run_out_of_space(job, log, *words):
    """From the tenth row on no file may grow beyond 20 kB; writing more is an error, not a signal
    (Python ignores SIGXFSZ)."""
    process = subprocess.Popen([program.TESSERA, "run", job, *words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, restore_signals=False)
    program.wait_for_row(process, log, 10)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20000, 20000))
    said = process.communicate(timeout=300)[1]
    return process.returncode, said


def no_place_to_write(folder):
    job = folder / "job.json"
    (folder / "file").write_text("")
    print(program.refuses(job, *words("file"), status=3, says=["file"]))
    print(program.refuses(job, *words("/proc/tessera"), status=3, says=["/proc/tessera"]))
    for name in ("checkpoint.h5", "traj.h5", "log.csv"):
        (folder / f"taken-{name}" / (name if name == "log.csv" else f"{name}.part")).mkdir(parents=True)
        print(program.refuses(job, *words(f"taken-{name}"), status=3, says=[name, "Is a directory"]))
    for trajectory in ("traj.h5", "traj.xyz"):
        sets = [f"output.trajectory.file={trajectory}", "output.trajectory.velocities=true",
                "output.checkpoint.every=7", "steps=300", "timestep_fs=0.02", "output.log_every=10"]
        program.run(job, *words(f"roomy-{trajectory}", *sets))
        full = folder / f"full-{trajectory}"
        status, said = run_out_of_space(job, full / "log.csv", *words(full.name, *sets))
        error = [line for line in said.splitlines() if line.startswith("tessera: ")]
        assert status == 3 and len(error) == 1, (status, said)
        assert f"error: {full}/" in error[0] and "File too large" in error[0], error
        print(error[0])
        program.run(job, "--resume", *words(full.name, *sets))
        expected = program.state(folder / f"roomy-{trajectory}")
        program.assert_same(expected, program.state(full), full.name)
    with open("/dev/full", "w") as screen:
        done = subprocess.run([program.TESSERA, "run", job, *words("screen")], stdout=screen,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "standard output" in done.stderr.splitlines()[-1], done


with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.seed_model(folder / "taught.safetensors",
                       dict(cluster["model"], elements=[1, 6, 7, 8, 19]))
    program.write_job(folder / "job.json", JOB)
    simulation_fails(folder, cluster)
    inputs_are_wrong(folder)
    no_place_to_write(folder)
