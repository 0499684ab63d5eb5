#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks the model of the collectives' protocol exhaustively, in both modes; and that the checker
# finds the errors of a broken one.
top=$(cd "${TS_SOURCE_DIR:-.}" && pwd)
command -v spin >/dev/null && command -v cc >/dev/null || {
  echo "skipped: spin (Debian package spin) or cc is not installed"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# check OPTIONS...: prints the verifier's report
check() {
  spin "$@" -a "$top/tests/spin/collective.pml" >spin.log 2>&1 || { cat spin.log; return 1; }
  cc -O1 -DSAFETY -w -o pan pan.c || return 1
  ./pan -m100000 2>&1
}
for mode in "-DLL" "-DSENTINEL"; do
  check $mode >report || exit 1
  grep -q 'errors: 0$' report && ! grep -q 'max search depth too small' report || {
    echo "model $mode:"
    cat report
    exit 1
  }
  echo "model $mode: $(grep 'states, stored' report), no errors"
  check $mode -DBROKEN >report || exit 1
  grep -q 'errors: 0$' report && {
    echo "model $mode -DBROKEN: the checker finds nothing"
    exit 1
  }
done
exit 0
