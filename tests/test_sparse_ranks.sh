#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Exchanges whose partners nobody knows beforehand, on virtual and on real ranks.
program=${TS_BUILD_DIR:-.}/tests/sparse_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
for count in 1 2 3 4 8; do
  timeout 120 mpirun --oversubscribe --bind-to none -n "$count" "$program" || {
    echo "$count ranks: failed"
    exit 1
  }
done
exit 0
