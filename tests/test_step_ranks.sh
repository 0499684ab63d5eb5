#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One simulation on several ranks against the same on one: golden systems, dynamics in every variant,
# and cells that partitions and halos find hard.
. "$(dirname "$0")/ranks.sh"
golden=${TS_TEST_DATA:-tests/data}/golden
# More ranks than cores take turns and are slow; so they get little to do here.
for ranks in 1 7 8; do
  on $ranks step_ranks "$golden/molecule-mixed.json"
done
on 2 step_ranks "$golden/triclinic-cluster-bell.json" "$golden/slab-zero.json" \
  "$golden/kcl64-smooth.json" "$golden/made/degree-3.json" "$golden/made/degree-1-qkdot.json"
on 4 step_ranks "$golden/molecule-first.json" "$golden"/forms/*.json
(
  export TS_TRANSPORT=starpu-mpi
  on 2 step_ranks "$golden/molecule-first.json"
) || exit 1
on 3 step_ranks dynamics "$golden/kcl64-cluster.json"
on 4 step_ranks shapes "$golden/kcl64-chain.json"
