#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ranks.sh WHAT: one table of bench/bench_ranks on the ranks that it takes, beside what is published.
#   cache    rebuilding the edges every step or every tenth
#   overlap  hiding the exchange or waiting for it, also with messages delayed by bench/delay.so
#   transport  messages by `direct` and by StarPU-MPI, in turns
#   weak     632 atoms a rank
#   strong   632 atoms in all: time on 1 and 2 ranks, traffic on 1 to 8
#   uneven   a dense ball in water, cut by atoms and by edges
#   memory   what a rank holds of 5064 atoms
# Run in the build folder.  Up to as many ranks as cores have a core each; more share them, and then
# only counts mean something.  ROUNDS (default 3), DELAY (default 2000 us).
set -eu
what=${1:-}
wrap=
rounds=${ROUNDS:-3}
bench=${TS_BUILD_DIR:-.}/bench
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export STARPU_SILENT=1 STARPU_HOME="${STARPU_HOME:-${TMPDIR:-/tmp}}"
command -v mpirun > /dev/null || {
  echo "there is no mpirun" >&2
  exit 77
}
cores=$(nproc)
run() {
  ranks=$1
  shift
  bind=none
  [ "$ranks" -gt "$cores" ] || bind=core
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to $bind -n "$ranks" $wrap "$bench/bench_ranks" "$@"
}
size_head='ranks    atoms  on_rank     halo  peers    kB/step  messages  arrays_MB   RSS_MB'
[ -z "$what" ] || printf '%s on %s cores, load %s\n' "$what" "$cores" "$(cut -d ' ' -f 1 /proc/loadavg)"
case $what in
cache)
  echo "ranks interval kind      steps   neighbour_ms        step_ms"
  for ranks in 1 2; do run $ranks cache "$rounds"; done
  ;;
overlap)
  echo "ranks delay_us kind      steps      on_ms     off_ms   off/on    wait_on   wait_off"
  run 2 overlap "$rounds"
  wrap="env LD_PRELOAD=$bench/delay.so TS_DELAY_US=${DELAY:-2000}"
  run 2 overlap "$rounds"
  echo "paper, off over on: up to 1.17 at 512 GPUs"
  ;;
transport)
  echo "$size_head    step_ms    wait_ms"
  for _ in 1 2 3; do
    for transport in direct starpu-mpi; do
      echo "$transport"
      wrap="env TS_TRANSPORT=$transport"
      run 2 size 2 "$rounds"
    done
  done
  ;;
weak)
  echo "$size_head    step_ms    wait_ms"
  for _ in 1 2 3; do
    for ranks in 1 2; do run $ranks size $ranks "$rounds"; done
  done
  ;;
strong)
  echo "$size_head    step_ms    wait_ms"
  for _ in 1 2 3; do
    for ranks in 1 2; do run $ranks size 1 "$rounds"; done
  done
  for ranks in 3 4 5 6 7 8; do run $ranks size 1 0; done
  ;;
uneven)
  echo "ranks cut          atoms_max    edges_max   max/mean    step_ms    wait_ms to_even"
  for ranks in 2 4 8; do run $ranks uneven "$rounds"; done
  echo "paper, dense protein against water at equal counts: 1.13 to 1.33"
  ;;
memory)
  echo "$size_head"
  TS_BENCH_STRUCTURE=${TS_BENCH_STRUCTURE:-$(dirname "$0")/../examples/salt-water/salt-water-1728.xyz}
  export TS_BENCH_STRUCTURE
  for ranks in 1 2 4 8; do run $ranks size 1 0; done
  ;;
*)
  sed -n 's/^#   /  /p' "$0" >&2
  exit 1
  ;;
esac
