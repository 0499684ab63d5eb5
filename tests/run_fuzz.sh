#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Fuzz every parser for SECONDS each (30 when not said) under the address and undefined-behaviour
# sanitizers:  tests/run_fuzz.sh [SECONDS [NAME...]]
#
# A target NAME is tests/fuzz_NAME.c.  Its comment says what it is built from: lines with
# "fuzz-sources:", "fuzz-libs:" and, for MPI, "fuzz-needs: mpi".  Seeds are the files of tests/data/fuzz/NAME; tests/data/fuzz/
# NAME.dict, where it exists, holds words to try.  An input that fails is kept and named.
seconds=${1:-${TS_FUZZ_SECONDS:-30}}
[ $# -gt 0 ] && shift
top=${TS_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=${TS_BUILD_DIR:-/tmp}/fuzz
clang=${TS_FUZZ_CC:-clang}

mkdir -p "$work" || exit 1
command -v "$clang" >/dev/null || {
  echo "skipped: clang is not installed"
  exit 77
}
echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n < 0; }' >"$work/probe.c"
"$clang" -fsanitize=fuzzer,address,undefined "$work/probe.c" -o "$work/probe" 2>/dev/null || {
  echo "skipped: this clang has no libFuzzer (Debian: libclang-rt-14-dev)"
  exit 77
}

# what the comment of a target says behind a key
declared() {
  sed -n "s|^ \* $2: *\([^*]*\).*|\1|p" "$top/tests/fuzz_$1.c" | tr '\n' ' '
}

build() {
  sources=
  for source in $(declared "$1" fuzz-sources); do
    sources="$sources $top/$source"
  done
  mpi=
  [ -z "$(declared "$1" fuzz-needs)" ] || mpi=$(mpicc --showme | sed 's/^[^ ]* //')
  # shellcheck disable=SC2046,SC2086
  "$clang" -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -I "$top" $(declared "$1" fuzz-flags) \
    "$top/tests/fuzz_$1.c" $sources $(declared "$1" fuzz-libs) $mpi -o "$work/fuzz_$1"
}

fuzz() {
  corpus=$work/corpus_$1
  mkdir -p "$corpus"
  seeds=
  [ -d "$top/tests/data/fuzz/$1" ] && seeds=$top/tests/data/fuzz/$1
  dict=
  [ -f "$top/tests/data/fuzz/$1.dict" ] && dict=-dict=$top/tests/data/fuzz/$1.dict
  # shellcheck disable=SC2086
  "$work/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 $dict \
    -artifact_prefix="$work/$1-" -print_final_stats=1 "$corpus" $seeds >"$work/fuzz_$1.log" 2>&1
}

# shellcheck disable=SC2012,SC2046
[ $# -gt 0 ] || set -- $(cd "$top/tests" && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
failed=0
for name; do
  if ! build "$name"; then
    echo "fuzz $name: does not build"
    failed=1
  elif fuzz "$name"; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/fuzz_$name.log")
    echo "fuzz $name: $runs inputs in $seconds s, no failure"
  else
    echo "fuzz $name: FAILED; the end of $work/fuzz_$name.log:"
    grep -v '^#' "$work/fuzz_$name.log" | tail -40
    failed=1
  fi
done
exit $failed
