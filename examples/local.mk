# SPDX-License-Identifier: MIT
#
# The examples are installed as they stand, one folder each.
