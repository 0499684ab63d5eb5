# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Sourced by the scripts beside it: where things are, and an up-to-date build in build/.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${TS_BUILD:-$top/build}
# Open MPI refuses root unless told twice; a container is often nothing but root.
if ((EUID == 0)); then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# Configure when that has not been done or options are given; then make finds what changed.
build_tessera() {
  "$top/tools/install-dependencies"
  [[ -x $top/configure ]] || (cd "$top" && autoreconf --install)
  mkdir -p "$build"
  cd "$build"
  if [[ ! -f Makefile ]] || (($# > 0)); then
    "$top/configure" --quiet "$@"
  fi
  make --jobs="$(nproc)" --silent all
}
