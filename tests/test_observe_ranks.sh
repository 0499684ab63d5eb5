#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Observables have the same bits on any number of ranks.
. "$(dirname "$0")/ranks.sh"
for count in 1 2 3 8; do
  on $count observe_ranks
done
