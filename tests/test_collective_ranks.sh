#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The collectives on 1 to 8 ranks, more than most machines have cores for each to spin on; on
# pretended nodes; with a refused value; and with a killed rank, after which all end soon.
program=${TS_BUILD_DIR:-.}/tests/collective_ranks
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}
cache=$(mktemp) || exit 1
trap 'rm -f "$cache"' EXIT
TS_TEST_CACHE=$cache
export TS_TEST_CACHE

ranks() {
  count=$1
  shift
  timeout 200 mpirun --oversubscribe --bind-to none -n "$count" "$program" "$@"
}
for case in "1 0" "2 0" "3 0" "4 0" "8 0" "2 1" "4 2" "5 2"; do
  ranks $case || {
    echo "ranks, ranks of a node: $case: failed"
    exit 1
  }
done
# the measured tables of those were kept, and are read again
lines=$(wc -l <"$cache")
ranks 2 0 && [ "$lines" -ge 6 ] && [ "$(wc -l <"$cache")" -eq "$lines" ] || {
  echo "the cache of tables is not used:"
  cat "$cache"
  exit 1
}
ranks 3 0 sentinel || {
  echo "a refused value hangs, or is not refused"
  exit 1
}
start=$(date +%s)
ranks 4 0 death >/dev/null 2>&1 && {
  echo "a killed rank is no failure"
  exit 1
}
[ $(($(date +%s) - start)) -le 15 ] || {
  echo "a killed rank is noticed late"
  exit 1
}
left=$(find /dev/shm -name "tessera-$(id -u)-*" -newer "$cache" 2>/dev/null)
[ -z "$left" ] || {
  echo "left behind: $left"
  exit 1
}
exit 0
