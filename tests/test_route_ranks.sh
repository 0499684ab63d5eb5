#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs on routing, exchanges and the directory over several ranks: powers of two and not.
# Ranks may outnumber cores by far, so they yield while they wait.
. "$(dirname "$0")/ranks.sh"
export OMPI_MCA_mpi_yield_when_idle=1
on 2 test_route_exchange
for program in test_route_exchange test_directory_ranks test_route_level1; do
  on 3 $program
done
on 4 test_route_terms
on 8 test_route_exchange
on 8 test_directory_ranks
on 8 test_route_terms
on 16 test_route_level1
