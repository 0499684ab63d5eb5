#!/bin/sh
# SPDX-License-Identifier: MIT
#
# plan.sh: what `tessera plan` predicts for 1, 2 and 4 ranks beside what the same ranks measure, for
# the example's salt water: 632 atoms in all, and 632 for each rank.  The costs of a rank and the
# network are measured first (bench/bench_costs).  Run in the build folder.  ROUNDS (default 31).
# On a machine that does other work real steps are slower than costs, which are the least of rounds.
# Ranks that share a core are planned with --share; their real times also have the changes between
# processes, which no cost is measured for.
set -eu
build=${TS_BUILD_DIR:-.}
source=$(dirname "$0")/..
example=$source/examples/salt-water
rounds=${ROUNDS:-31}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export STARPU_SILENT=1 STARPU_HOME="${STARPU_HOME:-${TMPDIR:-/tmp}}"
command -v mpirun > /dev/null || {
  echo "there is no mpirun" >&2
  exit 77
}
cores=$(nproc)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() {
  bind=none
  [ "$1" -gt "$cores" ] || bind=core
  count=$1
  shift
  mpirun --oversubscribe --bind-to $bind -n "$count" "$@"
}
# the value of a column of the planner's CSV
planned() {
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
                        NR == 2 { print $at }' "$folder/plan.csv"
}
network=$(run 2 "$build/bench/bench_costs" "$folder/costs.json" "$rounds" | tail -n 1)
printf 'costs of a rank [s]:\n'
sed -n 's/^  "\(.*_s\)": \([^,]*\),*$/  \1 \2/p' "$folder/costs.json"
printf 'network: %s\n%s cores, load %s\n\n' "$network" "$cores" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf 'ranks  atoms on_rank    halo (planned)  step/ms (planned)  off/%%  wait/ms (planned) efficiency\n'
for growing in no yes; do
  for ranks in 1 2 4; do
    copies=1
    [ $growing = no ] || copies=$ranks
    [ $growing = no ] || [ "$ranks" -gt 1 ] || continue
    share=$(((ranks + cores - 1) / cores))
    # shellcheck disable=SC2086
    "$build/tessera" plan "$example/salt-water-216.xyz" --repeat $copies,1,1 --ranks "$ranks" \
      --model "$example/salt-water-small.safetensors" --sample all --scheme box --costs \
      "$folder/costs.json" $network --share $share --csv "$folder/plan.csv" > /dev/null 2>&1
    run "$ranks" "$build/bench/bench_ranks" size $copies "$rounds" > "$folder/real" 2> /dev/null
    real=$(tail -n 1 "$folder/real")
    # ranks atoms on_rank halo peers kB messages arrays RSS step wait
    echo "$real" | awk -v halo1="$(planned stage_1.halo_atoms.most)" \
      -v halo2="$(planned stage_2.halo_atoms.most)" -v step="$(planned time.hit_step_s)" \
      -v wait="$(planned time.exchange_wait_s)" -v efficiency="$(planned time.weak_efficiency)" '{
        halo = halo2 > halo1 ? halo2 : halo1
        printf "%5d %6d %7d %7d (%7d) %8.2f (%7.2f) %6.0f %8.2f (%7.2f) %10.2f\n", $1, $2, $3, $4,
          halo, $10, 1e3 * step, 100 * (1e3 * step / $10 - 1), $11, 1e3 * wait, efficiency }'
  done
done
