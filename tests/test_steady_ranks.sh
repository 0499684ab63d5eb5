#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Steps between two rebuilds allocate nothing and say only what is planned, on two and four ranks.
. "$(dirname "$0")/ranks.sh"
on 2 steady_ranks 100
on 4 steady_ranks 30 # taking turns, so fewer steps
