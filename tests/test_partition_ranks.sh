#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Partition and migration of atoms over the ranks of mpirun.
program=${TS_BUILD_DIR:-.}/tests/partition_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
for count in 1 2 3 4 7 8; do
  timeout 120 mpirun --oversubscribe --bind-to none -n "$count" "$program" || {
    echo "$count ranks: failed"
    exit 1
  }
done
exit 0
