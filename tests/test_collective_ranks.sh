#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The collectives on 1 to 8 ranks, more than most machines have cores for each to spin on; on
# pretended nodes; with a refused value; and with a killed rank, after which all end soon.
. "$(dirname "$0")/ranks.sh"
cache=$(mktemp) || exit 1
trap 'rm -f "$cache"' EXIT
TS_TEST_CACHE=$cache
export TS_TEST_CACHE

for count in 1 2 3 4 8; do
  on $count collective_ranks 0
done
on 2 collective_ranks 1
on 4 collective_ranks 2
on 5 collective_ranks 2
# the measured tables of those were kept, and are read again
lines=$(wc -l <"$cache")
on 2 collective_ranks 0
[ "$lines" -ge 6 ] && [ "$(wc -l <"$cache")" -eq "$lines" ] || {
  echo "the cache of tables is not used:"
  cat "$cache"
  exit 1
}
on 3 collective_ranks 0 sentinel # a refused value is refused, and does not hang
start=$(date +%s)
(on 4 collective_ranks 0 death) >/dev/null 2>&1 && {
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
