#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Long runs that judge the dynamics: python3 bench/dynamics.py BUILD_DIR nve|nvt [PS]

nve  the example (632 atoms) at constant energy from rest (150 K once equilibrated;
     the potential is shallow, see nvt), in double at 0.25 and 0.5 fs and in float at 0.5 fs: drift
     of the energy (least squares) and its fluctuation, which must fall as the square of the time
     step.  Default 10 ps: an hour on two cores; 1 ps shows the square.
nvt  eight water molecules at 100 K under Langevin friction 10/ps: mean temperature against its
     statistical error (blocking).  Default 50 ps: ten minutes.  At 100 K, because the example
     potential has a false minimum at small H-O-H angles (0.28 eV away) that a run at 300 K falls
     into sooner or later.
"""
import csv
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLE = os.path.join(ROOT, "examples", "salt-water")


def run(build, directory, structure, **keys):
    """One run; returns the rows of its log.csv as dictionaries of numbers."""
    job = os.path.join(directory, "job.json")
    with open(job, "w", encoding="utf-8") as file:
        file.write('{"structure": "%s", "model": "%s"}'
                   % (structure, os.path.join(EXAMPLE, "salt-water-small.safetensors")))
    words = [os.path.join(build, "tessera"), "run", job]
    for key, value in keys.items():
        words += ["--set", "%s=%s" % (key.replace("__", "."), value)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(directory, "run", "log.csv"), encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def mean(x):
    return sum(x) / len(x)


def error_of_mean(x):
    """Largest standard error over block sizes that leave at least 16 blocks."""
    worst, size = 0.0, 1
    while len(x) // size >= 16:
        blocks = [mean(x[i:i + size]) for i in range(0, len(x) - size + 1, size)]
        m = mean(blocks)
        variance = sum((b - m) ** 2 for b in blocks) / (len(blocks) - 1)
        worst = max(worst, math.sqrt(variance / len(blocks)))
        size *= 2
    return worst


def nve(build, ps):
    atoms = 632
    print("%-10s %-8s %6s %22s %18s"
          % ("precision", "dt/fs", "ps", "drift/ueV/atom/ps", "rms of E/eV"))
    for precision, dt in (("double", 0.25), ("double", 0.5), ("float", 0.5)):
        with tempfile.TemporaryDirectory() as directory:
            rows = run(build, directory, os.path.join(EXAMPLE, "salt-water-216.xyz"),
                       steps=round(ps * 1000 / dt), timestep_fs=dt, ensemble__kind="nve",
                       velocities__temperature_K=0, execution__precision=precision,
                       output__log_every=max(1, round(2 / dt)),
                       output__trajectory__every=0, output__checkpoint__every=0)
        t = [row["time_ps"] for row in rows]
        e = [row["total_eV"] for row in rows]
        tm, em = mean(t), mean(e)
        slope = sum((a - tm) * (b - em) for a, b in zip(t, e)) / sum((a - tm) ** 2 for a in t)
        rms = math.sqrt(mean([(b - em) ** 2 for b in e]))
        print("%-10s %-8g %6g %22.3f %18.5f" % (precision, dt, ps, slope / atoms * 1e6, rms),
              flush=True)


def nvt(build, ps):
    dt, target = 0.5, 100.0
    with tempfile.TemporaryDirectory() as directory:
        rows = run(build, directory, os.path.join(ROOT, "tests", "data", "water8.xyz"),
                   steps=round(ps * 1000 / dt), timestep_fs=dt, ensemble__kind="nvt",
                   ensemble__temperature_K=target, ensemble__friction_per_ps=10,
                   velocities__temperature_K=target, execution__workers=1, output__log_every=10,
                   output__trajectory__every=0, output__checkpoint__every=0)
    temperature = [row["temperature_K"] for row in rows if row["time_ps"] > ps / 10]
    error = error_of_mean(temperature)
    print("mean temperature over %g ps: %.2f +- %.2f K; target %g K, %.1f errors away"
          % (ps * 0.9, mean(temperature), error, target, (mean(temperature) - target) / error))


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in ("nve", "nvt"):
        sys.exit(__doc__)
    build, what = os.path.abspath(sys.argv[1]), sys.argv[2]
    ps = float(sys.argv[3]) if len(sys.argv) == 4 else {"nve": 10.0, "nvt": 50.0}[what]
    {"nve": nve, "nvt": nvt}[what](build, ps)


main()
