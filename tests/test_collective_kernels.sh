#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The kernels of collectives among GPUs, with threads of the host in place of theirs.
top=${TS_SOURCE_DIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -Werror -Wno-unused-function -I"$top" -o "$work/kernels" \
  "$top/tests/collective_kernels.cc" -lpthread || exit 1
"$work/kernels"
