# SPDX-License-Identifier: MIT
"""kill -9 at random moments while a checkpoint is written on every step: the run always resumes,
loses at most the step it was in, and ends with the bytes of an undisturbed run.  Half of the
kills fall into the steps, a quarter into the renames around a checkpoint, a quarter anywhere,
starting up included.  TS_KILLS (default 16) says how many, TS_KILL_SEED which ones.  Needs h5py
(PyPI)."""
import os
import random
import re
import subprocess
import sys
import time

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)

KILLS = int(os.environ.get("TS_KILLS", "16"))
SEED = int(os.environ.get("TS_KILL_SEED", random.randrange(2**31)))
STEPS, PER_RUN = 24, 8  # the kinds of trajectory take turns
JOB = {"structure": "cluster.xyz", "model": "cluster.safetensors",
       "steps": STEPS, "timestep_fs": 0.1,
       "ensemble": {"kind": "nvt", "temperature_K": 150, "friction_per_ps": 500},
       "velocities": {"temperature_K": 100},
       "neighbors": {"skin_A": 0.05, "rebuild": 5}, "partition": {"period": 8},
       "execution": {"radial_tolerance": 1e-6, "workers": 1},
       "output": {"log_every": 1, "trajectory": {"every": 1, "velocities": True},
                  "checkpoint": {"every": 1, "keep": 2}, "rdf": {"pairs": ["O-H"], "every": 1}}}


def inode(path):
    """Which file has this name now."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def wait_for_checkpoint(process, path):
    """Until a new checkpoint has its name, or the process has ended."""
    before = inode(path)
    while inode(path) == before and process.poll() is None:
        time.sleep(0.0005)


class Round:
    """A run from the start to its end, with kills in between."""

    def __init__(self, folder, name, trajectory):
        self.folder, self.name = folder, name
        self.where = folder / name
        self.words = ["--resume", "--set", f"output.directory={name}",
                      "--set", f"output.trajectory.file={trajectory}"]
        self.resumed = self.older = 0
        self.step_seconds, self.start_seconds = 0.01, 0.5

    def launch(self):
        with open(self.folder / "stderr", "w") as err:
            return subprocess.Popen([program.TESSERA, "run", self.folder / "job.json", *self.words],
                                    stdout=subprocess.DEVNULL, stderr=err)

    def last_row(self):
        try:
            rows = (self.where / "log.csv").read_text().split("\n")[1:-1]
        except FileNotFoundError:
            return -1
        return int(rows[-1].split(",")[0]) if rows else -1

    def check_start(self, row, said):
        """The run went on from the step of the last row or the one before."""
        found = re.search(r"^resume     .*/(checkpoint.*\.h5), step (\d+)$", said, re.M)
        if not found:  # killed before it could say so, or nothing was there to resume from
            assert row <= 1 or "resume" not in said, f"{self.name}: row {row} was written; {said}"
            return
        self.resumed += 1
        self.older += found[1] != "checkpoint.h5"
        assert int(found[2]) >= row - 1, f"{self.name}: row {row} was written; {said}"

    def strike(self, dice):
        """Start, kill; False: the run had ended before."""
        row = self.last_row()
        process = self.launch()
        if dice < 0.25:
            time.sleep(random.uniform(0, 1.5 * self.start_seconds))
        else:
            began = time.monotonic()
            wait_for_checkpoint(process, self.where / "checkpoint.h5")
            self.start_seconds = time.monotonic() - began
            if dice < 0.75:
                time.sleep(random.uniform(0, 3 * self.step_seconds))
            else:
                wait_for_checkpoint(process, self.where / "checkpoint.1.h5")
        process.kill()
        status = process.wait()
        said = (self.folder / "stderr").read_text()
        assert status in (0, -9), f"{self.name}: exit status {status}: {said}"
        self.check_start(row, said)
        return status == -9


print(f"{KILLS} kills, TS_KILL_SEED={SEED}")
random.seed(SEED)
with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.write_job(folder / "job.json", JOB)
    expected, kills, resumed, older, rounds = {}, 0, 0, 0, 0
    for trajectory in ("traj.h5", "traj.xyz"):
        program.run(folder / "job.json", "--set", f"output.directory=straight-{trajectory}",
                    "--set", f"output.trajectory.file={trajectory}")
        expected[trajectory] = program.state(folder / f"straight-{trajectory}")
    while kills < KILLS:
        trajectory = ("traj.h5", "traj.xyz")[rounds % 2]
        rounds += 1
        attempt = Round(folder, f"round-{rounds}", trajectory)
        for _ in range(min(PER_RUN, KILLS - kills)):
            kills += attempt.strike(random.random())
        program.run(folder / "job.json", *attempt.words)
        program.assert_same(expected[trajectory], program.state(attempt.where), attempt.name)
        resumed += attempt.resumed
        older += attempt.older
    print(f"{kills} kills in {rounds} runs: {resumed} resumed from a checkpoint ({older} from the "
          "older one), the others came before the first; every run ended with the same bytes")
    assert resumed > 0
