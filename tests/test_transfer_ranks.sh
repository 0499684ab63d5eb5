#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Data handles move between ranks by both transports, also with more threads than cores.
program=${TS_BUILD_DIR:-.}/tests/transfer_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
for count in 1 2 3 4 8; do
  timeout 200 mpirun --oversubscribe --bind-to none -n "$count" "$program" || {
    echo "$count ranks: failed"
    exit 1
  }
done
exit 0
