/* SPDX-License-Identifier: MIT
 *
 * A recorded program does what the same tasks would do one after another: in the same order, every
 * time, for any number of handles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/watchdog.h"

enum { CELLS = 20, TASKS = 150, MAX_ACCESS = 13 };

static ts_engine *engine;
static uint64_t cell[CELLS], expected[CELLS];
static starpu_data_handle_t handle[CELLS];

typedef struct mix_args {
  ts_task_header header;
  uint64_t key;
  int n;
  ts_access access[MAX_ACCESS];
} mix_args;

/* Any change of order between two tasks that meet in a cell changes the result. */
static uint64_t mix(uint64_t x, uint64_t y)
{
  x = (x ^ y) * 0x9e3779b97f4a7c15u;
  return x ^ (x >> 29);
}

static void run_mix(uint64_t *const at[], const mix_args *a)
{
  uint64_t sum = a->key;
  for (int i = 0; i < a->n; i++)
    if (a->access[i].mode & STARPU_R) sum = mix(sum, *at[i]);
  for (int i = 0; i < a->n; i++)
    if (a->access[i].mode & STARPU_W) *at[i] = mix(sum, (uint64_t)i);
}

static void mix_cpu(void *buffers[], void *cl_arg)
{
  const mix_args *a = cl_arg;
  uint64_t *at[MAX_ACCESS];
  for (int i = 0; i < a->n; i++)
    at[i] = (uint64_t *)STARPU_VARIABLE_GET_PTR(buffers[i]);
  run_mix(at, a);
}

static struct starpu_codelet mix_codelet = {
    .cpu_funcs = {mix_cpu}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "mix"};

static int start(void **state)
{
  (void)state;
  ts_topology topology;
  ts_engine_params params;
  watchdog(300);
  ts_engine_params_init(&params);
  params.workers = 2;
  if (ts_topology_read(&topology) || ts_engine_create(&topology, &params, &engine)) return -1;
  for (int i = 0; i < CELLS; i++)
    starpu_variable_data_register(&handle[i], STARPU_MAIN_RAM, (uintptr_t)&cell[i], sizeof *cell);
  return 0;
}

static int stop(void **state)
{
  (void)state;
  for (int i = 0; i < CELLS; i++)
    starpu_data_unregister(handle[i]);
  ts_engine_destroy(&engine);
  return 0;
}

static int next_random(int below)
{
  static uint32_t x = 1;
  x = x * 1664525u + 1013904223u;
  return (int)((x >> 8) % (uint32_t)below);
}

/* A task on 0 .. MAX_ACCESS distinct cells; the last ones are written. */
static void draw(mix_args *a, int order[CELLS])
{
  static const enum starpu_data_access_mode write[] = {STARPU_W, STARPU_RW};
  a->key = (uint64_t)next_random(1 << 20);
  a->n = next_random(MAX_ACCESS + 1);
  for (int i = 0; i < CELLS; i++) {
    const int j = i + next_random(CELLS - i), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (int i = 0; i < a->n; i++)
    a->access[i] = (ts_access){handle[order[i]], i < a->n - 2 ? STARPU_R : write[next_random(2)]};
}

static void random_program_replays(void **state)
{
  (void)state;
  static mix_args tasks[TASKS];
  static int cells_of[TASKS][CELLS];
  ts_program *program = NULL;
  int order[CELLS], above = 0;
  for (int i = 0; i < CELLS; i++)
    order[i] = i;
  assert_int_equal(ts_program_create(&program), 0);
  for (int t = 0; t < TASKS; t++) {
    draw(&tasks[t], order);
    memcpy(cells_of[t], order, sizeof order);
    above += tasks[t].n > STARPU_NMAXBUFS;
    const ts_task_desc desc = {.codelet = &mix_codelet,
                               .access = tasks[t].access,
                               .naccess = tasks[t].n,
                               .args = &tasks[t],
                               .args_size = sizeof tasks[t],
                               .priority = next_random(7) - 3,
                               .phase = t % TS_PROGRAM_PHASES};
    assert_int_equal(ts_program_add(program, &desc), 0);
  }
  assert_true(above > 10);
  assert_int_equal(ts_program_size(program), TASKS);
  for (int i = 0; i < CELLS; i++)
    cell[i] = expected[i] = (uint64_t)i;
  for (int step = 0; step < 1000; step++) {
    for (int t = 0; t < TASKS; t++) {
      uint64_t *at[MAX_ACCESS];
      for (int i = 0; i < tasks[t].n; i++)
        at[i] = &expected[cells_of[t][i]];
      run_mix(at, &tasks[t]);
    }
    assert_int_equal(ts_program_run(program, step), 0);
    assert_int_equal(ts_program_iteration(program), step);
    assert_memory_equal(cell, expected, sizeof cell);
  }
  ts_program_destroy(&program);
  assert_null(program);
  ts_program_destroy(&program);
}

static void empty_program_runs(void **state)
{
  (void)state;
  ts_program *program = NULL;
  assert_int_equal(ts_program_create(&program), 0);
  assert_int_equal(ts_program_run(program, 0), 0);
  assert_int_equal(ts_program_run(program, 1), 0);
  ts_program_destroy(&program);
}

static void sleep_cpu(void *buffers[], void *cl_arg)
{
  (void)buffers;
  (void)cl_arg;
  usleep(20000);
}

static void phases_are_measured(void **state)
{
  (void)state;
  static struct starpu_codelet nap = {.cpu_funcs = {sleep_cpu}, .name = "nap"};
  ts_program *program = NULL;
  assert_int_equal(ts_program_create(&program), 0);
  const int phases[] = {3, 3, 5};
  for (int i = 0; i < 3; i++)
    assert_int_equal(ts_program_add(program, &(ts_task_desc){.codelet = &nap, .phase = phases[i]}),
                     0);
  for (int run = 0; run < 2; run++) {
    assert_int_equal(ts_program_run(program, run), 0);
    const double three = ts_program_phase_seconds(program, 3);
    const double five = ts_program_phase_seconds(program, 5);
    assert_true(three >= 0.040 && three < 2);
    assert_true(five >= 0.020 && five < 1);
    assert_true(ts_program_phase_seconds(program, 4) == 0);
    assert_true(ts_program_seconds(program) >= 0.040); /* three naps on two workers */
  }
  ts_program_destroy(&program);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_program_replays),
      cmocka_unit_test(empty_program_runs),
      cmocka_unit_test(phases_are_measured),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
