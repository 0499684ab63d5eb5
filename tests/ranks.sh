# SPDX-License-Identifier: MIT
#
# Read by the scripts that run a test on several ranks: `. "$(dirname "$0")/ranks.sh"`.
command -v mpirun >/dev/null || {
  echo "skipped: there is no mpirun"
  exit 77
}

# on COUNT PROGRAM [ARGUMENT...]: one program of tests/ on so many ranks, also more than there are cores
on() {
  count=$1 program=$2
  shift 2
  timeout 600 mpirun --oversubscribe --bind-to none -n "$count" \
    "${TS_BUILD_DIR:-.}/tests/$program" "$@" || {
    echo "$program $*: failed on $count ranks"
    exit 1
  }
}
