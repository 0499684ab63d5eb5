#!/bin/sh
# SPDX-License-Identifier: MIT
#
# neighbors_lammps.sh DATA REACH BUILDS: seconds that LAMMPS needs for one full neighbour list of
# the atoms in DATA within REACH, the mean over BUILDS forced rebuilds of one run, as its own "Neigh"
# timer says (images are made outside that timer).  A full list needs a pair style that asks for
# one: Stillinger-Weber with a cutoff of 0.5, hence almost no work of its own, and the rest of the
# reach as skin; the list is the same as for any other split.
set -eu
data=$1 reach=$2 builds=$3
command -v lmp > /dev/null || {
  echo "LAMMPS is not installed (Debian package lammps)" >&2
  exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo "X X X 1.0 0.25 2.0 0.0 1.0 -0.333 7.0 0.6 4.0 0.0 0.0" > "$dir/x.sw"
cat > "$dir/in" <<END
units metal
atom_style atomic
boundary p p p
read_data $data
pair_style sw
pair_coeff * * $dir/x.sw X
neighbor $(awk "BEGIN { print $reach - 0.5 }") bin
neigh_modify every 1 delay 0 check no one 10000 page 1000000
timestep 1e-9
fix 1 all nve
run $builds
END
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LC_ALL=C
lmp -in "$dir/in" -log none > "$dir/out" || {
  tail -3 "$dir/out" >&2
  exit 1
}
awk -v n="$builds" '/^Neigh  *\|/ { printf "%.6f ", $3 / n }
  /^Total # of neighbors/ { print $6 }' "$dir/out"
