#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Recording, replaying, failing and logging under ThreadSanitizer, which is told what orders tasks
# (tests/race_hooks.h); once more with an order that is left out, which it must find.  And the
# threads that look for messages, on two ranks.
top=${TS_SOURCE_DIR:-.}
build=${TS_BUILD_DIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
echo 'int main(void) { return 0; }' >"$work/empty.c"
"$cc" -fsanitize=thread "$work/empty.c" -o "$work/empty" 2>/dev/null && "$work/empty" || {
  echo "skipped: $cc cannot build with -fsanitize=thread here, or what it builds cannot run"
  exit 77
}
flags() {
  sed -n "s/^$1 = //p" "$build/Makefile"
}
[ -n "$(flags CMOCKA_LIBS)" ] || {
  echo "skipped: there is no cmocka"
  exit 77
}
cflags="-std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -I$top $(flags STARPU_CFLAGS)
  $(flags MPI_CFLAGS) $(flags HWLOC_CFLAGS) $(flags CMOCKA_CFLAGS)"
libs="$(flags STARPU_LIBS) $(flags MPI_LIBS) $(flags HWLOC_LIBS) $(flags CMOCKA_LIBS) -lm"
objects=
for file in error log memory number topology transfers transfers_starpu; do
  "$cc" $cflags -c "$top/runtime/$file.c" -o "$work/$file.o" || exit 1
  objects="$objects $work/$file.o"
done
"$cc" $cflags -DRACE_ENGINE -include "$top/tests/race_hooks.h" -c "$top/runtime/engine.c" \
  -o "$work/engine.o" || exit 1
objects="$objects $work/engine.o"
for kind in KEEPS FORGETS; do
  "$cc" $cflags -DRACE_$kind -include "$top/tests/race_hooks.h" -c "$top/runtime/program.c" \
    -o "$work/program_$kind.o" || exit 1
done
link() { # program, test, kind
  "$cc" $cflags -o "$work/$1" "$top/tests/$2.c" "$work/program_$3.o" $objects $libs || exit 1
}
link log test_log_lines KEEPS
link replay test_program_replay KEEPS
link failure test_program_failure KEEPS
link forgetful test_program_replay FORGETS
"$cc" $cflags -c "$top/runtime/program.c" -o "$work/program.o" || exit 1
"$cc" $cflags -o "$work/transfer" "$top/tests/transfer_ranks.c" "$work/program.o" $objects \
  "$top/comm/world.c" $libs || exit 1
# StarPU and MPI are not compiled for it: their memory is not looked at, only their locks
TSAN_OPTIONS="halt_on_error=1 exitcode=66 ignore_noninstrumented_modules=1
  suppressions=$top/tests/race.supp"
export TSAN_OPTIONS
for program in log replay failure; do
  "$work/$program" >"$work/said" 2>&1 || {
    cat "$work/said"
    exit 1
  }
done
if command -v mpirun >/dev/null; then
  mpirun --oversubscribe --bind-to none -n 2 "$work/transfer" >"$work/said" 2>&1 || {
    cat "$work/said"
    exit 1
  }
fi
"$work/forgetful" >"$work/said" 2>&1
[ $? = 66 ] && grep -q 'data race' "$work/said" || {
  cat "$work/said"
  echo "a race that was made is not found"
  exit 1
}
