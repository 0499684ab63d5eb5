# SPDX-License-Identifier: MIT
"""SIGTERM, SIGINT, SIGUSR1 and the wall time end a run in order: exit status 4, a checkpoint of
the last step, and a resumed run that writes the bytes of an undisturbed one; also when the signal
goes to mpirun.  Several ranks are refused, once.  Needs h5py (PyPI)."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)

STEPS = 400
JOB = {"structure": "cluster.xyz", "model": "cluster.safetensors",
       "steps": STEPS, "timestep_fs": 0.02,
       "ensemble": {"kind": "nvt", "temperature_K": 150, "friction_per_ps": 500},
       "velocities": {"temperature_K": 100},
       "execution": {"radial_tolerance": 1e-6, "workers": 1},
       "output": {"log_every": 10, "trajectory": {"every": 5},
                  "checkpoint": {"every": 0, "keep": 1}, "rdf": {"pairs": ["O-H"], "every": 10}}}
MPIRUN = ["mpirun", "--oversubscribe", "-n"]  # as root: OMPI_ALLOW_RUN_AS_ROOT, set by make check


def start(folder, *words, launcher=()):
    return subprocess.Popen([*launcher, program.TESSERA, "run", folder / "job.json", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_stopped(where, said, reason):
    """A checkpoint of the step that is named, and words that say so."""
    last = int(program.checkpoint(where / "checkpoint.h5")["step"][0])
    assert 20 <= last < STEPS, f"{where}: step {last}"
    assert f"stopped by {reason} after step {last} of {STEPS}; continue with --resume" in said, said
    assert int(program.log_rows(where)[-1]["step"]) == last // 10 * 10
    summary = json.loads((where / "summary.json").read_text())
    assert (summary["status"], summary["step"]) == ("stopped", last), summary
    return last


def finish(folder, where, expected, *words):
    program.run(folder / "job.json", "--resume", *words)
    program.assert_same(expected, program.state(where), where.name)


def check_signal(folder, number, expected, launcher=(), status=4):
    name = signal.Signals(number).name
    where = folder / ("mpirun-" * bool(launcher) + name)
    words = ["--set", f"output.directory={where.name}"]
    process = start(folder, *words, launcher=launcher)
    program.wait_for_row(process, where / "log.csv", 20)
    time.sleep(random.uniform(0, 0.05))
    process.send_signal(number)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == status, f"{where.name}: exit status {process.returncode}: {said}"
    last = check_stopped(where, said, name)
    finish(folder, where, expected, *words)
    print(f"{where.name}: stopped after step {last}, resumed to the same bytes")


def check_mpirun_term(folder):
    """mpirun answers SIGTERM with SIGTERM to its ranks after one second and SIGKILL after another.
    Whether that was enough for a last checkpoint or not, the run can be resumed."""
    where = folder / "mpirun-SIGTERM"
    words = ["--set", "output.directory=mpirun-SIGTERM", "--set", "output.checkpoint.every=7",
             "--set", "output.log_every=20"]
    process = start(folder, *words, "--set", "steps=1000000", launcher=[*MPIRUN, "1"])
    program.wait_for_row(process, where / "log.csv", 20)
    process.terminate()
    said = process.communicate(timeout=300)[1]
    assert process.returncode != 0, said
    summary = where / "summary.json"
    end = json.loads(summary.read_text())["status"] if summary.exists() else "killed"
    assert end in ("stopped", "killed"), end
    last = int(program.checkpoint(where / "checkpoint.h5")["step"][0])
    assert last >= 14 and (end == "stopped" or last % 7 == 0), f"{end} at {last}"
    program.run(folder / "job.json", "--resume", *words, "--set", f"steps={last + 3}")
    assert int(program.checkpoint(where / "checkpoint.h5")["step"][0]) == last + 3
    print(f"SIGTERM to mpirun: {end}, resumed from step {last}")


def check_walltime(folder, expected):
    where = folder / "walltime"
    words = ["--set", "output.directory=walltime", "--set", "max_walltime=00:00:02"]
    began = time.monotonic()
    long = ["--set", f"steps={STEPS * 1000}"]
    said = program.run(folder / "job.json", *words, *long, status=4).stderr
    passed = time.monotonic() - began
    assert "stopped by max_walltime after step" in said, said
    last = program.checkpoint(where / "checkpoint.h5")["step"][0]
    assert f"after step {last} of" in said, said
    print(f"walltime: 2 s given, {passed:.1f} s with start and end of the program, {last} steps")
    program.run(folder / "job.json", "--resume", *words, "--set", f"steps={last}")  # needs no time
    if last < STEPS:
        finish(folder, where, expected, "--set", "output.directory=walltime")


with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.write_job(folder / "job.json", JOB)
    program.run(folder / "job.json", "--set", "output.directory=straight")
    expected = program.state(folder / "straight")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        check_signal(folder, number, expected)
    check_walltime(folder, expected)
    if shutil.which("mpirun"):
        if os.geteuid() == 0:
            os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        check_signal(folder, signal.SIGUSR1, expected, launcher=[*MPIRUN, "1"])  # it hands it on
        check_mpirun_term(folder)
    else:
        print("no mpirun here: not tested under it")
