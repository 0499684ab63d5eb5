# SPDX-License-Identifier: MIT
dist_man_MANS += docs/tessera.1
EXTRA_DIST += docs/building.md
EXTRA_DIST += docs/collectives.md
EXTRA_DIST += docs/developer.md
EXTRA_DIST += docs/figures.md
EXTRA_DIST += docs/files.md
EXTRA_DIST += docs/first-job.md
EXTRA_DIST += docs/job-file.md
EXTRA_DIST += docs/model-files.md
EXTRA_DIST += docs/model.md
EXTRA_DIST += docs/neighbors.md
EXTRA_DIST += docs/plan.md
EXTRA_DIST += docs/plan.svg
EXTRA_DIST += docs/ranks.md
EXTRA_DIST += docs/routing.md
EXTRA_DIST += docs/screen.md
EXTRA_DIST += docs/units.md

# the JSON Schema of job files, for editors
pkgdata_DATA += job.schema.json
CLEANFILES += job.schema.json
job.schema.json: tessera$(EXEEXT)
	$(AM_V_GEN)./tessera$(EXEEXT) schema >$@.part && mv $@.part $@
