# SPDX-License-Identifier: MIT
#
# `make check` runs every program of check_PROGRAMS and every script of dist_check_SCRIPTS.  A test
# exits 0, or 77 with a printed reason (skipped), or anything else (failed).
TEST_LIBS = libtessera.la $(CMOCKA_LIBS)
EXTRA_DIST += tests/data
EXTRA_DIST += tests/requirements.txt
EXTRA_DIST += tests/run_python.sh
EXTRA_DIST += tests/run_sanitized.sh
dist_check_SCRIPTS += tests/check_format.sh
dist_check_SCRIPTS += tests/check_symbols.sh
dist_check_SCRIPTS += tests/run_fuzz.sh
dist_check_SCRIPTS += tests/test_main_cli.sh
dist_check_SCRIPTS += tests/test_convert.py
dist_check_SCRIPTS += tests/test_schema.py
EXTRA_DIST += tests/fuzz_job.c
EXTRA_DIST += tests/fuzz_json.c
EXTRA_DIST += tests/fuzz_safetensors.c

TESTS = $(check_PROGRAMS) $(dist_check_SCRIPTS)
TEST_EXTENSIONS = .sh .py
PY_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/run_python.sh
AM_TESTS_ENVIRONMENT = \
  TS_TEST_DATA='$(abs_top_srcdir)/tests/data'; export TS_TEST_DATA; \
  TS_SOURCE_DIR='$(abs_top_srcdir)'; export TS_SOURCE_DIR; \
  TS_BUILD_DIR='$(abs_top_builddir)'; export TS_BUILD_DIR; \
  STARPU_HOME='$(abs_top_builddir)/starpu-home'; export STARPU_HOME; unset XDG_CACHE_HOME; \
  STARPU_SILENT=1; export STARPU_SILENT; \
  OPENBLAS_NUM_THREADS=1; export OPENBLAS_NUM_THREADS; \
  OMPI_ALLOW_RUN_AS_ROOT=1; export OMPI_ALLOW_RUN_AS_ROOT; \
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM;

# a program to run by hand, too: tests/golden FILE... prints the errors of any such file
GOLDEN_SOURCES = tests/case.c tests/case.h
check_PROGRAMS += tests/golden
tests_golden_SOURCES = tests/golden.c $(GOLDEN_SOURCES)
tests_golden_LDADD = $(TEST_LIBS)

# only the programs, e.g. under another tool: make check-unit LOG_COMPILER='valgrind -q'
.PHONY: check-unit
check-unit: all
	+$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
	+$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(check_PROGRAMS)'

if TS_HAVE_CMOCKA
# one pair of lines per test, sorted:
#   check_PROGRAMS += tests/test_x_y
#   tests_test_x_y_SOURCES = tests/test_x_y.c
#   tests_test_x_y_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_checkpoint_damage
tests_test_checkpoint_damage_SOURCES = tests/test_checkpoint_damage.c tests/checkpoint_sample.h
tests_test_checkpoint_damage_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_checkpoint_roundtrip
tests_test_checkpoint_roundtrip_SOURCES = tests/test_checkpoint_roundtrip.c tests/checkpoint_sample.h
tests_test_checkpoint_roundtrip_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_edges_bruteforce
tests_test_edges_bruteforce_SOURCES = tests/test_edges_bruteforce.c tests/neighbor_cases.h
tests_test_edges_bruteforce_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_engine_start
tests_test_engine_start_SOURCES = tests/test_engine_start.c tests/watchdog.h
tests_test_engine_start_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_error_message
tests_test_error_message_SOURCES = tests/test_error_message.c
tests_test_error_message_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_h5md_write
tests_test_h5md_write_SOURCES = tests/test_h5md_write.c tests/checkpoint_sample.h
tests_test_h5md_write_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_integrate_harmonic
tests_test_integrate_harmonic_SOURCES = tests/test_integrate_harmonic.c
tests_test_integrate_harmonic_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_job_parse
tests_test_job_parse_SOURCES = tests/test_job_parse.c
tests_test_job_parse_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_job_schema
tests_test_job_schema_SOURCES = tests/test_job_schema.c
tests_test_job_schema_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_json_strict
tests_test_json_strict_SOURCES = tests/test_json_strict.c tests/comma_locale.h
tests_test_json_strict_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_json_write
tests_test_json_write_SOURCES = tests/test_json_write.c
tests_test_json_write_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_log_lines
tests_test_log_lines_SOURCES = tests/test_log_lines.c
tests_test_log_lines_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_memory_arena
tests_test_memory_arena_SOURCES = tests/test_memory_arena.c
tests_test_memory_arena_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_observe_run
tests_test_observe_run_SOURCES = tests/test_observe_run.c
tests_test_observe_run_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_observe_sums
tests_test_observe_sums_SOURCES = tests/test_observe_sums.c
tests_test_observe_sums_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_program_failure
tests_test_program_failure_SOURCES = tests/test_program_failure.c tests/watchdog.h
tests_test_program_failure_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_program_replay
tests_test_program_replay_SOURCES = tests/test_program_replay.c tests/watchdog.h
tests_test_program_replay_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_program_schedulers
tests_test_program_schedulers_SOURCES = tests/test_program_schedulers.c tests/watchdog.h
tests_test_program_schedulers_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_random_normals
tests_test_random_normals_SOURCES = tests/test_random_normals.c
tests_test_random_normals_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_random_philox
tests_test_random_philox_SOURCES = tests/test_random_philox.c
tests_test_random_philox_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_rdf_known
tests_test_rdf_known_SOURCES = tests/test_rdf_known.c
tests_test_rdf_known_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_rdf_state
tests_test_rdf_state_SOURCES = tests/test_rdf_state.c
tests_test_rdf_state_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_report_csv
tests_test_report_csv_SOURCES = tests/test_report_csv.c
tests_test_report_csv_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_report_screen
tests_test_report_screen_SOURCES = tests/test_report_screen.c
tests_test_report_screen_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_sum_order
tests_test_sum_order_SOURCES = tests/test_sum_order.c
tests_test_sum_order_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_system_permute
tests_test_system_permute_SOURCES = tests/test_system_permute.c
tests_test_system_permute_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_topology_mask
tests_test_topology_mask_SOURCES = tests/test_topology_mask.c
tests_test_topology_mask_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_velocities_draw
tests_test_velocities_draw_SOURCES = tests/test_velocities_draw.c
tests_test_velocities_draw_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_world_alone
tests_test_world_alone_SOURCES = tests/test_world_alone.c
tests_test_world_alone_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_xyz_read
tests_test_xyz_read_SOURCES = tests/test_xyz_read.c tests/comma_locale.h
tests_test_xyz_read_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_clebsch_blocks
tests_test_clebsch_blocks_SOURCES = tests/test_clebsch_blocks.c tests/model_cases.h
tests_test_clebsch_blocks_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_description_parse
tests_test_description_parse_SOURCES = tests/test_description_parse.c tests/model_cases.h
tests_test_description_parse_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_radial_tables
tests_test_radial_tables_SOURCES = tests/test_radial_tables.c tests/model_cases.h
tests_test_radial_tables_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_safetensors_roundtrip
tests_test_safetensors_roundtrip_SOURCES = tests/test_safetensors_roundtrip.c tests/model_cases.h
tests_test_safetensors_roundtrip_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_safetensors_strict
tests_test_safetensors_strict_SOURCES = tests/test_safetensors_strict.c tests/model_cases.h
tests_test_safetensors_strict_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/test_seed_values
tests_test_seed_values_SOURCES = tests/test_seed_values.c tests/model_cases.h
tests_test_seed_values_LDADD = $(TEST_LIBS)
endif
