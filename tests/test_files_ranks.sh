#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Blocks of ids, structures, checkpoints and trajectories over several ranks.  Ranks may outnumber
# cores by far, so they yield while they wait.
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

ranks 2 test_blocks_ids test_xyz_slices test_checkpoint_ranks test_trajectory_ranks
ranks 3 test_blocks_ids test_checkpoint_ranks
ranks 4 test_xyz_slices
ranks 7 test_blocks_ids test_trajectory_ranks
ranks 8 test_xyz_slices test_checkpoint_ranks
exit $failed
