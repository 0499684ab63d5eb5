#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a Python test in the environment that tools/make-test-venv made in the build directory.
python=${TS_BUILD_DIR:-.}/venv/bin/python
[ -f "${TS_BUILD_DIR:-.}/venv/requirements.txt" ] || {
  echo "skipped: no Python environment (tools/make-test-venv ${TS_BUILD_DIR:-.}/venv makes it)"
  exit 77
}
exec "$python" "$@"
