# SPDX-License-Identifier: MIT
"""The published code's other forms through the whole program: the energies on record, and what
`tessera check` and a run say where a bound on the number of neighbours binds."""
import re
import subprocess

import program

BOUND = "24 of 24 atoms have more than max_neighbors = 8 senders within 5"


def job_of(folder, name, **changes):
    """A job on a recorded system with a seeded model, and the system."""
    system = program.golden(name)
    program.write_xyz(folder / "system.xyz", system)
    program.seed_model(folder / "model.safetensors", system["model"], system["seed"],
                       "F64")
    job = {"structure": "system.xyz", "model": "model.safetensors", "task": "energy",
           "execution": {"precision": "double", "workers": 1},
           "output": {"directory": "out", "trajectory": {"file": "traj.xyz"}}}
    program.write_job(folder / "job.json", program.merge(job, changes))
    return folder / "job.json", system


def check(job):
    done = subprocess.run([program.TESSERA, "check", job], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_energies():
    for name in ("forms/form-softplus", "forms/form-sigmoid", "forms/form-sphere-head",
                 "forms/form-qkdot", "forms/form-qkdots", "forms/form-cap8", "made/sphere-cluster",
                 "made/degree-1-cluster", "made/degree-3-qkdots"):
        with program.folder() as folder:
            job, system = job_of(folder, name, output={"trajectory": {"velocities": True}})
            program.run(job)
            frame = (folder / "out" / "traj.xyz").read_text()
            assert not re.search("temperature|kinetic|pressure|velo", frame), "nothing moves"
            found = float(re.search(r" energy=(\S+)", frame)[1])
            error = abs(found - system["energy"]) / abs(system["energy"])
            print(f"{name}: energy {found} eV, relative error {error:.1e}")
            assert error < 1e-10
            said = check(job)
            assert (BOUND in said) == (name == "forms/form-cap8"), said


def test_bound_is_said_once():
    with program.folder() as folder:
        job, _ = job_of(folder, "forms/form-cap8", task="md", timestep_fs=0.01,
                        steps=8, neighbors={"rebuild": 2}, velocities={"temperature_K": 10})
        assert check(job).count(BOUND) == 1
        done = program.run(job)
        said = done.stdout + done.stderr
        assert said.count("max_neighbors") == 1 and BOUND in said, said
        assert "the energy is discontinuous" in said


test_energies()
test_bound_is_said_once()
