#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The library exports only names of ours: ts_ (documented), tsi_ (plumbing), TS_.  Names of C++
# templates that the compiler instantiated (weak symbols: nm's V, W and u) are not exports of ours;
# MPI_Test is a wrapper of MPI's profiling interface (runtime/engine.c).
lib=${TS_BUILD_DIR:-.}/.libs/libtessera.a
[ -f "$lib" ] || {
  echo "$lib is missing"
  exit 1
}
bad=$(nm --defined-only --extern-only "$lib" |
  awk 'NF == 3 && $2 !~ /[VWuvw]/ && $3 !~ /^(ts_|tsi_|TS_|MPI_Test$|__asan|__odr_asan|__gcov)/ {print $3}' | sort -u)
[ -z "$bad" ] || {
  printf 'exported, but not called ts_*, tsi_* or TS_*:\n%s\n' "$bad"
  exit 1
}
# a check that sees nothing is none
nm --defined-only --extern-only "$lib" | grep -q ' T ts_' || {
  echo "no ts_ function in $lib"
  exit 1
}
