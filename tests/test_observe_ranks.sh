#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Observables have the same bits on any number of ranks.
program=${TS_BUILD_DIR:-.}/tests/observe_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
for count in 1 2 3 8; do
  timeout 200 mpirun --oversubscribe --bind-to none -n "$count" "$program" || {
    echo "$count ranks: failed"
    exit 1
  }
done
exit 0
