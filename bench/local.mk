# SPDX-License-Identifier: MIT
#
# `make bench` builds the benches; each prints one table.  They are no part of `make check`.
#   EXTRA_PROGRAMS += bench/bench_x
#   bench_bench_x_SOURCES = bench/bench_x.c
#   bench_bench_x_LDADD = libtessera.la
.PHONY: bench
bench: $(EXTRA_PROGRAMS)

EXTRA_DIST += bench/neighbors_lammps.sh
EXTRA_PROGRAMS += bench/bench_collective
bench_bench_collective_SOURCES = bench/bench_collective.c bench/median.h
bench_bench_collective_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_costs
bench_bench_costs_SOURCES = bench/bench_costs.c bench/example_model.h bench/median.h tests/ranks_start.h tests/case.c tests/case.h
bench_bench_costs_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_level1
bench_bench_level1_SOURCES = bench/bench_level1.c
bench_bench_level1_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_neighbors
bench_bench_neighbors_SOURCES = bench/bench_neighbors.c
bench_bench_neighbors_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_program
bench_bench_program_SOURCES = bench/bench_program.c
bench_bench_program_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_step
bench_bench_step_SOURCES = bench/bench_step.c bench/median.h tests/case.c tests/case.h
bench_bench_step_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_example
bench_bench_example_SOURCES = bench/bench_example.c bench/median.h tests/case.c tests/case.h
bench_bench_example_LDADD = libtessera.la
EXTRA_DIST += bench/dynamics.py
EXTRA_DIST += bench/plan.sh
EXTRA_DIST += bench/ranks.sh
EXTRA_PROGRAMS += bench/bench_ranks
bench_bench_ranks_SOURCES = bench/bench_ranks.c bench/example_model.h tests/ranks_start.h bench/median.h tests/case.c tests/case.h
bench_bench_ranks_LDADD = libtessera.la
EXTRA_PROGRAMS += bench/bench_route
bench_bench_route_SOURCES = bench/bench_route.c tests/terms.c tests/terms.h
bench_bench_route_LDADD = libtessera.la

# A library to preload, which libtool does not make when shared libraries are off.
EXTRA_DIST += bench/delay.c
CLEANFILES += bench/delay.so
bench: bench/delay.so
bench/delay.so: bench/delay.c
	@$(MKDIR_P) bench
	$(AM_V_CCLD)$(CC) $(STARPU_CFLAGS) $(MPI_CFLAGS) $(TS_CFLAGS) $(CFLAGS) -fPIC -shared -o $@ \
	  $(srcdir)/bench/delay.c -ldl -lpthread
