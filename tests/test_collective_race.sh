#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The protocols' atomics under ThreadSanitizer: the files that know no MPI, built anew.
top=${TS_SOURCE_DIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
echo 'int main(void) { return 0; }' >"$work/empty.c"
"$cc" -fsanitize=thread "$work/empty.c" -o "$work/empty" 2>/dev/null && "$work/empty" || {
  echo "skipped: $cc cannot build with -fsanitize=thread here, or what it builds cannot run"
  exit 77
}
"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -I"$top" -o "$work/race" \
  "$top"/comm/collective_buffer.c "$top"/comm/collective_shot.c "$top"/comm/collective_line.c \
  "$top"/comm/collective_op.c "$top"/runtime/error.c "$top"/runtime/memory.c \
  "$top"/tests/test_collective_threads.c -lpthread || exit 1
TSAN_OPTIONS=halt_on_error=1 "$work/race" 1500
