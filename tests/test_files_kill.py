# SPDX-License-Identifier: MIT
"""kill -9 of a random rank at random moments while several write checkpoints and trajectories: all
ranks end within five seconds, no step that was safe is lost, and after the last kill the files are
those of an undisturbed run on one rank.  TS_KILLS (default 12) says how many, TS_KILL_SEED which
ones."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

if not shutil.which("mpirun"):
    print("skipped: mpirun is not installed")
    sys.exit(77)

KILLS = int(os.environ.get("TS_KILLS", "12"))
SEED = int(os.environ.get("TS_KILL_SEED", random.randrange(2**31)))
PROGRAM = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")) / "tests" / "files_ranks"
FILES = ("checkpoint.h5", "checkpoint.1.h5", "traj.h5", "traj.xyz")
ENOUGH = 10**6  # steps: more than it gets to


def start(folder, ranks, last):
    environment = dict(os.environ, OMPI_MCA_mpi_yield_when_idle="1")
    return subprocess.Popen(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks),
                             PROGRAM, folder, str(last)], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(folder, ranks, last):
    process = start(folder, ranks, last)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said


def steps(folder):
    try:
        return [int(line) for line in (folder / "steps").read_text().split()]
    except FileNotFoundError:
        return []


def process_ids(folder, ranks, process):
    """Of all ranks, once they are there."""
    while process.poll() is None:
        try:
            return [int((folder / f"pid.{rank}").read_text()) for rank in range(ranks)]
        except (FileNotFoundError, ValueError):
            time.sleep(0.005)
    raise AssertionError(process.communicate()[0])


def strike(folder):
    """One kill; seconds until everybody has ended."""
    for file in folder.glob("pid.*"):
        file.unlink()
    ranks = random.choice((2, 3, 4))
    before = len(steps(folder))
    process = start(folder, ranks, ENOUGH)
    victim = random.choice(process_ids(folder, ranks, process))
    if random.random() < 0.8:  # in the steps, not while it starts
        while len(steps(folder)) == before and process.poll() is None:
            time.sleep(0.005)
    time.sleep(random.uniform(0, 0.2))
    os.kill(victim, signal.SIGKILL)
    began = time.monotonic()
    said = process.communicate(timeout=60)[0]
    assert process.returncode != 0 and "MUST" not in said and "line" not in said, said
    return time.monotonic() - began


print(f"{KILLS} kills, TS_KILL_SEED={SEED}")
random.seed(SEED)
with tempfile.TemporaryDirectory() as name:
    folder, straight = pathlib.Path(name) / "killed", pathlib.Path(name) / "straight"
    folder.mkdir()
    straight.mkdir()
    seconds = [strike(folder) for _ in range(KILLS)]
    assert max(seconds) < 5, f"a rank went on for {max(seconds):.1f} s"
    last = max(steps(folder), default=0) + 3
    finish(folder, 3, last)
    finish(straight, 1, last)
    assert steps(straight) == list(range(last + 1))
    for file in FILES:
        assert (folder / file).read_bytes() == (straight / file).read_bytes(), f"{file} differs"
    left = sorted(path.name for path in folder.iterdir() if not path.name.startswith("pid."))
    assert left == sorted((*FILES, "steps")), left
print(f"{last + 1} steps; all ranks had ended {max(seconds):.1f} s after a kill at the latest")
