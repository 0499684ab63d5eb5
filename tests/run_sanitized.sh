#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a program that was built with --enable-sanitizers.  Any finding fails it; a leak does when
# one of our functions is on its stack: MPI, hwloc and StarPU leave memory behind at exit, partly
# from plug-ins that are unloaded by then and cannot be named in a list of exceptions.
case $1 in
  *tests/golden) # the small systems use all of the code; the large ones would take minutes
    small=${TS_TEST_DATA:-tests/data}/golden
    set -- "$1" "$small/molecule-mixed.json" "$small/slab-zero.json" \
      "$small/triclinic-cluster-bell.json" "$small/triclinic-first.json"
    ;;
  *tests/test_step_interval | *tests/test_step_invariance | *tests/test_step_tiles | *tests/test_step_virial)
    echo "skipped: many steps would take minutes under sanitizers; golden runs the same code"
    exit 77
    ;;
esac
log=$(mktemp) || exit 1
LSAN_OPTIONS=exitcode=0 "$@" >"$log" 2>&1
status=$?
cat "$log"
if grep -qE '^ +#[0-9]+ 0x[0-9a-f]+ in .*(/| )(runtime|comm|neighbor|models|codelets|md|tests)/[a-z0-9_]+\.(c|cc|h):' "$log"; then
  echo "a sanitizer found something of ours (above)"
  status=1
fi
rm -f "$log"
exit $status
