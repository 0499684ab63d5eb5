# SPDX-License-Identifier: MIT
"""rdf.csv of a short run equals what MDAnalysis counts in the trajectory of the same run, and beyond
half the box what a direct sum over images counts.  Needs MDAnalysis and h5py (PyPI)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import h5py
    import MDAnalysis
    import numpy
    from MDAnalysis.analysis.rdf import InterRDF
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BUILD = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")).resolve()
EXAMPLE = pathlib.Path(os.environ.get("TS_SOURCE_DIR", ".")).resolve() / "examples" / "salt-water"
PAIRS = ["O-O", "O-H", "H-O", "Cl-H"]
BIN, R_MAX = 0.05, 14.0  # the box is 18.63
HALF = 160               # bins below half the box, all that MDAnalysis can count


def columns(path):
    names, *rows = path.read_text().split()
    return dict(zip(names.split(","), numpy.array([row.split(",") for row in rows], float).T))


def direct(frames, box, first, second):
    """Ordered pairs per bin over 27 images."""
    shifts = numpy.array(numpy.meshgrid(*[[-1, 0, 1]] * 3)).reshape(3, -1).T * box
    count = numpy.zeros(len(table["r_A"]))
    for x in frames:
        for shift in shifts:
            d = numpy.linalg.norm(x[first][:, None] - x[second][None] - shift, axis=2)
            d[(first[:, None] == second[None]) & (numpy.abs(shift).max() == 0)] = numpy.inf
            count += numpy.histogram(d, len(count), (0, BIN * len(count)))[0]
    return count


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    job = {"structure": str(EXAMPLE / "salt-water-216.xyz"),
           "model": str(EXAMPLE / "salt-water-small.safetensors"), "steps": 20,
           "output": {"trajectory": {"every": 10},
                      "rdf": {"pairs": PAIRS, "r_max_A": R_MAX, "bin_A": BIN, "every": 10}}}
    (folder / "job.json").write_text(json.dumps(job))
    subprocess.run([BUILD / "tessera", "run", folder / "job.json"], check=True,
                   stdout=subprocess.DEVNULL)
    table = columns(folder / "run" / "rdf.csv")
    warnings.simplefilter("ignore")
    universe = MDAnalysis.Universe.empty(632, trajectory=True)
    with h5py.File(folder / "run" / "traj.h5") as file:
        group = file["particles"][list(file["particles"])[0]]
        z = group["species"][...].reshape(-1)[:632]
        frames = group["position/value"][...]
        box = group["box/edges/value"][0, 0, 0]
assert box == 18.63
assert len(frames) == 3, f"{len(frames)} frames"
assert len(table["r_A"]) == round(R_MAX / BIN)

for pair in PAIRS:
    element = {"H": 1, "O": 8, "Cl": 17}
    first, second = (numpy.flatnonzero(z == element[name]) for name in pair.split("-"))
    others = len(second) - (pair == "O-O")
    g, n, r = table[f"g_{pair}"], table[f"n_{pair}"], table["r_A"]
    shell = 4 / 3 * numpy.pi * ((r + BIN / 2) ** 3 - (r - BIN / 2) ** 3)
    count = direct(frames, box, first, second)
    assert count.sum() > 0
    numpy.testing.assert_allclose(
        g, count / (len(frames) * len(first) * others / box**3 * shell), rtol=1e-9, err_msg=pair)
    numpy.testing.assert_allclose(
        n, numpy.cumsum(count) / len(frames) / len(first), rtol=1e-9, err_msg=pair)

    universe.load_new(numpy.asarray(frames, numpy.float32), dimensions=[box] * 3 + [90] * 3)
    theirs = InterRDF(universe.atoms[first], universe.atoms[second], nbins=HALF,
                      range=(0, HALF * BIN), exclusion_block=(1, 1) if pair == "O-O" else None)
    theirs = theirs.run().results
    numpy.testing.assert_allclose(theirs.bins, r[:HALF], atol=1e-9)
    # theirs are float positions: a pair in ten thousand falls into the next bin
    moved = numpy.abs(theirs.rdf - g[:HALF]) * shell[:HALF]
    assert moved.sum() < 1e-3 * (g * shell)[:HALF].sum(), f"{pair}: {moved.sum()}"
print(f"{len(PAIRS)} pairs agree with MDAnalysis and with a direct count")
