#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Blocks of ids, structures, checkpoints and trajectories over several ranks.  Ranks may outnumber
# cores by far, so they yield while they wait.
. "$(dirname "$0")/ranks.sh"
export OMPI_MCA_mpi_yield_when_idle=1
for program in test_blocks_ids test_xyz_slices test_checkpoint_ranks test_trajectory_ranks; do
  on 2 $program
done
on 3 test_blocks_ids
on 3 test_checkpoint_ranks
on 4 test_xyz_slices
on 7 test_blocks_ids
on 7 test_trajectory_ranks
on 8 test_xyz_slices
on 8 test_checkpoint_ranks
