# SPDX-License-Identifier: MIT
"""A run that was stopped and resumed writes what an undisturbed one writes, byte for byte: rows,
frames, checkpoints, radial distributions, means; between rebuilds, with another tiling, other
workers and another scheduler.  What cannot be resumed is refused with advice.  Needs h5py
(PyPI)."""
import json
import shutil
import sys

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)

BASE = {"structure": "cluster.xyz", "model": "cluster.safetensors", "steps": 40, "timestep_fs": 0.1,
        "velocities": {"temperature_K": 100},
        "neighbors": {"skin_A": 0.02, "rebuild": 10}, "partition": {"period": 25},
        "execution": {"radial_tolerance": 1e-7, "workers": 1},
        "output": {"log_every": 1, "trajectory": {"every": 3},
                   "checkpoint": {"every": 18},
                   "rdf": {"pairs": ["O-O", "O-H"], "every": 2}}}
NVT = {"kind": "nvt", "temperature_K": 150, "friction_per_ps": 500}
XYZ = {"trajectory": {"file": "traj.xyz", "every": 2, "velocities": True, "forces": True}}

# name, structure, changes to the job, (stop, overrides of the part that leads there), ...
CASES = [
    ("nve float", "cluster", {}, (18, ())),
    ("nvt double xyz", "cluster",
     {"ensemble": NVT, "execution": {"precision": "double"}, "output": XYZ}, (18, ())),
    ("nvt float, rebuilds by displacement only", "cluster",
     {"ensemble": NVT, "neighbors": {"rebuild": 1000}, "partition": {"period": 1000}}, (18, ())),
    ("nve double, wide skin", "cluster",
     {"neighbors": {"skin_A": 0.5, "rebuild": 8}, "partition": {"period": 11},
      "execution": {"precision": "double"}, "output": {"trajectory": {"forces": True}}}, (18, ())),
    ("no skin", "cluster", {"neighbors": {"skin_A": 0}, "ensemble": NVT}, (18, ())),
    ("at step 0, at a rebuild, at a sort", "cluster", {}, (0, ()), (10, ()), (25, ())),
    ("other tiles, workers, scheduler, back end", "cluster", {},
     (5, ("execution.tile_atoms=5", "execution.workers=2", "execution.scheduler=eager")),
     (17, ("execution.tile_atoms=24", "neighbors.chunk=7", "execution.recompute=1")),
     (29, ("execution.tile_atoms=7", "execution.scheduler=prio", "neighbors.backend=faiss",
           "execution.replay=false"))),
    ("a charged molecule", "molecule",
     {"ensemble": NVT, "output": {"rdf": {"pairs": []}}}, (18, ())),
    ("one atom, velocity read", "atom",
     {"velocities": {"source": "read"}, "output": {"rdf": {"pairs": []}}}, (18, ())),
]


def prepare(folder):
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.seed_model(folder / "other.safetensors", cluster["model"], seed=10)
    molecule = program.golden("molecule-charged")
    program.write_xyz(folder / "molecule.xyz", molecule)
    program.seed_model(folder / "molecule.safetensors", molecule["model"])
    atom = {"cell": cluster["cell"], "pbc": [True] * 3, "symbols": ["O"],
            "positions": [[0.001, 8.9, 3]]}
    program.write_xyz(folder / "atom.xyz", atom, velocities=[[-0.05, 0.1, 0.02]])
    shutil.copy(folder / "cluster.safetensors", folder / "atom.safetensors")


def words(directory, steps, overrides=()):
    sets = (f"output.directory={directory}", f"steps={steps}", *overrides)
    return [word for key in sets for word in ("--set", key)]


def check_between(folder, case):
    """Where the run was cut is what the case is about."""
    age = program.checkpoint(folder / "cut" / "checkpoint.h5")["age"]
    summary = json.loads((folder / "straight" / "summary.json").read_text())
    rebuilds = summary["rebuilds"]
    if case == "no skin":
        assert age[0] == 0 and rebuilds["displacement"] > 30, (case, age, rebuilds)
    elif case in ("nve float", "nvt float, rebuilds by displacement only"):
        assert age[0] > 0 and age[1] > 0, f"{case}: cut at a rebuild: {age}"
        assert rebuilds["displacement"] > 2, f"{case}: {rebuilds}"
    elif case.startswith(("nve double", "nvt double")):
        assert age[0] > 0 and age[1] > 0, f"{case}: cut at a rebuild: {age}"


def check_case(folder, case, system, changes, *stops):
    job = program.merge(BASE, program.merge(
        {"structure": f"{system}.xyz", "model": f"{system}.safetensors"}, changes))
    program.write_job(folder / "job.json", job)
    for directory in ("straight", "cut"):
        shutil.rmtree(folder / directory, ignore_errors=True)
    program.run(folder / "job.json", *words("straight", job["steps"]))
    resume = []
    for step, overrides in stops:
        program.run(folder / "job.json", *resume, *words("cut", step, overrides))
        resume = ["--resume"]
    check_between(folder, case)
    program.run(folder / "job.json", "--resume", *words("cut", job["steps"]))
    expected, got = program.state(folder / "straight"), program.state(folder / "cut")
    assert len(expected["log.csv"]) == 41
    program.assert_same(expected, got, case)
    print(f"{case}: {', '.join(expected)} are the same")


def check_refusals(folder):
    job = folder / "job.json"
    program.write_job(job, BASE)
    run = words("refused", 8)
    started = program.run(job, "--resume", *run)
    assert "no checkpoint yet: starting from step 0" in started.stderr
    before = program.state(folder / "refused")
    program.refuses(job, *run, says=["holds a run already", "--resume", "output.directory"])
    program.refuses(job, "--resume", *run, "--set", "velocities.seed=2",
                    says=["checkpoint.h5", "its seed is 1, this job's is 2", "start a new run"])
    program.refuses(job, "--resume", *run, "--set", "model=other.safetensors",
                    says=["checkpoint.h5", "model", "start a new run"])
    program.refuses(job, "--resume", *run, "--set", "execution.precision=double",
                    says=["float", "double", "execution.precision"])
    program.refuses(job, "--resume", *run, "--set", "timestep_fs=0.2",
                    says=["timestep", "0.1", "0.2", "timestep_fs"])
    program.refuses(job, "--resume", *words("refused", 7), says=["step 8", "steps = 7"])
    longer = words("refused", 12)
    for change in ('output.rdf.pairs=["O-O"]', 'output.rdf.pairs=["O-O","H-H"]',
                   "output.rdf.bin_A=0.1"):
        program.refuses(job, "--resume", *longer, "--set", change, says=["output.rdf"])
    program.refuses(job, "--resume", *longer, "--set", "output.trajectory.forces=true",
                    says=["traj.h5", "force"])
    program.assert_same(before, program.state(folder / "refused"), "refused runs changed something")
    program.run(job, "--resume", *run)  # nothing left to do
    program.assert_same(before, program.state(folder / "refused"), "a run resumed at its end")


with program.folder() as folder:
    prepare(folder)
    for case in CASES:
        check_case(folder, *case)
    check_refusals(folder)
