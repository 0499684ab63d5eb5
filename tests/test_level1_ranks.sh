#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Real ranks find the halo that virtual ones do.
command -v mpirun >/dev/null || {
  echo "skipped: mpirun is not installed"
  exit 77
}
export OMPI_MCA_mpi_yield_when_idle=1
for count in 2 3 4 7 8; do
  mpirun --oversubscribe --bind-to none -n $count "${TS_BUILD_DIR:-.}/tests/test_level1_real" || {
    echo "test_level1_real fails on $count ranks"
    exit 1
  }
done
