#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One simulation on several ranks against the same on one: golden systems, dynamics in every variant,
# and cells that partitions and halos find hard.
program=${TS_BUILD_DIR:-.}/tests/step_ranks
golden=${TS_TEST_DATA:-tests/data}/golden
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
run() {
  ranks=$1
  shift
  timeout 600 mpirun --oversubscribe --bind-to none -n "$ranks" "$program" "$@" || {
    echo "$ranks ranks, $*: failed"
    exit 1
  }
}
# More ranks than cores take turns and are slow; so they get little to do here.
for ranks in 1 7 8; do
  run $ranks "$golden/molecule-mixed.json"
done
run 2 "$golden/triclinic-cluster-bell.json" "$golden/slab-zero.json" "$golden/kcl64-smooth.json" \
  "$golden/made/degree-3.json" "$golden/made/degree-1-qkdot.json"
run 4 "$golden/molecule-first.json" "$golden"/forms/*.json
TS_TRANSPORT=starpu-mpi run 2 "$golden/molecule-first.json"
run 3 dynamics "$golden/kcl64-cluster.json"
run 4 shapes "$golden/kcl64-chain.json"
exit 0
