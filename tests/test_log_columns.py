# SPDX-License-Identifier: MIT
"""The columns of log.csv are what docs/units.md says, recomputed from the trajectory of the same run
with numpy: kinetic energy, both temperatures, momentum, totals, conserved quantity, time; in NVE and
under the thermostat.  Needs h5py (PyPI)."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BUILD = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")).resolve()
EXAMPLE = pathlib.Path(os.environ.get("TS_SOURCE_DIR", ".")).resolve() / "examples" / "salt-water"
BOLTZMANN = 1.380649e-23 / 1.602176634e-19               # eV/K
MASS = 1.66053906660e-27 * 1e10 / 1.602176634e-19        # u in eV fs^2/A^2
KJ_PER_MOL = 1.602176634e-19 * 6.02214076e23 / 1000      # in one eV
ATOMS, DT = 632, 0.5


def run(folder, ensemble):
    job = {"structure": str(EXAMPLE / "salt-water-216.xyz"),
           "model": str(EXAMPLE / "salt-water-small.safetensors"), "steps": 12, "timestep_fs": DT,
           "ensemble": ensemble, "velocities": {"temperature_K": 300},
           "output": {"log_every": 4,
                      "trajectory": {"every": 4, "velocities": True, "forces": True}}}
    (folder / "job.json").write_text(json.dumps(job))
    subprocess.run([BUILD / "tessera", "run", folder / "job.json"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(folder / "run" / "log.csv", newline="") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    with h5py.File(folder / "run" / "traj.h5") as file:
        group = file["particles"][list(file["particles"])[0]]
        mass = group["mass"][...].reshape(-1)[:ATOMS] * MASS
        v = group["velocity/value"][...]
        f = group["force/value"][...] / KJ_PER_MOL
        assert group["force/value"].attrs["unit"] in ("kJ mol-1 Angstrom-1", b"kJ mol-1 Angstrom-1")
    return rows, mass, v, f


def close(name, value, expected, tolerance):
    assert abs(value - expected) <= tolerance, f"{name}: {value!r}, expected {expected!r}"


for ensemble, dof in (({"kind": "nve"}, 3 * ATOMS - 3),
                      ({"kind": "nvt", "temperature_K": 300, "friction_per_ps": 50}, 3 * ATOMS)):
    with tempfile.TemporaryDirectory() as folder:
        rows, mass, v, f = run(pathlib.Path(folder), ensemble)
    assert [row["step"] for row in rows] == [0, 4, 8, 12]
    for row, velocity, force in zip(rows, v, f, strict=True):
        velocity, force = velocity.astype(float), force.astype(float)
        kinetic = 0.5 * (mass[:, None] * velocity**2).sum()
        half = kinetic + (DT**2 * force**2 / (8 * mass[:, None])).sum() * (row["step"] > 0)
        single = 1e-5 if v.dtype == numpy.float32 else 1e-9
        close("time", row["time_ps"], row["step"] * DT / 1000, 1e-12)
        close("kinetic", row["kinetic_eV"], kinetic, single * kinetic)
        close("total", row["total_eV"], row["potential_eV"] + row["kinetic_eV"], 1e-7)
        close("temperature on step", row["temperature_on_step_K"],
              2 * kinetic / dof / BOLTZMANN, single * 300)
        close("temperature", row["temperature_K"], 2 * half / dof / BOLTZMANN, single * 300)
        largest = numpy.linalg.norm(force, axis=1)
        close("largest force", row["max_force_eV_per_A"], largest.max(), single * largest.max())
        for k, axis in enumerate("xyz"):
            close("momentum", row[f"momentum_{axis}_eV_fs_per_A"],
                  (mass * velocity[:, k]).sum(), single * 100)
    first, last = rows[0], rows[-1]
    close("drawn temperature", first["temperature_K"], 300 * (3 * ATOMS - 3) / dof, 1e-6)
    close("conserved", last["conserved_eV"], first["conserved_eV"], 2e-5 * ATOMS * 10)
    if ensemble["kind"] == "nve":
        close("no heat", last["conserved_eV"], last["total_eV"], 0)
    else:
        assert abs(last["conserved_eV"] - last["total_eV"]) > 1e-3
print("NVE and NVT rows agree with the trajectory")
