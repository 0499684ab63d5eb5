# SPDX-License-Identifier: MIT
"""Reference results that no published run gave: models of degree 1 and 3, and the sphere head behind
two stages.

    make_golden.py DEFINITION OUT [NAME...]     writes DEFINITION's results as OUT/NAME.json

DEFINITION is the folder with e2former_v2.py and seeded_weights.py, the model in float64 NumPy, up to
degree 2.  It is extended here by harmonics of any degree (derivatives of Legendre polynomials times
powers of z + ix) and by Clebsch-Gordan blocks from Racah's formula and a change of basis: neither
is how models/ derives them.  Forces are differences of fourth order, good to about 1e-10 eV/A; no
edge may cross a cutoff on the way, so positions are shaken until none is near one.
"""
import json
import pathlib
import sys
from math import factorial, pi, sqrt

import numpy as np
from numpy.polynomial import legendre

STEP = 2e-4  # A
GOLDEN = pathlib.Path(__file__).parent / "data" / "golden"
SMALL = {"channels": 16, "heads": 8, "head_dim": 4, "head_channels": 2, "bases": 16,
         "average_degree": 23.01, "head": "omol25", "silu_scale": 1.6791767923989418,
         "sigmoid_scale": 1.8467055342154763, "merge": None}
FAR = {"cutoff": 8.0, "lower": 0.1, "envelope": "poly", "orders": ["zero"],
       "exclude_senders": [0, 1]}
SMOOTH = {"softmax_floor": "absolute"}  # with "max" slopes jump where another score becomes largest


def short(*orders):
    return {"cutoff": 5.0, "lower": 1e-4, "envelope": "poly", "orders": list(orders)}


# name: (seed, geometry, what differs from SMALL)
CASES = {
    "degree-1": (301, "molecule-mixed", {"lmax": 1, "stages": [short("first", "zero")]}),
    "degree-1-cluster": (302, "triclinic-cluster",
                         {"lmax": 1, "stages": [short("first"), FAR], "merge": "cluster",
                          **SMOOTH}),
    "degree-1-qkdot": (303, "molecule-mixed",
                       {"lmax": 1, "stages": [short("first")], "score": "qkdot",
                        "head_kind": "sphere"}),
    "degree-3": (304, "molecule-mixed", {"lmax": 3, "stages": [short("first", "first")]}),
    "degree-3-cluster": (305, "triclinic-cluster",
                         {"lmax": 3, "stages": [short("first"), FAR], "merge": "cluster",
                          **SMOOTH}),
    "degree-3-qkdot": (306, "molecule-mixed",
                       {"lmax": 3, "stages": [short("zero", "first")], "score": "qkdot"}),
    "degree-3-qkdots": (307, "molecule-mixed",
                        {"lmax": 3, "stages": [short("first")], "score": "qkdots",
                         "weighting": "softplus", "head_kind": "sphere"}),
    "sphere-cluster": (308, "triclinic-cluster",
                       {"lmax": 2, "stages": [short("first"), FAR], "merge": "cluster",
                        "head_kind": "sphere", **SMOOTH}),
}


def spherical(u, L):
    """Vectors u [N,3] -> [N,(L+1)^2], |Y_l|^2 = 2l+1 on the sphere, degree l growing as |u|^l."""
    r = np.linalg.norm(u, axis=1)
    y, turn = u[:, 1] / r, (u[:, 2] + 1j * u[:, 0]) / r
    rows = []
    for l in range(L + 1):
        for m in range(-l, l + 1):
            along = legendre.Legendre.basis(l).deriv(abs(m))(y) if m else \
                legendre.Legendre.basis(l)(y)
            around = (turn ** abs(m)).imag if m < 0 else (turn ** m).real
            scale = sqrt((2 * l + 1) * factorial(l - abs(m)) / factorial(l + abs(m))
                         * (2 if m else 1))
            rows.append(scale * along * around * r ** l)
    return np.stack(rows, 1)


def complex_coefficient(j1, m1, j2, m2, j3):
    """<j1 m1 j2 m2 | j3 m1+m2>"""
    f, m3 = factorial, m1 + m2
    if abs(m3) > j3:
        return 0.0
    scale = sqrt((2 * j3 + 1) * f(j3 + j1 - j2) * f(j3 - j1 + j2) * f(j1 + j2 - j3)
                 / f(j1 + j2 + j3 + 1) * f(j3 + m3) * f(j3 - m3) * f(j1 - m1) * f(j1 + m1)
                 * f(j2 - m2) * f(j2 + m2))
    terms = range(max(0, j2 - j3 - m1, j1 - j3 + m2), min(j1 + j2 - j3, j1 - m1, j2 + m2) + 1)
    return scale * sum((-1) ** k / (f(k) * f(j1 + j2 - j3 - k) * f(j1 - m1 - k) * f(j2 + m2 - k)
                                    * f(j3 - j2 + m1 + k) * f(j3 - j1 - m2 + k)) for k in terms)


def basis(l):
    """Rows: complex harmonics, columns: real ones."""
    q, h = np.zeros((2 * l + 1, 2 * l + 1), complex), sqrt(0.5)
    q[l, l] = 1
    for m in range(1, l + 1):
        q[l - m, l + m], q[l - m, l - m] = h, -1j * h
        q[l + m, l + m], q[l + m, l - m] = (-1) ** m * h, 1j * (-1) ** m * h
    return (-1j) ** l * q


def block(l1, l3):
    C = np.zeros((2 * l1 + 1, 3, 2 * l3 + 1))
    for a in range(-l1, l1 + 1):
        for b in (-1, 0, 1):
            if abs(a + b) <= l3:
                C[l1 + a, 1 + b, l3 + a + b] = complex_coefficient(l1, a, 1, b, l3)
    G = np.einsum("ia,kb,cn,ikn->abc", basis(l1), basis(1), np.conj(basis(l3).T), C)
    assert np.abs(G.imag).max() < 1e-14
    G = np.where(np.abs(G.real) < 1e-14, 0.0, G.real)
    return G / np.sqrt((G ** 2).sum((0, 1)))


def blocks(L):
    return [[l3, [[l1, block(l1, l3).tolist()] for l1 in range(max(l3 - 1, 0), min(l3 + 1, L) + 1)
                  if l1 + l3 > 0]] for l3 in range(L + 1)]


def directions(L):
    """The sphere head's constants [18, (L+1)^2]."""
    n, k = 18, np.arange(18)
    angle, z = 2 * pi * k / ((1 + sqrt(5)) / 2), 1 - 2 * (k + 0.5) / 18
    p = np.stack([np.cos(angle) * np.sqrt(1 - z * z), np.sin(angle) * np.sqrt(1 - z * z), z], 1)
    share = 1 / np.exp(-((p[:, None] - p[None]) ** 2).sum(-1) / 0.15).sum(1)
    return spherical(p * (share * n / share.sum())[:, None], L) / sqrt(4 * pi)


def far_from_cutoffs(definition, model, system, pos):
    for stage in model["stages"]:
        r = definition.neighbours(pos, system["cell"], system["pbc"], stage["cutoff"] + 0.1, 1e-4,
                                  np.full(len(pos), True))[2]
        if np.any(np.abs(r - stage["cutoff"]) < 8 * STEP):
            return False
    return True


def make(definition, seeded, name):
    seed, geometry, changes = CASES[name]
    system = json.loads((GOLDEN / f"{geometry}.json").read_text())
    model = dict(SMALL, **changes)
    config = dict(model, cg_first_order=blocks(model["lmax"]))
    tensors = seeded.model(config, seed)
    if "head_kind" in model:
        tensors[f"head.energy_heads.{model['head']}.sphharm_weights"] = directions(model["lmax"])
    if system["cell"]:
        system["cell"] = np.array(system["cell"])
    pos, rng = np.array(system["positions"]), np.random.default_rng(seed)
    while not far_from_cutoffs(definition, model, system, pos):
        pos = np.round(np.array(system["positions"]) + 0.05 * rng.uniform(-1, 1, pos.shape), 6)

    def energy(x):
        return definition.energy(tensors, config, x, system["numbers"], system["cell"],
                                 system["pbc"])

    force = np.zeros_like(pos)
    for i in np.ndindex(pos.shape):
        e = {}
        for h in (-2, -1, 1, 2):
            x = pos.copy()
            x[i] += h * STEP
            e[h] = energy(x)[0]
        force[i] = -(8 * (e[1] - e[-1]) - (e[2] - e[-2])) / (12 * STEP)
    total, atoms = energy(pos)
    return {"name": name, "note": "made by tests/make_golden.py", "seed": seed,
            "model": config if name in ("degree-1", "degree-3") else model,
            "cell": None if system["cell"] is None else system["cell"].tolist(),
            "pbc": system["pbc"], "charge": None, "multiplicity": None,
            "numbers": system["numbers"], "positions": pos.tolist(), "energy": total,
            "atom_energies": atoms.tolist(), "forces": np.round(force, 13).tolist()}


def main():
    sys.path.insert(0, sys.argv[1])
    sys.dont_write_bytecode = True
    import e2former_v2
    import seeded_weights
    e2former_v2.spherical = spherical
    for name in sys.argv[3:] or CASES:
        path = pathlib.Path(sys.argv[2]) / f"{name}.json"
        path.write_text(json.dumps(make(e2former_v2, seeded_weights, name)) + "\n")
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
