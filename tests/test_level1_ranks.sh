#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Real ranks find the halo that virtual ones do.
. "$(dirname "$0")/ranks.sh"
export OMPI_MCA_mpi_yield_when_idle=1
for count in 2 3 4 7 8; do
  on $count test_level1_real
done
