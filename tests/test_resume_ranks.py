# SPDX-License-Identifier: MIT
"""Runs on several ranks that were stopped and resumed: on as many ranks they write what an
undisturbed run writes, byte for byte; on other numbers too with execution.reproducible.  Needs
h5py (PyPI) and mpirun."""
import json
import os
import shutil
import sys

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)
if not shutil.which("mpirun"):
    print("skipped: mpirun is not installed")
    sys.exit(77)

os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
STEPS = 12
JOB = {"structure": "cluster.xyz", "model": "cluster.safetensors", "steps": STEPS,
       "timestep_fs": 0.1, "velocities": {"temperature_K": 100},
       "ensemble": {"kind": "nvt", "temperature_K": 150, "friction_per_ps": 500},
       "neighbors": {"skin_A": 0.05, "rebuild": 4}, "partition": {"period": 5},
       "execution": {"radial_tolerance": 1e-7, "workers": 1, "precision": "double"},
       "output": {"log_every": 1, "trajectory": {"every": 2, "velocities": True},
                  "checkpoint": {"every": 9}, "rdf": {"pairs": ["O-O", "O-H"], "every": 4}}}
# owners that follow from edges; an atom travels 0.7 Å a step, all are dealt out anew after half of 8 Å
UNEVEN = ("partition.cut=edges", "partition.period=auto", "velocities.source=read",
          "structure=travel.xyz", "ensemble.friction_per_ps=1", "timestep_fs=1")
REPRODUCIBLE = ("execution.reproducible=true",)


def run(folder, directory, ranks, steps, *sets):
    words = [word for key in (f"output.directory={directory}", f"steps={steps}", *sets)
             for word in ("--set", key)]
    launcher = () if ranks == 1 else (
        "mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks))
    return program.run(folder / "job.json", "--resume", *words, launcher=launcher)


def state(where):
    """What is written, without the owners, which one rank does not have."""
    found = program.state(where)
    for name in found:
        if name.startswith("checkpoint"):
            arrays = program.checkpoint(where / name)
            found[name] = {key: arrays[key].tobytes() for key in arrays if key != "order"}
    return found


def same_ranks(folder, ranks, trajectory, cuts, *more):
    """Cut after some steps, or not."""
    sets = (f"output.trajectory.file={trajectory}", *more)
    straight, cut = f"straight-{ranks}-{trajectory}", f"cut-{ranks}-{trajectory}"
    run(folder, straight, ranks, STEPS, *sets)
    for steps in (*cuts, STEPS):
        run(folder, cut, ranks, steps, *sets)
    program.assert_same(program.state(folder / straight), program.state(folder / cut), cut)
    rebuilds = json.loads((folder / straight / "summary.json").read_text())["rebuilds"]
    assert rebuilds["partition"] > 0, rebuilds
    print(f"{ranks} ranks, {trajectory}: cut and straight are the same")


def reproducible(folder):
    run(folder, "bits-one", 1, STEPS, *REPRODUCIBLE)
    for ranks, steps in ((3, 4), (1, 7), (2, STEPS)):
        run(folder, "bits-many", ranks, steps, *REPRODUCIBLE)
    program.assert_same(state(folder / "bits-one"), state(folder / "bits-many"), "reproducible")
    print("reproducible: on 3, 1 and 2 ranks the bits of one rank")


with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.write_job(folder / "job.json", JOB)
    travel = [[0.0, 0.0, 0.0] for _ in cluster["numbers"]]
    travel[cluster["numbers"].index(1)][0] = 0.7
    program.write_xyz(folder / "travel.xyz", cluster, velocities=travel)
    same_ranks(folder, 2, "traj.h5", (3, 8))  # between a partition and a rebuild, and at a rebuild
    same_ranks(folder, 2, "traj.xyz", (9,), *UNEVEN)
    reproducible(folder)
