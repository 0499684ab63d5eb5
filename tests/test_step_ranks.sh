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
few="$golden/molecule-mixed.json $golden/triclinic-cluster-bell.json $golden/forms/form-qkdot.json"
many="$golden/molecule-first.json $golden/slab-zero.json $golden/kcl64-smooth.json
  $golden/made/degree-3.json $golden/made/degree-1-qkdot.json"
for ranks in 1 3 7 8; do
  # shellcheck disable=SC2086
  run $ranks $few
done
# shellcheck disable=SC2086
run 2 $few $many
# shellcheck disable=SC2086
run 4 $many "$golden"/forms/*.json
run 2 dynamics "$golden/kcl64-chain.json" "$golden/triclinic-first.json"
run 3 dynamics "$golden/kcl64-cluster.json"
run 4 shapes "$golden/kcl64-chain.json"
run 7 shapes "$golden/molecule-mixed.json"
exit 0
