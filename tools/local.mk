# SPDX-License-Identifier: MIT
EXTRA_DIST += tools/install-dependencies
EXTRA_DIST += tools/run-example
EXTRA_DIST += tools/run-tests
