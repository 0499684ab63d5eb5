#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Exchanges whose partners nobody knows beforehand, on virtual and on real ranks.
. "$(dirname "$0")/ranks.sh"
for count in 1 2 3 4 8; do
  on $count sparse_ranks
done
