# SPDX-License-Identifier: MIT
"""What users of other programs ran into, through the whole program on one rank: boxes and
molecules far from where they could be, cells thinner than the cutoff, lone atoms, rotated cells,
large reference energies, noise that must not depend on lists.  Names in brackets are the numbers
of the collected reports."""
import math
import random
import re

import program

DOUBLE = {"execution": {"precision": "double"}}
LATTICE = 5.43
count = 0


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def along(system, fractions):
    """The vector with these coordinates along the cell's vectors."""
    return [sum(f * a[k] for f, a in zip(fractions, system["cell"])) for k in range(3)]


def moved(system, shift, which=None):
    return dict(system, positions=[
        [x[k] + shift[k] * (which is None or i in which) for k in range(3)]
        for i, x in enumerate(system["positions"])])


def turned(system, matrix):
    """Positions and cell rotated together."""
    turn = [[[sum(m[k] * x[k] for k in range(3)) for m in matrix] for x in system[key]]
            for key in ("positions", "cell")]
    return dict(system, positions=turn[0], cell=turn[1])


def replica(system, n):
    corners = [along(system, (a, b, c)) for a in range(n) for b in range(n) for c in range(n)]
    return dict(system, cell=[[n * x for x in a] for a in system["cell"]],
                symbols=system["symbols"] * n**3,
                positions=[[p + q for p, q in zip(x, c)]
                           for c in corners for x in system["positions"]])


def energy(folder, system, model="cluster", **changes):
    """Energy, forces, positions as written, and the log."""
    global count
    count += 1
    name = f"{count}"
    program.write_xyz(folder / f"{name}.xyz", system)
    job = {"structure": f"{name}.xyz", "model": f"{model}.safetensors", "task": "energy",
           "execution": {"radial_tolerance": 1e-6, "workers": 1},
           "output": {"directory": name, "trajectory": {"file": "traj.xyz"}}}
    program.write_job(folder / "job.json", program.merge(job, changes))
    done = program.run(folder / "job.json")
    lines = (folder / name / "traj.xyz").read_text().splitlines()
    rows = [line.split() for line in lines[2:]]
    assert [row[0] for row in rows] == system["symbols"]
    value = float(re.search(r" energy=(\S+)", lines[1])[1])
    assert math.isfinite(value)
    return value, [[float(x) for x in row[5:8]] for row in rows], \
        [[float(x) for x in row[1:4]] for row in rows], done.stderr


def largest(a, b):
    return max(abs(p - q) for x, y in zip(a, b, strict=True) for p, q in zip(x, y, strict=True))


def close(what, difference, tolerance):
    print(f"{what}: {difference:.1e}")
    assert difference <= tolerance, f"{what}: {difference}, expected at most {tolerance}"


def moved_boxes(folder, cluster):
    """[F08, F09, F29] Wrapping, any number of periods; images are kept."""
    e, f, x, _ = energy(folder, cluster, **DOUBLE)
    close("positions as given", largest(x, cluster["positions"]), 1e-13)
    for what, shift in (("box moved by +7 L", along(cluster, (7, 7, 7))),
                        ("box moved by -0.4 L", along(cluster, (-0.4, -0.4, -0.4))),
                        ("box moved by 13.1 -8.2 -2.7 A", (13.132, -8.229, -2.7))):
        e2, f2, x2, _ = energy(folder, moved(cluster, shift), **DOUBLE)
        close(f"{what}, energy", abs(e2 - e), 1e-10)
        close(f"{what}, forces", largest(f2, f), 1e-10)
        close(f"{what}, positions", largest(x2, moved(cluster, shift)["positions"]), 1e-12)
    far = moved(cluster, along(cluster, (100, -100, 100)), which={5, 6, 7})
    e2, f2, x2, _ = energy(folder, far, **DOUBLE)
    close("three atoms 100 boxes away, energy", abs(e2 - e), 1e-9)
    close("three atoms 100 boxes away, forces", largest(f2, f), 1e-9)
    close("three atoms 100 boxes away, positions", largest(x2, far["positions"]), 1e-10)
    # [F41] rotated with its cell, in other order, and once more
    s, c = math.sin(0.7), math.cos(0.7)
    axes = [[c, -s, 0.0], [s * 0.6, c * 0.6, -0.8]]
    axes.append(cross(*axes))
    e2, f2, _, _ = energy(folder, turned(cluster, axes), **DOUBLE)
    close("rotated cell, energy", abs(e2 - e), 1e-10)
    expected = turned({"positions": f, "cell": []}, axes)["positions"]
    close("rotated cell, forces", largest(f2, expected), 1e-10)
    order = random.Random(3).sample(range(24), 24)
    mixed = dict(cluster, symbols=[cluster["symbols"][i] for i in order],
                 positions=[cluster["positions"][i] for i in order])
    e2, f2, _, _ = energy(folder, mixed, **DOUBLE)
    close("other order, energy", abs(e2 - e), 1e-10)
    close("other order, forces", largest(f2, [f[i] for i in order]), 1e-10)
    close("once more", abs(energy(folder, cluster, **DOUBLE)[0] - e), 0)


def skins(folder, cluster):
    """[F15] The edge set is that of the cutoff."""
    e, f, _, _ = energy(folder, cluster, neighbors={"skin_A": 0.5})
    for skin in (0, 2):
        e2, f2, _, _ = energy(folder, cluster, neighbors={"skin_A": skin})
        close(f"skin {skin}, energy", abs(e2 - e), 0)
        close(f"skin {skin}, forces", largest(f2, f), 0)


def corners(folder, cluster):
    """[F27] Nine atoms on and near the corner of a hexagonal cell."""
    cell = [[8.0, 0.0, 0.0], [-4.0, 4 * math.sqrt(3), 0.0], [0.0, 0.0, 10.0]]
    near = [(0.0, 0.0, 0.0), (2.0, 0, 0), (-2.0, 0.1, 0), (0.1, 2.0, 0), (-0.1, -2.0, -0.1),
            (1.5, 1.5, 0.1), (-1.5, -1.4, 0), (0, 0, 1.0), (0, 0, -1.0)]
    hexagon = {"cell": cell, "pbc": [True] * 3,
               "symbols": ["O", "H", "O", "H", "K", "H", "O", "H", "Cl"],
               "positions": [list(x) for x in near]}
    e, f, _, _ = energy(folder, moved(hexagon, (1.234, 2.345, 3.456)), **DOUBLE)
    for corner in ((0, 0, 0), (1, 0, 0), (1, 1, 1), (-0.0, 1, -0.0), (1 - 1e-16, 1 + 2e-16, 0)):
        e2, f2, _, _ = energy(folder, moved(hexagon, along(hexagon, corner)), **DOUBLE)
        close(f"corner {corner}", max(abs(e2 - e), largest(f2, f)), 1e-10)


def thin_cells(folder):
    """[F02, F04, F05] Cells thinner than the cutoff: many images of a pair, also of one atom."""
    half = LATTICE / 2
    silicon = {"cell": [[0, half, half], [half, 0, half], [half, half, 0]], "pbc": [True] * 3,
               "symbols": ["O", "O"], "positions": [[0, 0, 0], [LATTICE / 4] * 3]}
    cubic = {"cell": [[4.0, 0, 0], [0, 4.0, 0], [0, 0, 4.0]], "pbc": [True] * 3, "symbols": ["O"],
             "positions": [[0.3, 3.9, 2]]}
    for what, system, edges in (("silicon", silicon, 46), ("simple cubic", cubic, 18)):
        e, f, _, said = energy(folder, system, "six", neighbors={"skin_A": 0}, **DOUBLE)
        assert f"edges      {edges}.0 per atom to 6 + 0 Å" in said, said
        close(f"{what}, forces", largest(f, [[0, 0, 0]] * len(f)), 1e-12)
        e3 = energy(folder, replica(system, 3), "six", **DOUBLE)[0]
        close(f"{what}, 27 cells, energy per cell", abs(e3 / 27 - e), 1e-11)
    fcc = replica(dict(silicon, symbols=["O"], positions=[[0, 0, 0]]), 4)
    nudged = dict(fcc, cell=[[x * (1 + 1e-15) for x in a] for a in fcc["cell"]])
    e, e2 = (energy(folder, system, "six", **DOUBLE)[0] for system in (fcc, nudged))
    close("fcc with its cell off by 1e-15", abs(e2 - e), 1e-10)


def lone_atoms(folder):
    """[F13, F17, F11] One atom, a molecule in vacuum, and far from the origin in float."""
    atom = {"cell": [[100.0, 0, 0], [0, 100, 0], [0, 0, 100]], "symbols": ["O"],
            "positions": [[0.0, 0, 0]]}
    boxed, isolated = (energy(folder, dict(atom, pbc=[p] * 3)) for p in (True, False))
    close("lone atom, forces", largest(boxed[1] + isolated[1], [[0, 0, 0]] * 2), 0)
    close("lone atom, boxed and isolated", abs(boxed[0] - isolated[0]), 0)
    molecule = program.golden("molecule-mixed")
    e, f, _, _ = energy(folder, molecule, "molecule", **DOUBLE)
    box = dict(molecule, cell=[[60.0, 0, 0], [0, 60, 0], [0, 0, 60]], pbc=[True] * 3)
    e2, f2, _, _ = energy(folder, box, "molecule", **DOUBLE)
    close("molecule in a box of 60 A", max(abs(e2 - e), largest(f2, f)), 1e-11)
    for far in (300, 1000, 10000):
        e2, f2, _, _ = energy(folder, moved(molecule, [far] * 3), "molecule")
        close(f"molecule at {far} A in float, energy", abs(e2 - e), 3e-6 * len(f))
        close(f"molecule at {far} A in float, forces", largest(f2, f), 5e-5)


def reference_energies(folder, cluster):
    """[F42] Large energies of the elements do not swallow small differences, in float either."""
    bent = moved(cluster, (0.002, 0, 0), which={3})
    small = energy(folder, bent, **DOUBLE)[0] - energy(folder, cluster, **DOUBLE)[0]
    assert 1e-4 < abs(small) < 1e-2, small
    for precision, tolerance in (("double", 1e-9), ("float", 2e-5)):
        changes = {"execution": {"precision": precision}}
        base = energy(folder, cluster, "heavy", **changes)[0]
        assert base < -40000, base
        close(f"difference of {small:.1e} eV on {base:.0f} eV, {precision}",
              abs(energy(folder, bent, "heavy", **changes)[0] - base - small), tolerance)


def noise(folder, cluster):
    """[F43] The thermostat's noise belongs to atoms and steps, not to lists."""
    frames = []
    for k, (skin, rebuild, period) in enumerate(((0.5, 10, 100), (2, 50, 7), (0, 1, 1))):
        program.write_xyz(folder / "noise.xyz", cluster)
        program.write_job(folder / "job.json", {
            "structure": "noise.xyz", "model": "cluster.safetensors",
            "steps": 40, "timestep_fs": 0.2,
            "ensemble": {"kind": "nvt", "temperature_K": 300, "friction_per_ps": 1000},
            "neighbors": {"skin_A": skin, "rebuild": rebuild}, "partition": {"period": period},
            "execution": {"precision": "double", "radial_tolerance": 1e-6, "workers": 1},
            "output": {"directory": f"noise{k}", "trajectory": {"file": "traj.xyz", "every": 40}}})
        program.run(folder / "job.json")
        last = (folder / f"noise{k}" / "traj.xyz").read_text().splitlines()[-24:]
        frames.append([[float(x) for x in line.split()[1:4]] for line in last])
    assert largest(frames[0], cluster["positions"]) > 0.05, "nothing has moved"
    close("skin 0.5 and 2, after 40 steps", largest(frames[0], frames[1]), 1e-10)
    close("skin 0.5 and none, after 40 steps", largest(frames[0], frames[2]), 1e-10)


with program.folder() as folder:
    cluster = program.golden("triclinic-cluster")
    program.seed_model(folder / "cluster.safetensors", cluster["model"])
    heavy = {str(z): -1900.0 - z for z in (1, 6, 7, 8, 17, 19)}
    heavy = dict(cluster["model"], reference_energies=heavy)
    program.seed_model(folder / "heavy.safetensors", heavy)
    stage = dict(cluster["model"]["stages"][0], cutoff=6.0)
    six = dict(cluster["model"], merge=None, stages=[stage])
    program.seed_model(folder / "six.safetensors", six)
    program.seed_model(folder / "molecule.safetensors", program.golden("molecule-mixed")["model"])
    moved_boxes(folder, cluster)
    skins(folder, cluster)
    corners(folder, cluster)
    thin_cells(folder)
    lone_atoms(folder)
    reference_energies(folder, cluster)
    noise(folder, cluster)
print(f"{count} energies")
