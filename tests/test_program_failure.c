/* SPDX-License-Identifier: MIT
 *
 * A failing task reaches the caller with its message, the same one in every run; tasks behind it do
 * nothing; the program runs again afterwards.  Wrong recordings are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/watchdog.h"

enum { TASKS = 60 };

typedef struct step_args {
  ts_task_header header;
  int number;
} step_args;

static ts_engine *engine;
static starpu_data_handle_t handle;
static int value;
static bool failing[TASKS]; /* set between runs */
static atomic_int ran[TASKS];

static void step_cpu(void *buffers[], void *cl_arg)
{
  (void)buffers;
  const step_args *a = cl_arg;
  atomic_fetch_add(&ran[a->number], 1);
  usleep((useconds_t)(a->number % 3) * 100); /* failures come in and out of order */
  if (failing[a->number])
    tsi_program_fail(&a->header, tsi_fail(TS_ERR_SIMULATION, "atom %d is lost", a->number));
}

static struct starpu_codelet free_codelet = {.cpu_funcs = {step_cpu}, .name = "free"};
static struct starpu_codelet chain_codelet = {
    .cpu_funcs = {step_cpu}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "chain"};

static int start(void **state)
{
  (void)state;
  ts_topology topology;
  ts_engine_params params;
  watchdog(300);
  ts_engine_params_init(&params);
  params.workers = 2;
  if (ts_topology_read(&topology) || ts_engine_create(&topology, &params, &engine)) return -1;
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&value, sizeof value);
  return 0;
}

static int stop(void **state)
{
  (void)state;
  starpu_data_unregister(handle);
  ts_engine_destroy(&engine);
  return 0;
}

static ts_program *record(bool chained)
{
  ts_program *program = NULL;
  assert_int_equal(ts_program_create(&program), 0);
  for (int i = 0; i < TASKS; i++) {
    const step_args args = {.number = i};
    const ts_access access = {handle, STARPU_RW};
    const ts_task_desc desc = {.codelet = chained ? &chain_codelet : &free_codelet,
                               .access = &access,
                               .naccess = chained,
                               .args = &args,
                               .args_size = sizeof args};
    assert_int_equal(ts_program_add(program, &desc), 0);
  }
  return program;
}

static void first_failure_is_reported_every_time(void **state)
{
  (void)state;
  ts_program *program = record(false);
  for (int run = 0; run < 100; run++) {
    memset(failing, 0, sizeof failing);
    failing[31] = run % 2;
    failing[32] = failing[33] = failing[50] = true;
    assert_int_equal(ts_program_run(program, run), TS_ERR_SIMULATION);
    assert_string_equal(ts_error_message(), run % 2 ? "atom 31 is lost" : "atom 32 is lost");
  }
  memset(failing, 0, sizeof failing);
  assert_int_equal(ts_program_run(program, 100), 0);
  ts_program_destroy(&program);
}

/* Task 2 fails while task 0 still runs and task 1 waits for it: task 1 runs, and its failure
 * counts. */
static void tasks_before_a_failure_still_run(void **state)
{
  (void)state;
  ts_program *program = NULL;
  assert_int_equal(ts_program_create(&program), 0);
  const ts_access access = {handle, STARPU_RW};
  const int number[] = {TASKS - 1, 1, 3}; /* sleeps 200, 100 and 0 us */
  for (int i = 0; i < 3; i++) {
    const step_args args = {.number = number[i]};
    const ts_task_desc desc = {.codelet = i < 2 ? &chain_codelet : &free_codelet,
                               .access = &access,
                               .naccess = i < 2,
                               .args = &args,
                               .args_size = sizeof args};
    assert_int_equal(ts_program_add(program, &desc), 0);
  }
  memset(failing, 0, sizeof failing);
  failing[1] = failing[3] = true;
  for (int run = 0; run < 20; run++) {
    assert_int_equal(ts_program_run(program, run), TS_ERR_SIMULATION);
    assert_string_equal(ts_error_message(), "atom 1 is lost");
  }
  ts_program_destroy(&program);
}

static void tasks_behind_a_failure_do_nothing(void **state)
{
  (void)state;
  ts_program *program = record(true);
  memset(failing, 0, sizeof failing);
  for (int i = 0; i < TASKS; i++)
    atomic_store(&ran[i], 0);
  failing[20] = true;
  assert_int_equal(ts_program_run(program, 0), TS_ERR_SIMULATION);
  assert_string_equal(ts_error_message(), "atom 20 is lost");
  for (int i = 0; i < TASKS; i++)
    assert_int_equal(atomic_load(&ran[i]), i <= 20);
  failing[20] = false;
  assert_int_equal(ts_program_run(program, 1), 0);
  for (int i = 0; i < TASKS; i++)
    assert_int_equal(atomic_load(&ran[i]), 1 + (i <= 20));
  ts_program_destroy(&program);
}

static void refuse(const ts_task_desc *desc, const char *what)
{
  ts_program *program = NULL;
  assert_int_equal(ts_program_create(&program), 0);
  assert_int_equal(ts_program_add(program, desc), TS_ERR_ARG);
  assert_non_null(strstr(ts_error_message(), what));
  assert_int_equal(ts_program_size(program), 0);
  ts_program_destroy(&program);
}

static void wrong_recordings_are_refused(void **state)
{
  (void)state;
  static struct starpu_codelet no_function = {.name = "hollow"};
  const ts_access read = {handle, STARPU_R}, null = {NULL, STARPU_RW},
                  redux = {handle, STARPU_REDUX};
  static struct starpu_codelet any = {
      .cpu_funcs = {step_cpu}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "any"};
  refuse(&(ts_task_desc){.codelet = &no_function}, "hollow: exactly one CPU function");
  refuse(&(ts_task_desc){.codelet = &chain_codelet}, "chain: 0 handles given, the codelet takes 1");
  refuse(&(ts_task_desc){.codelet = &chain_codelet, .access = &read, .naccess = 1},
         "chain: handle 0: mode");
  refuse(&(ts_task_desc){.codelet = &chain_codelet, .access = &null, .naccess = 1},
         "handle 0 is NULL");
  refuse(&(ts_task_desc){.codelet = &any, .access = &redux, .naccess = 1}, "none of R, W, RW");
  refuse(&(ts_task_desc){.codelet = &free_codelet, .phase = TS_PROGRAM_PHASES}, "free: phase");
  refuse(&(ts_task_desc){.codelet = &free_codelet, .args = &value, .args_size = 4},
         "bytes of arguments");
}

static void nothing_is_added_after_the_first_run(void **state)
{
  (void)state;
  ts_program *program = record(false);
  memset(failing, 0, sizeof failing);
  assert_int_equal(ts_program_run(program, 0), 0);
  assert_int_equal(ts_program_add(program, &(ts_task_desc){.codelet = &free_codelet}), TS_ERR_ARG);
  assert_non_null(strstr(ts_error_message(), "has run"));
  ts_program_destroy(&program);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_failure_is_reported_every_time),
      cmocka_unit_test(tasks_before_a_failure_still_run),
      cmocka_unit_test(tasks_behind_a_failure_do_nothing),
      cmocka_unit_test(wrong_recordings_are_refused),
      cmocka_unit_test(nothing_is_added_after_the_first_run),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
