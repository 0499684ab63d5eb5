# SPDX-License-Identifier: MIT
"""Our trajectories in the readers that people use: H5MD in h5py and MDAnalysis (default settings),
extended XYZ in ASE and MDAnalysis; and ASE's own file, with velocities, in our reader.  Needs numpy,
h5py, ASE and MDAnalysis (PyPI)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

try:
    import ase
    import ase.data
    import ase.io
    import ase.units
    import h5py
    import MDAnalysis
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.simplefilter("ignore")
PROGRAM = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")).resolve() / "tests/test_xyz_roundtrip"
ATOMS, STEPS = 130, np.arange(0, 120, 10)
EDGES = np.array([[11, 0.1, 0], [3, 12, 0], [-4, 2, 9]])
KJ_PER_MOL = 96.48533212331
I = np.arange(ATOMS)[:, None]
K = np.arange(3)[None, :]
NUMBERS = 1 + np.arange(ATOMS) % 118
MASSES = np.array([ase.data.atomic_masses_iupac2016[z] for z in NUMBERS]) * (1 + 0.01 * np.sin(I[:, 0]))
PERIODIC = {"isolated": (False,) * 3, "triclinic": (True,) * 3, "slab": (True, True, False)}


def start(kind):
    """Unwrapped positions of step 0, by id; the sample of tests/checkpoint_sample.h."""
    x = 31.7 * np.sin(I + 2.1 * K)
    return x if kind == "isolated" else x + (I - 7 * K) @ EDGES


def expected(kind, step):
    """Unwrapped positions, velocities [A/fs], forces [eV/A]."""
    x = start(kind) + 0.75 * step
    v = np.zeros((ATOMS, 3)) if kind == "isolated" else 0.01 * np.cos(3 * I + K)
    return x, v, 31.7 * np.sin(I + 2.1 * K) + 0.75 * step


def near(name, a, b, tolerance=1e-10):
    worst = np.abs(np.asarray(a, float) - np.asarray(b, float)).max()
    assert worst <= tolerance, f"{name}: differs by {worst}"


def check_h5(path, kind):
    with h5py.File(path) as file:
        assert list(file["h5md"].attrs["version"]) == [1, 1]
        group = file["particles/trajectory"]
        box = group["box"]
        assert box.attrs["dimension"] == 3
        wanted = ["periodic" if p else "none" for p in PERIODIC[kind]]
        assert list(box.attrs["boundary"]) == wanted
        assert ("edges" in box) == any(PERIODIC[kind])
        assert (group["species"][...] == NUMBERS).all()
        assert (group["id"][...] == np.arange(1, ATOMS + 1)).all()
        near("mass", group["mass"][...], MASSES)
        units = {"position": "Angstrom", "velocity": "Angstrom fs-1",
                 "force": "kJ mol-1 Angstrom-1"}
        for name, unit in units.items():
            assert group[f"{name}/value"].attrs["unit"] == unit
        for name in list(units) + ["image"] + ["box/edges"] * any(PERIODIC[kind]):
            assert (group[f"{name}/step"][...] == STEPS).all()
            near("time", group[f"{name}/time"][...], 0.5 * STEPS)
            assert group[f"{name}/time"].attrs["unit"] == "fs"
            assert len(group[f"{name}/value"]) == len(STEPS)
        for frame, step in enumerate(STEPS):
            x, v, f = expected(kind, step)
            wrapped, image = group["position/value"][frame], group["image/value"][frame]
            if any(PERIODIC[kind]):
                edges = box["edges/value"][frame]
                near("edges", edges, EDGES, 0)
                inside = wrapped @ np.linalg.inv(edges)
                for k in range(3):
                    if PERIODIC[kind][k]:
                        assert inside[:, k].min() > -1e-12 and inside[:, k].max() < 1 + 1e-12
                near("unwrapped", wrapped + image @ edges, x)
            else:
                near("positions", wrapped, x, 0)
            near("velocities", group["velocity/value"][frame], v, 0)
            near("forces", group["force/value"][frame] / KJ_PER_MOL, f, 1e-9)
            near("energy", file["observables/potential_energy/value"][frame], -1.1 * (step + 1))
        assert file["observables/temperature/value"].attrs["unit"] == "K"


def check_universe(universe, kind, h5):
    """Frames in MDAnalysis' units: A, ps, A/ps, kJ/(mol A)."""
    assert universe.trajectory.n_frames == len(STEPS)
    for frame, step in zip(universe.trajectory, STEPS, strict=True):
        x, v, f = expected(kind, step)
        if h5:
            near("time", frame.time, 0.5e-3 * step, 1e-9)
            near("velocities", frame.velocities, 1000 * v, 1e-4)
            near("forces", frame.forces, KJ_PER_MOL * f, 0.02)
            assert frame.data["step"] == step
            if any(PERIODIC[kind]):
                near("box", frame.triclinic_dimensions @ frame.triclinic_dimensions.T,
                     EDGES @ EDGES.T, 1e-3)
                shift = (frame.positions - x) @ np.linalg.inv(EDGES)
                near("whole periods", shift, np.round(shift), 1e-4)
                continue
            assert frame.dimensions is None
        near("positions", frame.positions, x, 1e-3)


def check_ase(path, kind):
    frames = ase.io.read(path, index=":", format="extxyz")
    assert len(frames) == len(STEPS)
    for atoms, step in zip(frames, STEPS, strict=True):
        x, v, f = expected(kind, step)
        assert (atoms.numbers == NUMBERS).all() and tuple(atoms.pbc) == PERIODIC[kind]
        assert (atoms.arrays["id"] == np.arange(1, ATOMS + 1)).all()
        near("positions", atoms.positions, x)
        near("velocities", atoms.arrays["velo"], v, 0)
        near("forces", atoms.get_forces(), f, 0)
        near("energy", atoms.get_potential_energy(), -1.1 * (step + 1))
        assert atoms.info["step"] == step and atoms.info["time"] == 0.5 * step
        if any(PERIODIC[kind]):
            near("cell", atoms.cell, EDGES, 0)
            near("stress", atoms.get_stress(), [0.1, 0.2, 0.3, 0.04, 0.05, 0.06], 0)
        else:
            assert not atoms.cell.any()


def check_ase_written(folder):
    """ASE writes momenta; we read velocities."""
    atoms = ase.Atoms(numbers=NUMBERS[:20], positions=start("triclinic")[:20], cell=EDGES, pbc=True)
    atoms.set_velocities(np.cos(I[:20] + K))
    for masses in (None, MASSES[:20]):
        velocities = atoms.get_velocities()
        if masses is not None:
            atoms.set_masses(masses)
            atoms.set_velocities(velocities)
        ase.io.write(folder / "ase.xyz", atoms, format="extxyz")
        text = subprocess.run([PROGRAM, "--velocities", folder / "ase.xyz"], check=True,
                              capture_output=True, text=True).stdout
        table = np.array([line.split() for line in text.splitlines()], float)
        assert (table[:, 0] == NUMBERS[:20]).all()
        near("masses", table[:, 1], atoms.get_masses(), 1e-4)
        near("velocities", table[:, 2:], velocities * ase.units.fs, 1e-7)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([PROGRAM, folder], check=True)
    for kind in PERIODIC:
        h5, xyz = folder / f"{kind}.h5", folder / f"{kind}.xyz"
        check_h5(h5, kind)
        check_ase(xyz, kind)
        check_universe(MDAnalysis.Universe(xyz), kind, False)
        check_universe(MDAnalysis.Universe(xyz, h5, format="H5MD"), kind, True)
        shutil.copy(h5, folder / f"{kind}.h5md")  # a name that MDAnalysis knows: no options at all
        check_universe(MDAnalysis.Universe(folder / f"{kind}.h5md"), kind, True)
        assert (MDAnalysis.Universe(xyz).atoms.names == [ase.data.chemical_symbols[z]
                                                          for z in NUMBERS]).all()
    check_ase_written(folder)
print("h5py, MDAnalysis and ASE agree with what was written")
