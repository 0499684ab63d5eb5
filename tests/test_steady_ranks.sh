#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Steps between two rebuilds allocate nothing and say only what is planned, on two and four ranks.
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
# More ranks than cores take turns and are slow, less so if they do not yield on top of that.
for run in "2 100" "4 30"; do
  timeout 300 mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 0 -n ${run% *} \
    "${TS_BUILD_DIR:-.}/tests/steady_ranks" ${run#* } || exit 1
done
