# SPDX-License-Identifier: MIT
dist_man_MANS += docs/tessera.1
EXTRA_DIST += docs/units.md
