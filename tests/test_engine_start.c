/* SPDX-License-Identifier: MIT
 *
 * StarPU starts as asked, refuses what it does not know, stops, and starts again. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <starpu.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "tests/watchdog.h"

static ts_topology topology;

static int read_topology(void **state)
{
  (void)state;
  watchdog(300);
  return ts_topology_read(&topology);
}

static void starts_and_restarts(void **state)
{
  (void)state;
  for (int round = 0; round < 2; round++) {
    ts_engine_params params;
    ts_engine *engine = NULL, *second = NULL;
    char text[2048];
    ts_engine_params_init(&params);
    params.workers = 1 + round;
    params.scheduler = round ? "eager" : "prio";
    assert_int_equal(ts_engine_create(&topology, &params, &engine), 0);
    assert_int_equal(ts_engine_workers(engine), 1 + round);
    assert_int_equal(starpu_cpu_worker_get_count(), 1 + round);
    assert_string_equal(ts_engine_scheduler(engine), params.scheduler);
    assert_true(ts_engine_describe(engine, text, sizeof text) < (int)sizeof text);
    assert_non_null(strstr(text, params.scheduler));
    assert_non_null(strstr(text, "sampling")); /* where the models are */
    assert_int_equal(ts_engine_create(&topology, &params, &second), TS_ERR_ARG);
    assert_null(second);
    ts_engine_destroy(&engine);
    assert_null(engine);
    ts_engine_destroy(&engine);
  }
}

static void unknown_scheduler_lists_known_ones(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  ts_engine_params_init(&params);
  params.scheduler = "fastest";
  assert_int_equal(ts_engine_create(&topology, &params, &engine), TS_ERR_ARG);
  assert_null(engine);
  assert_non_null(strstr(ts_error_message(), "\"fastest\""));
  assert_non_null(strstr(ts_error_message(), "lws, ws"));
  assert_false(starpu_is_initialized());
}

static void wrong_numbers_are_refused(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  ts_engine_params_init(&params);
  params.workers = -1;
  assert_int_equal(ts_engine_create(&topology, &params, &engine), TS_ERR_ARG);
  params.workers = 1;
  params.share = 1;
  assert_int_equal(ts_engine_create(&topology, &params, &engine), TS_ERR_ARG);
}

static void note_mask(void *arg)
{
  sched_getaffinity(0, sizeof(cpu_set_t), arg);
}

/* Workers stay within the mask of this process, each on a core of its own. */
static void workers_are_bound_inside_the_mask(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  cpu_set_t all, mask;
  ts_topology all_used = topology; /* no more cores than this StarPU can use, whatever the quota */
  all_used.cpu_quota = 0;
  if (all_used.cores > STARPU_MAXCPUS) all_used.cores = STARPU_MAXCPUS;
  sched_getaffinity(0, sizeof all, &all);
  ts_engine_params_init(&params);
  assert_int_equal(ts_engine_create(&all_used, &params, &engine), 0);
  const int workers = ts_engine_workers(engine);
  assert_int_equal(workers, ts_topology_workers(&all_used, 1));
  CPU_ZERO(&mask);
  for (int w = 0; w < workers; w++) {
    cpu_set_t one;
    unsigned id = (unsigned)w;
    starpu_execute_on_specific_workers(note_mask, &one, 1, &id, "note_mask");
    assert_int_equal(CPU_COUNT(&one), 1);
    CPU_OR(&mask, &mask, &one);
  }
  assert_int_equal(CPU_COUNT(&mask), workers);
  CPU_OR(&mask, &mask, &all);
  assert_true(CPU_EQUAL(&mask, &all));
  ts_engine_destroy(&engine);
}

static void more_workers_than_cores_run_unbound(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  char text[2048];
  if (topology.cores >= STARPU_MAXCPUS) skip(); /* this StarPU cannot be asked for more */
  ts_engine_params_init(&params);
  params.workers = topology.cores + 1;
  assert_int_equal(ts_engine_create(&topology, &params, &engine), 0);
  assert_int_equal(ts_engine_workers(engine), topology.cores + 1);
  ts_engine_describe(engine, text, sizeof text);
  assert_non_null(strstr(text, "not bound"));
  ts_engine_destroy(&engine);
}

/* Beside another program they must not meet its workers on the first core. */
static void fewer_workers_than_cores_run_unbound(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  cpu_set_t all, one;
  unsigned id = 0;
  if (topology.cores < 2) skip();
  sched_getaffinity(0, sizeof all, &all);
  ts_engine_params_init(&params);
  params.workers = 1;
  assert_int_equal(ts_engine_create(&topology, &params, &engine), 0);
  starpu_execute_on_specific_workers(note_mask, &one, 1, &id, "note_mask");
  assert_true(CPU_EQUAL(&one, &all));
  ts_engine_destroy(&engine);
}

/* Ctrl-C belongs to the program, which writes a checkpoint first. */
static void signals_are_left_alone(void **state)
{
  (void)state;
  ts_engine_params params;
  ts_engine *engine = NULL;
  struct sigaction before, during;
  sigaction(SIGINT, NULL, &before);
  ts_engine_params_init(&params);
  assert_int_equal(ts_engine_create(&topology, &params, &engine), 0);
  sigaction(SIGINT, NULL, &during);
  assert_ptr_equal(before.sa_handler, during.sa_handler);
  ts_engine_destroy(&engine);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(starts_and_restarts),
      cmocka_unit_test(unknown_scheduler_lists_known_ones),
      cmocka_unit_test(wrong_numbers_are_refused),
      cmocka_unit_test(workers_are_bound_inside_the_mask),
      cmocka_unit_test(more_workers_than_cores_run_unbound),
      cmocka_unit_test(fewer_workers_than_cores_run_unbound),
      cmocka_unit_test(signals_are_left_alone),
  };
  return cmocka_run_group_tests(tests, read_topology, NULL);
}
