# SPDX-License-Identifier: MIT
dist_man_MANS += docs/tessera.1
