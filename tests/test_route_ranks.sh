#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs on routing, exchanges and the directory over several ranks: powers of two and not.
# Ranks may outnumber cores by far, so they yield while they wait.
command -v mpirun >/dev/null || {
  echo "skipped: mpirun is not installed"
  exit 77
}
export OMPI_MCA_mpi_yield_when_idle=1
failed=0

# ranks COUNT PROGRAM...
ranks() {
  count=$1
  shift
  for program; do
    mpirun --oversubscribe --bind-to none -n "$count" "${TS_BUILD_DIR:-.}/tests/$program" || {
      echo "$program fails on $count ranks"
      failed=1
    }
  done
}

ranks 2 test_route_exchange
ranks 3 test_route_exchange test_directory_ranks test_route_level1
ranks 4 test_route_terms
ranks 8 test_route_exchange test_directory_ranks
ranks 16 test_route_level1
exit $failed
