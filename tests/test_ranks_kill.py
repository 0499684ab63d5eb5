# SPDX-License-Identifier: MIT
"""kill -9 of a random rank at random moments of a simulation that writes a checkpoint on every step:
all ranks end within seconds, the run always resumes, on another number of ranks as well, loses at
most the step that it was in, and ends with the bytes of an undisturbed run on one rank.  TS_KILLS
(default 4) says how many, TS_KILL_SEED which ones.  Needs h5py (PyPI) and mpirun."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import program

if program.h5py is None:
    print("skipped: no h5py")
    sys.exit(77)
if not shutil.which("mpirun"):
    print("skipped: mpirun is not installed")
    sys.exit(77)

KILLS = int(os.environ.get("TS_KILLS", "4"))
SEED = int(os.environ.get("TS_KILL_SEED", random.randrange(2**31)))
STEPS, PER_RUN = 24, 8
SECONDS = 10  # until all have ended; alone on the machine two are enough
JOB = {"structure": "cluster.xyz", "model": "cluster.safetensors", "steps": STEPS,
       "timestep_fs": 0.1, "velocities": {"temperature_K": 100},
       "ensemble": {"kind": "nvt", "temperature_K": 150, "friction_per_ps": 500},
       "neighbors": {"skin_A": 0.05, "rebuild": 4}, "partition": {"period": 5},
       "execution": {"radial_tolerance": 1e-6, "workers": 1, "reproducible": True},
       "output": {"log_every": 1, "trajectory": {"every": 1, "velocities": True},
                  "checkpoint": {"every": 1}, "rdf": {"pairs": ["O-H"], "every": 1}}}


def inode(path):
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def last_row(where):
    try:
        rows = (where / "log.csv").read_text().split("\n")[1:-1]
    except FileNotFoundError:
        return -1
    return int(rows[-1].split(",")[0]) if rows else -1


def wait_for_checkpoint(process, path):
    """Until a new checkpoint has its name, or the run has ended."""
    before = inode(path)
    while inode(path) == before and process.poll() is None:
        time.sleep(0.001)


class Count:
    kills = resumed = older = 0
    slowest, start_seconds, step_seconds = 0.0, 1.0, 0.02


def check_start(count, name, row, said):
    """The run went on from the step of the last row or the one before."""
    found = re.search(r"^resume     .*/(checkpoint.*\.h5), step (\d+)$", said, re.M)
    if not found:  # killed before it could say so, or nothing was there to resume from
        assert row <= 1 or "resume" not in said, f"{name}: row {row} was written; {said}"
        return
    count.resumed += 1
    count.older += found[1] != "checkpoint.h5"
    assert int(found[2]) >= row - 1, f"{name}: row {row} was written; {said}"


def strike(folder, name, count):
    """Start on two or three ranks and kill one, unless the run ends before."""
    where, row = folder / name, last_row(folder / name)
    with open(folder / "stderr", "w") as err:
        process = subprocess.Popen(
            [*program.MPIRUN, str(random.choice((2, 3))), program.TESSERA, "run",
             folder / "job.json", "--resume", "--set", f"output.directory={name}"],
            stdout=subprocess.DEVNULL, stderr=err)
    began = time.monotonic()
    if random.random() < 0.25:
        time.sleep(random.uniform(0.1, 1.5 * count.start_seconds))
    else:
        wait_for_checkpoint(process, where / "checkpoint.h5")
        count.start_seconds = time.monotonic() - began
        time.sleep(random.uniform(0, 3 * count.step_seconds))
    ranks = program.ranks_of(process)
    try:
        os.kill(ranks[random.choice(sorted(ranks))], signal.SIGKILL)
        count.kills += 1
    except (IndexError, ProcessLookupError):  # it has ended, or mpirun has started none yet
        pass
    struck = time.monotonic()
    if not ranks:
        process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    while any(map(program.lives, ranks.values())):
        assert time.monotonic() - struck < 60, f"{name}: ranks still live: {ranks}"
        time.sleep(0.01)
    count.slowest = max(count.slowest, time.monotonic() - struck)
    check_start(count, name, row, (folder / "stderr").read_text())


def state(where):
    """What is written, without the owners, which one rank does not have."""
    found = program.state(where)
    for name in found:
        if name.startswith("checkpoint"):
            arrays = program.checkpoint(where / name)
            found[name] = {key: arrays[key].tobytes() for key in arrays if key != "order"}
    return found


print(f"{KILLS} kills, TS_KILL_SEED={SEED}", flush=True)
random.seed(SEED)
with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.write_xyz(folder / "cluster.xyz", cluster)
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    program.write_job(folder / "job.json", JOB)
    program.run(folder / "job.json", "--set", "output.directory=straight")
    expected, count, rounds = state(folder / "straight"), Count(), 0
    while count.kills < KILLS:
        rounds += 1
        name = f"round-{rounds}"
        for _ in range(min(PER_RUN, KILLS - count.kills)):
            strike(folder, name, count)
        program.run(folder / "job.json", "--resume", "--set", f"output.directory={name}",
                    launcher=[*program.MPIRUN, "2"])
        program.assert_same(expected, state(folder / name), name)
        shutil.rmtree(folder / name)
        if KILLS > 50:
            print(f"{count.kills} kills: all ranks had ended {count.slowest:.1f} s after one at the "
                  "latest", flush=True)
    print(f"{count.kills} kills in {rounds} runs: {count.resumed} resumed from a checkpoint "
          f"({count.older} from the older one), the others came before the first; all ranks had "
          f"ended {count.slowest:.1f} s after a kill at the latest")
    assert count.slowest < SECONDS
