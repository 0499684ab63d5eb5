#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command line from outside: exit statuses, one error line, and what goes where.
tessera=${TS_BUILD_DIR:-.}/tessera
[ -x "$tessera" ] || {
  echo "$tessera is missing"
  exit 1
}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# expect STATUS PATTERN WORDS...: the exit status, and a pattern in the last line of standard error
expect() {
  status=$1 pattern=$2
  shift 2
  "$tessera" "$@" >"$folder/out" 2>"$folder/err"
  got=$?
  if [ "$got" != "$status" ] ||
    { [ -n "$pattern" ] && ! tail -n 1 "$folder/err" | grep -q -- "$pattern"; }; then
    echo "tessera $*: status $got (expected $status), message:"
    cat "$folder/err"
    echo "  expected: $pattern"
    failed=1
  fi
  if [ "$(grep -c '^tessera: error: ' "$folder/err")" != "$([ "$status" = 0 ] && echo 0 || echo 1)" ]; then
    echo "tessera $*: not exactly one error line where one was due"
    failed=1
  fi
}

# prints PATTERN: in the standard output of the last command
prints() {
  grep -q -- "$1" "$folder/out" || {
    echo "the output lacks: $1"
    cat "$folder/out"
    failed=1
  }
}

cat >"$folder/water.xyz" <<END
3
Lattice="9 0 0 0 9 0 0 0 9" Properties=species:S:1:pos:R:3 pbc="T T T"
O 0 0 0
H 0.96 0 0
H -0.24 0.93 0
END
cat >"$folder/model.json" <<END
{"channels": 16, "heads": 8, "head_dim": 4, "lmax": 2, "bases": 16, "average_degree": 23.01,
 "head": "omol25", "silu_scale": 1.67917679, "sigmoid_scale": 1.84670553, "head_channels": 2,
 "stages": [{"cutoff": 5.0, "lower": 0.0001, "envelope": "poly", "orders": ["first", "zero"]}],
 "merge": null}
END
cat >"$folder/job.json" <<END
{"structure": "water.xyz", "model": "small.safetensors"}
END

expect 0 '' --version
prints '^tessera [0-9]'
expect 0 '' --help
prints 'Exit status'
for command in run check plan model schema info; do
  expect 0 '' "$command" --help
  prints "^usage: tessera $command"
done
expect 1 'error: a command is expected'
expect 1 'unknown command "runn"' runn

# the planner
expect 1 'plan: a structure file or --system is expected; see tessera plan --help' plan --ranks 8
expect 1 'plan: a number of ranks is expected: --ranks' plan --system water
expect 1 'plan: --system is "ice"; expected one of uniform, water, ' plan --system ice --ranks 8
expect 1 'plan: --ranks is "8,0"; expected up to 64 numbers from 1 to 65536' plan --system water --ranks 8,0
expect 1 'plan: --stages is "5x"; expected one or two cutoffs' plan --system water --ranks 8 --stages 5x
expect 1 'plan: --skin is "-1"; expected a number from 0 to 10' plan --system water --ranks 8 --skin -1
expect 1 'plan: given twice: --ranks' plan --system water --ranks 8 --ranks 4
expect 1 'plan: unknown option --rank' plan --system water --rank 8
expect 1 'plan: only a generated system has --atoms' plan "$folder/water.xyz" --ranks 8 --atoms 9
expect 1 'plan: 3 atoms on 8 ranks; expected at least one atom a rank' plan "$folder/water.xyz" --ranks 8
expect 1 'no.xyz: ' plan "$folder/no.xyz" --ranks 8
expect 1 'plan: times need --costs' plan --system water --ranks 8 --latency-us 2
expect 0 'on 2 ranks, hilbert' plan "$folder/water.xyz" --repeat 2,2,1 --ranks 1,2 --json "$folder/plan.json" \
  --csv "$folder/plan.csv" --plot "$folder/plan.svg"
prints '^Level 1, all ranks'
[ "$(wc -l <"$folder/plan.csv")" = 3 ] || failed=1
grep -q '"handshakes_per_rebuild": 2' "$folder/plan.json" || failed=1

# words
expect 1 'run: a job file is expected; see tessera run --help' run
expect 1 'unknown option --resum' run "$folder/job.json" --resum
expect 1 'unknown option --resume' check "$folder/job.json" --resume
expect 1 'not also' run "$folder/job.json" b.json
expect 1 '--set needs key=value' run "$folder/job.json" --set
expect 1 '--set steps=x: steps is "x"; expected an integer' run "$folder/job.json" --set steps=x
expect 1 'the nearest known key is "steps"' check "$folder/job.json" --set=step=1

# jobs and inputs that are wrong
expect 1 'no.json: cannot open' run "$folder/no.json"
echo '{"structure": "a", "modell": "b"}' >"$folder/bad.json"
expect 1 'bad.json:1: unknown key "modell"; the nearest known key is "model"' run "$folder/bad.json"
printf '{"structure": "a",\n "model": }' >"$folder/bad.json"
expect 1 'bad.json:2:11: ' check "$folder/bad.json"
expect 1 'task: "relax" is not supported in this version' run "$folder/job.json" --set task=relax
expect 1 'none.xyz' check "$folder/job.json" --set structure=none.xyz
expect 1 'small.safetensors' check "$folder/job.json"

# a model from a seed, shown, and a job that is right
expect 0 '' model seed --description "$folder/model.json" --seed 7 -o "$folder/small.safetensors"
expect 0 '' model show "$folder/small.safetensors"
prints '^parameters  *[0-9]'
expect 1 'expected an integer from 0' model seed --description "$folder/model.json" --seed -7 -o "$folder/x"
expect 1 'expected F32 or F64' model seed --description "$folder/model.json" --seed 7 -o "$folder/x" --dtype I8
expect 1 'are needed' model seed --seed 7
expect 1 'unknown word' model sed
expect 1 'none: No such file' model show "$folder/none"
expect 0 '^memory\|^model' check "$folder/job.json" --set steps=77
prints '"steps": 77'
cp "$folder/out" "$folder/filled.json"
expect 0 '' check "$folder/filled.json"
cmp "$folder/filled.json" "$folder/out" || failed=1
expect 1 'has no velocities' check "$folder/job.json" --set velocities.source=read
expect 1 'Cl' check "$folder/job.json" --set 'output.rdf.pairs=["O-Cl"]'

expect 0 '' schema
prints 'json-schema.org/draft/2020-12/schema'
expect 0 '' info
prints 'StarPU [0-9]'
prints 'cblas'
[ ! -e "$folder/run" ] || {
  echo "check has written something"
  failed=1
}
"$tessera" schema >/dev/full 2>"$folder/err"
[ $? = 3 ] || {
  echo "a full disk is not reported"
  failed=1
}
exit $failed
