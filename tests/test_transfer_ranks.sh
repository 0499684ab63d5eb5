#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Data handles move between ranks by both transports, also with more threads than cores.
. "$(dirname "$0")/ranks.sh"
for count in 1 2 3 4 8; do
  on $count transfer_ranks
done
