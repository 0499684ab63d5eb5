#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The planner's plan is the one that as many real ranks make.
program=${TS_BUILD_DIR:-.}/tests/plan_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
for count in 2 4 8; do
  timeout 250 mpirun --oversubscribe --bind-to none -n "$count" "$program" || {
    echo "$count ranks: failed"
    exit 1
  }
done
exit 0
