# SPDX-License-Identifier: MIT
"""The JSON Schema that `tessera schema` prints is a valid one (draft 2020-12), and it takes and
refuses the same jobs as the program does.  Needs jsonschema (PyPI)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)

BUILD = pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")).resolve()
DATA = pathlib.Path(os.environ.get("TS_TEST_DATA", "tests/data"))
PROGRAM = str(BUILD / "tessera")

schema = json.loads(subprocess.run([PROGRAM, "schema"], check=True, capture_output=True).stdout)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
example = json.loads((DATA / "job" / "example.json").read_text())


def at(path):
    """The object in `job` that holds the last part of a path, and that part."""
    *sections, key = path.split(".")
    node = job
    for section in sections:
        node = node.setdefault(section, {})
    return node, key


# (key, value, accepted): one change of the example each
CASES = [
    (None, None, True),
    ("task", "energy", True), ("task", "relax", False), ("task", 1, False),
    ("steps", 0, True), ("steps", -1, False), ("steps", 1.5, False),
    ("steps", 10**12, True), ("steps", 10**12 + 1, False),
    ("timestep_fs", 20, True), ("timestep_fs", 0, False), ("timestep_fs", 20.5, False),
    ("charge", 1, False), ("multiplicity", 1, False),
    ("max_walltime", "1:00:00", True), ("max_walltime", None, True),
    ("max_walltime", "0:00:00", False), ("max_walltime", "1:60:00", False),
    ("max_walltime", 60, False),
    ("ensemble.kind", "npt", False), ("ensemble.thermostat", "csvr", False),
    ("ensemble.friction_per_ps", 0, False), ("ensemble.pressure", 1, False),
    ("ensemble", {"temperature_K": 300}, False), ("ensemble", {"kind": "nve"}, True),
    ("velocities.source", "read", True), ("velocities.seed", 2**63 - 1, True),
    ("velocities.seed", 2**63, False), ("velocities.seed", "one", False),
    ("neighbors.level1", "bins", True), ("neighbors.routing.mode", "splitmix", True),
    ("neighbors.routing.mode", "random", False), ("neighbors.routing.seed", -1, False),
    ("partition.cut", "edges", True),
    ("partition.period", "auto", True), ("partition.period", 0, False),
    ("partition.sort", "root", True), ("execution.collectives", "ll128", True),
    ("execution.transfers", "starpu-mpi", True), ("execution.transfers", "tcp", False),
    ("execution.collectives", "fast", False), ("partition.slack", -1, False),
    ("execution.matrix", "tf32", False), ("execution.workers", 3, True),
    ("execution.workers", "many", False), ("execution.radial_tolerance", 1e-9, True),
    ("execution.recompute", 1.5, False), ("execution.scheduler", "", False),
    ("output.trajectory.file", "a.xyz", True), ("output.trajectory.file", "a.dcd", False),
    ("output.trajectory.file", "a/b.h5", False), ("output.trajectory.file", ".h5", False),
    ("output.rdf.pairs", ["O-O"] * 17, False), ("output.rdf.pairs", ["O"], False),
    ("output.rdf.pairs", [], True), ("trace", {}, False), ("cutof", 6, False),
]

failures = 0
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "job.json"
    for key, value, accepted in CASES:
        job = json.loads(json.dumps(example))
        if key:
            node, name = at(key)
            node[name] = value
        path.write_text(json.dumps(job))
        by_schema = validator.is_valid(job)
        # check goes on to the structure, which is not there: the job itself was accepted then
        message = subprocess.run([PROGRAM, "check", str(path)], capture_output=True,
                                 text=True).stderr
        by_program = "job.json" not in message
        if by_schema != accepted or by_program != accepted:
            failures += 1
            print(f"{key} = {value!r}: expected {accepted}, schema {by_schema}, "
                  f"program {by_program}: {message.strip()}")

    path.write_text(json.dumps(example))
    printed = subprocess.run([PROGRAM, "check", str(path)], capture_output=True, text=True).stdout
    filled = json.loads(printed)
    validator.validate(filled)
    for section in schema["properties"]:
        assert section in filled, section

print(f"{len(CASES)} jobs, {failures} judged wrongly")
sys.exit(1 if failures else 0)
