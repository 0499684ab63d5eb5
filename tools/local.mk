# SPDX-License-Identifier: MIT
EXTRA_DIST += .ci/run
EXTRA_DIST += tools/build-starpu
EXTRA_DIST += tools/common.sh
EXTRA_DIST += tools/install-dependencies
EXTRA_DIST += tools/make-test-venv
EXTRA_DIST += tools/run-example
EXTRA_DIST += tools/run-sanitizers
EXTRA_DIST += tools/run-tests
EXTRA_DIST += tools/run-valgrind
# found there by `tessera model convert`
nobase_dist_pkgdata_DATA += tools/convert_checkpoint.py
nobase_dist_pkgdata_DATA += tools/torch_file.py
