#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Partition and migration of atoms over the ranks of mpirun.
. "$(dirname "$0")/ranks.sh"
for count in 1 2 3 4 7 8; do
  on $count partition_ranks
done
