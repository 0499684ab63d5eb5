#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every C and C++ file is as .clang-format would write it.  Fix with: clang-format -i FILE
top=${TS_SOURCE_DIR:-.}
command -v clang-format >/dev/null || {
  echo "skipped: clang-format is not installed"
  exit 77
}
cd "$top" || exit 1
find runtime comm neighbor models codelets md tests bench \
  \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print |
  sort | xargs clang-format --dry-run --Werror
