# SPDX-License-Identifier: MIT
"""The program from outside: tiny systems, models from a seed, jobs, runs, and everything a run
has written in a form that can be compared.  Used by the tests of whole runs (test_run_*.py)."""
import contextlib
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import time

try:
    import h5py
except ImportError:  # only traj_h5() and checkpoint() need it
    h5py = None

BUILD = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")).resolve()
GOLDEN = pathlib.Path(os.environ.get("TS_TEST_DATA", "tests/data")).resolve() / "golden"
TESSERA = BUILD / "tessera"
SYMBOL = {1: "H", 6: "C", 7: "N", 8: "O", 17: "Cl", 19: "K"}
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]
CLOCK_COLUMNS = ("steps_per_s", "atoms_per_s")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="tessera-") as name:
        yield pathlib.Path(name)


def golden(name):
    """A small system with the description of the model it was made for."""
    system = json.loads((GOLDEN / f"{name}.json").read_text())
    system["symbols"] = [SYMBOL[z] for z in system["numbers"]]
    return system


def write_xyz(path, system, **more):
    """Extended XYZ; `more` may have velocities (A/fs)."""
    columns, head = "species:S:1:pos:R:3", []
    if any(system["pbc"]):
        cell = " ".join(repr(float(x)) for a in system["cell"] for x in a)
        head.append(f'Lattice="{cell}"')
    rows = [[s, *map(repr, map(float, x))]
            for s, x in zip(system["symbols"], system["positions"], strict=True)]
    if "velocities" in more:
        columns += ":velo:R:3"
        head.append("velocity_unit=A/fs")
        for row, v in zip(rows, more["velocities"], strict=True):
            row += map(repr, map(float, v))
    pbc = " ".join("FT"[bool(p)] for p in system["pbc"])
    head += [f"Properties={columns}", f'pbc="{pbc}"']
    if system.get("charge") is not None:
        head.append(f"charge={system['charge']} multiplicity={system['multiplicity']}")
    lines = [str(len(rows)), " ".join(head), *(" ".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def seed_model(where, description, seed=9, dtype="F32"):
    path = where.parent / (where.stem + ".description.json")
    path.write_text(json.dumps(description))
    subprocess.run([TESSERA, "model", "seed", "--description", path, "--seed", str(seed),
                    "--dtype", dtype, "-o", where], check=True)


def merge(base, changes):
    """A job with nested keys changed."""
    out = dict(base)
    for key, value in changes.items():
        out[key] = merge(out.get(key, {}), value) if isinstance(value, dict) else value
    return out


def write_job(path, job):
    path.write_text(json.dumps(job, indent=1))


def run(job, *words, status=0, launcher=(), timeout=300):
    """Run a job, check its exit status and that a failure is one line; returns what it printed."""
    done = subprocess.run([*launcher, TESSERA, "run", job, *words], capture_output=True, text=True,
                          timeout=timeout)
    said = f"{job} {words}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == status, f"{said}\nexpected status {status}"
    errors = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
    assert len(errors) == (status != 0), said
    return done


def ranks_of(process):
    """The ranks that mpirun has started on this machine, by rank."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent != process.pid:
            continue
        for word in environment:
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(word.split(b"=")[1])] = int(entry.name)
    return found


def lives(pid):
    """Whether a process does anything yet (one that nobody has waited for does not)."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_for_row(process, log, step):
    """Until log.csv of a run that is going on has the row of that step."""
    for _ in range(30000):
        if log.exists() and f"\n{step}," in log.read_text():
            return
        assert process.poll() is None, f"{log}: ended with {process.returncode} before step {step}"
        time.sleep(0.01)
    raise AssertionError(f"{log}: no row of step {step} within five minutes")


def refuses(job, *words, status=1, says):
    """A run that ends with an error line that has these parts; returns the line."""
    done = run(job, *words, status=status)
    line = done.stderr.splitlines()[-1]
    for part in says:
        assert part in line, f"{line!r} lacks {part!r}"
    return line


def log_rows(where):
    """log.csv as text, without the columns of the clock."""
    with open(where / "log.csv", newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in CLOCK_COLUMNS}
                for row in csv.DictReader(file)]
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(set(steps)), f"{where}: steps {steps}"
    return rows


def traj_h5(path):
    """Every dataset and attribute of an HDF5 file, as bytes."""
    found = {}

    def visit(name, item):
        for key, value in item.attrs.items():
            found[f"{name}@{key}"] = repr(value)
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item.shape, item[...].tobytes())
    with h5py.File(path) as file:
        file.visititems(visit)
        steps = file["particles/trajectory/position/step"][...].tolist()
        times = file["particles/trajectory/position/time"][...].tolist()
    assert steps == sorted(set(steps)) and times == sorted(set(times)), f"{path}: {steps} {times}"
    return found


def checkpoint(path):
    """Arrays of a checkpoint."""
    with h5py.File(path) as file:
        return {name: file[name][...] for name in file}


def state(where):
    """All that a run has written, apart from what depends on the clock and on where it was cut."""
    found = {}
    for path in sorted(where.iterdir()):
        if path.name == "log.csv":
            found[path.name] = log_rows(where)
        elif path.name == "summary.json":
            summary = json.loads(path.read_text())
            found[path.name] = {k: summary[k] for k in ("status", "atoms", "step", "mean")}
        elif path.name.startswith("traj") and path.suffix == ".h5":
            found[path.name] = traj_h5(path)
        else:
            found[path.name] = path.read_bytes()
    return found


def assert_same(expected, got, what):
    """Name what differs."""
    assert expected.keys() == got.keys(), f"{what}: {sorted(expected)} and {sorted(got)}"
    for name, value in expected.items():
        if value == got[name]:
            continue
        if isinstance(value, dict):
            assert_same(value, got[name], f"{what}: {name}")
        if isinstance(value, list):
            for row, other in zip(value, got[name]):
                assert row == other, f"{what}: {name}: {row} and {other}"
            rows = f"{len(value)} and {len(got[name])} rows"
            assert len(value) == len(got[name]), f"{what}: {name}: {rows}"
        raise AssertionError(f"{what}: {name} differs")
