#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Long runs that judge the dynamics: python3 bench/dynamics.py BUILD_DIR nve|nvt|ranks [PS]

nve  the example (632 atoms) at constant energy from rest (150 K once equilibrated;
     the potential is shallow, see nvt), in double at 0.25 and 0.5 fs and in float at 0.5 fs: drift
     of the energy (least squares) and its fluctuation, which must fall as the square of the time
     step.  Default 10 ps: an hour on two cores; 1 ps shows the square.
nvt  eight water molecules at 100 K under Langevin friction 10/ps: mean temperature against its
     statistical error (blocking).  Default 50 ps: ten minutes.  At 100 K, because the example
     potential has a false minimum at small H-O-H angles (0.28 eV away) that a run at 300 K falls
     into sooner or later.
ranks  four ranks against one.  The example from rest at constant energy, in double at 0.5 fs: drift
     and fluctuation of both over the same steps.  And its radial distributions at 150 K under
     friction 10/ps, in float: how far apart those of one and of four ranks are, with another seed, in
     standard errors by blocks of a sixteenth of the run, over its second half (z).  Default 1 ps.
"""
import csv
import math
import os
import subprocess
import sys
import tempfile

for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
    os.environ.setdefault(name, "1")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLE = os.path.join(ROOT, "examples", "salt-water")


def run(build, directory, structure, ranks=1, resume=False, **keys):
    """One run; returns the rows of its log.csv as dictionaries of numbers."""
    job = os.path.join(directory, "job.json")
    with open(job, "w", encoding="utf-8") as file:
        file.write('{"structure": "%s", "model": "%s"}'
                   % (structure, os.path.join(EXAMPLE, "salt-water-small.safetensors")))
    words = [os.path.join(build, "tessera"), "run", job] + ["--resume"] * resume
    if ranks > 1:
        words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] + words
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


def print_energy(build, ps, precision, dt, ranks):
    """A run of the example from rest: drift and fluctuation; returns the energies."""
    atoms = 632
    with tempfile.TemporaryDirectory() as directory:
        rows = run(build, directory, os.path.join(EXAMPLE, "salt-water-216.xyz"), ranks,
                   steps=round(ps * 1000 / dt), timestep_fs=dt, ensemble__kind="nve",
                   velocities__temperature_K=0, execution__precision=precision,
                   output__log_every=max(1, round(2 / dt)),
                   output__trajectory__every=0, output__checkpoint__every=0)
    t = [row["time_ps"] for row in rows]
    e = [row["total_eV"] for row in rows]
    tm, em = mean(t), mean(e)
    slope = sum((a - tm) * (b - em) for a, b in zip(t, e)) / sum((a - tm) ** 2 for a in t)
    rms = math.sqrt(mean([(b - em) ** 2 for b in e]))
    print("%-6d %-10s %-8g %6g %22.3f %18.5f"
          % (ranks, precision, dt, ps, slope / atoms * 1e6, rms), flush=True)
    return e


def print_energy_head():
    print("%-6s %-10s %-8s %6s %22s %18s"
          % ("ranks", "precision", "dt/fs", "ps", "drift/ueV/atom/ps", "rms of E/eV"), flush=True)


def nve(build, ps):
    print_energy_head()
    for precision, dt in (("double", 0.25), ("double", 0.5), ("float", 0.5)):
        print_energy(build, ps, precision, dt, 1)


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


def rdf_blocks(build, ps, ranks, seed, blocks=8):
    """Radial distributions of `blocks` parts of the second half of a run, and the distances."""
    dt, every = 0.5, 10
    steps = round(ps * 1000 / dt / (2 * blocks) / every) * every  # of a block
    sums = []
    with tempfile.TemporaryDirectory() as directory:
        for last in range(blocks, 2 * blocks + 1):
            run(build, directory, os.path.join(EXAMPLE, "salt-water-216.xyz"), ranks,
                resume=last > blocks, steps=steps * last, timestep_fs=dt, ensemble__kind="nvt",
                ensemble__temperature_K=150, ensemble__friction_per_ps=10,
                velocities__temperature_K=150, velocities__seed=seed,
                output__rdf__pairs='["O-O", "O-H"]', output__rdf__every=every,
                output__rdf__bin_A=0.1, output__rdf__r_max_A=6, output__trajectory__every=0)
            with open(os.path.join(directory, "run", "rdf.csv"), encoding="utf-8") as file:
                rows = [[float(x) for x in row] for row in list(csv.reader(file))[1:]]
            frames = steps * last // every + 1
            sums.append([[g * frames for g in row[1::2]] for row in rows])
    parts = [[[(a - b) * every / steps for a, b in zip(new, old)] for new, old in zip(after, before)]
             for before, after in zip(sums, sums[1:])]
    return [row[0] for row in rows], parts


def mean_and_error(x):
    m = mean(x)
    return m, math.sqrt(sum((a - m) ** 2 for a in x) / (len(x) - 1) / len(x))


def compare_rdfs(build, ps):
    r, one = rdf_blocks(build, ps, 1, 1)
    _, many = rdf_blocks(build, ps, 4, 2)  # other noise; equal noise gives equal runs
    print("%-6s %26s %26s %16s %10s %8s" % ("pair", "first peak, 1 rank", "first peak, 4 ranks",
                                            "error, 1 and 4", "mean z^2", "most z"))
    for column, pair in enumerate(("O-O", "O-H")):  # beyond the bond
        values = [[mean_and_error([block[i][column] for block in parts]) for i in range(len(r))]
                  for parts in (one, many)]
        z = [(a[0] - b[0]) / math.hypot(a[1], b[1])
             for a, b in zip(*values) if a[1] > 0 and b[1] > 0]
        peaks = []
        for g in values:
            i = max((i for i in range(len(r)) if r[i] > (2 if pair == "O-O" else 1.3)),
                    key=lambda i: g[i][0])
            peaks.append("%.3f +- %.3f at %.2f A" % (*g[i], r[i]))
        errors = "%.4f, %.4f" % tuple(mean([v[1] for v in g]) for g in values)
        print("%-6s %26s %26s %16s %10.2f %8.1f"
              % (pair, *peaks, errors, mean([a * a for a in z]), max(map(abs, z))), flush=True)


def ranks(build, ps):
    print_energy_head()
    one, four = (print_energy(build, ps, "double", 0.5, ranks) for ranks in (1, 4))
    apart = max(abs(a - b) for a, b in zip(one, four))
    print("energies of the two runs differ by at most %.1e eV of %.6g eV" % (apart, one[0]))
    compare_rdfs(build, ps)


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in ("nve", "nvt", "ranks"):
        sys.exit(__doc__)
    build, what = os.path.abspath(sys.argv[1]), sys.argv[2]
    default = {"nve": 10.0, "nvt": 50.0, "ranks": 1.0}
    ps = float(sys.argv[3]) if len(sys.argv) == 4 else default[what]
    {"nve": nve, "nvt": nvt, "ranks": ranks}[what](build, ps)


main()
