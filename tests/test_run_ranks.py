# SPDX-License-Identifier: MIT
"""One job on several ranks: the numbers of one rank, each message once, one end for all.

Positions in the checkpoint, rows and radial distributions are compared with those of one rank; a
stop reaches all ranks whichever of them is told; a rank that dies or cannot go on ends all within
seconds, with the last checkpoint in order."""
import json
import os
import signal
import subprocess
import time

import numpy

import program

STEPS = 10
JOB = {"structure": "system.xyz", "model": "model.safetensors", "steps": STEPS,
       "ensemble": {"kind": "nvt", "temperature_K": 300, "friction_per_ps": 10},
       "neighbors": {"rebuild": 3}, "partition": {"period": 5},
       "execution": {"precision": "double", "workers": 1, "radial_tolerance": 1e-6},
       "output": {"log_every": 2, "trajectory": {"every": 5}, "checkpoint": {"every": 5},
                  "rdf": {"pairs": ["O-H", "H-H"], "r_max_A": 6, "every": 5}}}
MPIRUN = program.MPIRUN


def directory(name):
    return ["--set", f"output.directory={name}"]


def numbers(where):
    """Rows without the clock, as numbers."""
    return numpy.array([[float(x) for x in row.values()] for row in program.log_rows(where)])


def compare(folder, name, ranks):
    one, many = folder / "one", folder / name
    a, b = numbers(one), numbers(many)
    assert a.shape == b.shape, (a.shape, b.shape)
    worst = numpy.nanmax(numpy.abs(a - b) / (1e-3 + numpy.abs(a)))
    x = program.checkpoint(one / "checkpoint.h5")["x"]
    y = program.checkpoint(many / "checkpoint.h5")["x"]
    moved = numpy.abs(x - y).max()
    assert worst < 1e-6 and moved < 1e-8, f"{name}: rows differ by {worst}, positions by {moved}"
    g = [numpy.loadtxt(where / "rdf.csv", delimiter=",", skiprows=1) for where in (one, many)]
    assert numpy.abs(g[0] - g[1]).max() == 0, f"{name}: radial distributions differ"
    summary = json.loads((many / "summary.json").read_text())
    atoms = summary["ranks"]["atoms"]
    assert summary["ranks"]["count"] == ranks and atoms["max"] - atoms["min"] <= 1, atoms
    assert abs(atoms["mean"] * ranks - summary["atoms"]) < 1e-6, atoms
    assert summary["programs_recorded"] == sum(summary["rebuilds"].values()), summary
    largest = json.loads((one / "summary.json").read_text())["last"]["max_force_eV_per_A"]
    assert abs(summary["last"]["max_force_eV_per_A"] - largest) < 1e-6 * largest, summary["last"]
    print(f"{name}: rows within {worst:.1e}, positions within {moved:.1e} Å; "
          f"peers {summary['ranks']['peers']['max']:.0f}, "
          f"{summary['ranks']['bytes_per_step']['mean']:.0f} bytes a step")


def same_numbers(folder):
    job = folder / "job.json"
    program.run(job, *directory("one"))
    for ranks, more in ((2, []), (3, ["--set", "neighbors.level1=routed",
                                      "--set", "neighbors.routing.mode=splitmix"])):
        said = program.run(job, *directory(f"ranks-{ranks}"), *more,
                           launcher=[*MPIRUN, str(ranks)])
        assert said.stdout.count("temperature/K") <= 1 + said.stdout.count("\n") // 20, said.stdout
        assert said.stderr.count("structure  ") == 1, said.stderr
        compare(folder, f"ranks-{ranks}", ranks)


def each_message_once(folder):
    """Wrong inputs, on all ranks alike, too many ranks, and a simulation that fails: one line, and
    with mpirun --quiet nothing of mpirun's."""
    job = folder / "job.json"
    quiet = [MPIRUN[0], "--quiet", *MPIRUN[1:]]
    for words, part in ((["--set", "steps=-1"], "steps"),
                        (["--set", "model=none.safetensors"], "none.safetensors"),
                        (["--set", "structure=none.xyz"], "none.xyz"),
                        (["--set", "execution.scheduler=none"], "unknown scheduler"),
                        (directory("one"), "holds a run already")):
        done = program.run(job, *words, status=1, launcher=[*quiet, "3"])
        assert part in done.stderr and "MPI_ABORT" not in done.stderr, done.stderr
    few = program.golden("pair")
    program.write_xyz(folder / "few.xyz", few)
    done = program.run(job, "--set", "structure=few.xyz", *directory("few"), status=1,
                       launcher=[*MPIRUN, str(len(few["numbers"]) + 1)])
    assert "at most one rank per atom" in done.stderr, done.stderr
    hot = program.run(job, "--set", "timestep_fs=20", "--set", "velocities.temperature_K=2e4",
                      *directory("hot"), status=2, launcher=[*quiet, "3"])
    assert "is lost" in hot.stderr and "mpirun" not in hot.stderr, hot.stderr
    assert "MPI_ABORT" not in hot.stderr, hot.stderr
    assert hot.stderr.count("cores") <= 2, hot.stderr  # the machine's line, and one warning
    print("messages: once")


def settings_that_differ(folder):
    """Ranks whose jobs differ, by a digit or a file's bytes, fail together and say in what."""
    program.seed_model(folder / "other.safetensors", program.golden("triclinic-cluster")["model"],
                       seed=10)
    run = [program.TESSERA, "run", str(folder / "job.json"), *directory("apart")]
    for words, parts in ((["neighbors.skin_A=0.500000001"], ("0.5,", "0.500000001")),
                         (["neighbors.routing.seed=2"], ("has \"seed\": 1,", "\"seed\": 2")),
                         (["model=other.safetensors"], ("model.safe", "other.safe"))):
        words = [word for setting in words for word in ("--set", setting)]
        done = subprocess.run([*MPIRUN, "2", *run, ":", "-n", "1", *run, *words], timeout=100,
                              capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if "error: " in line]
        assert done.returncode == 1 and len(said) == 1, (done.returncode, done.stderr)
        assert "rank 0 has" in said[0] and "rank 2 has" in said[0], said[0]
        assert all(part in said[0] for part in parts), said[0]
    assert not (folder / "apart").exists()
    print("settings that differ: refused")


def start(folder, name, ranks, *words):
    return subprocess.Popen([*MPIRUN, str(ranks), program.TESSERA, "run", folder / "job.json",
                             *directory(name), "--set", "steps=1000000", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def one_rank_is_told_to_stop(folder):
    process = start(folder, "told", 3)
    program.wait_for_row(process, folder / "told" / "log.csv", 4)
    os.kill(program.ranks_of(process)[2], signal.SIGUSR1)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 4 and said.count("stopped by SIGUSR1") == 1, said
    last = int(program.checkpoint(folder / "told" / "checkpoint.h5")["step"][0])
    assert f"after step {last} of" in said, said
    more = ["--set", f"steps={last + 3}", *directory("told")]
    program.run(folder / "job.json", "--resume", *more, launcher=[*MPIRUN, "2"])
    assert int(program.checkpoint(folder / "told" / "checkpoint.h5")["step"][0]) == last + 3
    print(f"SIGUSR1 to rank 2: all stopped after step {last}; two ranks went on")


def one_rank_dies(folder):
    for rank in (0, 2):
        name = f"dead-{rank}"
        process = start(folder, name, 3)
        program.wait_for_row(process, folder / name / "log.csv", 6)
        ranks = program.ranks_of(process)
        os.kill(ranks[rank], signal.SIGKILL)
        began = time.monotonic()
        process.communicate(timeout=60)
        assert process.returncode != 0, process.returncode
        while any(map(program.lives, ranks.values())):
            assert time.monotonic() - began < 15, f"ranks that still live: {ranks}"
            time.sleep(0.05)
        passed = time.monotonic() - began
        assert int(program.checkpoint(folder / name / "checkpoint.h5")["step"][0]) >= 5
        print(f"kill -9 of rank {rank}: all ended after {passed:.1f} s")


with program.folder() as folder:
    system = program.golden("triclinic-cluster")
    program.write_xyz(folder / "system.xyz", system)
    program.seed_model(folder / "model.safetensors", system["model"])
    program.write_job(folder / "job.json", JOB)
    same_numbers(folder)
    each_message_once(folder)
    settings_that_differ(folder)
    one_rank_is_told_to_stop(folder)
    one_rank_dies(folder)
