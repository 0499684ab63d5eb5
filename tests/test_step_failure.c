/* SPDX-License-Identifier: MIT
 *
 * A simulation that breaks stops with a message that names the step, the atoms by their ids (from
 * 1) and where they are; and nothing is left behind: a step on a sound system then works and gives
 * the same bits as before. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/error.h"
#include "tests/case.h"

static golden_case sound;
static ts_model *model;
static case_output before;

static int set_up(void **state)
{
  (void)state;
  sound = case_read("triclinic-cluster-bell");
  model = case_model(&sound, false);
  const ts_step_params params = case_params(model, 0.5);
  before = case_evaluate(&params, sound.system);
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  case_output_release(&before);
  ts_model_destroy(&model);
  case_release(&sound);
  return 0;
}

static void expect_sound(void)
{
  const ts_step_params params = case_params(model, 0.5);
  case_output after = case_evaluate(&params, sound.system);
  assert_memory_equal(after.energy, before.energy, (size_t)after.n * sizeof *after.energy);
  assert_memory_equal(after.force, before.force, (size_t)after.n * sizeof *after.force);
  case_output_release(&after);
}

static void expect_message(int status, int count, const char *const *parts)
{
  print_message("%s\n", ts_error_message());
  assert_int_equal(status, TS_ERR_SIMULATION);
  for (int i = 0; i < count; i++)
    if (!strstr(ts_error_message(), parts[i]))
      fail_msg("\"%s\" is not in \"%s\"", parts[i], ts_error_message());
}

#define EXPECT_MESSAGE(status, ...)                                                     \
  expect_message(status, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), \
                 (const char *[]){__VA_ARGS__})

static ts_lidx atom(const ts_system *system, ts_gidx gid)
{
  ts_lidx i = 0;
  while (system->gid[i] != gid)
    i++;
  return i;
}

/* The system with a step at its sound positions; the caller then breaks it. */
static ts_system *start(ts_step **step)
{
  const ts_step_params params = case_params(model, 0.5);
  ts_system *system = case_copy(sound.system);
  ts_partial total;
  must(ts_step_create(&params, system, step));
  must(ts_step_evaluate(*step, 0, &total));
  return system;
}

static void finish(ts_step **step, ts_system **system)
{
  ts_step_destroy(step);
  ts_system_destroy(system);
  expect_sound();
}

/* As text in messages: "(x, y, z)". */
static const char *place(const double x[3], char *text, size_t size)
{
  snprintf(text, size, "(%.6f, %.6f, %.6f)", x[0], x[1], x[2]);
  return text;
}

static void overlap_from_the_start(void **state)
{
  (void)state;
  const ts_step_params params = case_params(model, 0.5);
  ts_system *system = case_copy(sound.system);
  ts_partial total;
  ts_step *step;
  char text[2][100];
  memcpy(system->x[20], system->x[3], sizeof system->x[3]);
  system->x[20][1] += 0.05;
  must(ts_step_create(&params, system, &step));
  EXPECT_MESSAGE(ts_step_evaluate(step, 17, &total), "step 17", "atoms ", "4 at ", "21 at ",
                 "overlap", place(system->x[atom(system, 3)], text[0], 100),
                 place(system->x[atom(system, 20)], text[1], 100));
  finish(&step, &system);
}

/* Exactly on top of each other: no direction, and still no NaN and no crash. */
static void coincidence(void **state)
{
  (void)state;
  ts_step *step;
  ts_system *system = start(&step);
  ts_partial total;
  memcpy(system->x[atom(system, 7)], system->x[atom(system, 8)], sizeof system->x[0]);
  EXPECT_MESSAGE(ts_step_evaluate(step, 2, &total), "step 2", "8 at ", "9 at ", "overlap");
  finish(&step, &system);
}

/* Ids, not places in memory, are named. */
static void not_a_number_from_the_start(void **state)
{
  (void)state;
  const ts_step_params params = case_params(model, 0.5);
  ts_system *system = case_copy(sound.system);
  ts_step *step;
  ts_lidx order[64];
  for (ts_lidx i = 0; i < system->n; i++)
    order[i] = system->n - 1 - i;
  must(ts_system_permute(system, order));
  system->x[atom(system, 11)][2] = NAN;
  EXPECT_MESSAGE(ts_step_create(&params, system, &step), "atom 12 ", "nan");
  assert_null(step);
  finish(&step, &system);
}

/* The caller's positions: the atoms are in another order by then, the message still knows the id.
 */
static void not_a_number_later(void **state)
{
  (void)state;
  ts_step *step;
  ts_system *system = start(&step);
  ts_partial total;
  system->x[atom(system, 5)][1] = NAN;
  EXPECT_MESSAGE(ts_step_evaluate(step, 23, &total), "step 23", "atom 6 ", "nan");
  finish(&step, &system);
}

static void infinite_velocity(void **state)
{
  (void)state;
  const ts_motion motion = {.timestep = 0.5};
  ts_step *step;
  ts_system *system = start(&step);
  ts_partial total;
  system->v[atom(system, 14)][0] = INFINITY;
  EXPECT_MESSAGE(ts_step_advance(step, &motion, 4, &total), "step 4", "atom 15 ", "inf");
  finish(&step, &system);
}

/* 5 Å/fs for 0.5 fs. */
static void leap(void **state)
{
  (void)state;
  const ts_motion motion = {.timestep = 0.5};
  ts_step *step;
  ts_system *system = start(&step);
  ts_partial total;
  char from[100], to[100];
  const ts_lidx i = atom(system, 2);
  place(system->x[i], from, sizeof from);
  system->v[i][0] = 3;
  system->v[i][2] = -4;
  const int status = ts_step_advance(step, &motion, 99, &total);
  EXPECT_MESSAGE(status, "step 99", "atom 3 ", "lost", from, place(system->x[i], to, sizeof to));
  finish(&step, &system);
}

/* Nor is the step object itself harmed: it goes on once the atoms are sound again. */
static void recovery(void **state)
{
  (void)state;
  ts_step *step;
  ts_system *system = start(&step);
  ts_partial total;
  const ts_lidx i = atom(system, 7);
  const double good[3] = {system->x[i][0], system->x[i][1], system->x[i][2]};
  case_output after = {.n = system->n, .energy = calloc((size_t)system->n, sizeof(double))};
  for (int broken = 0; broken < 3; broken++) {
    memcpy(system->x[i], system->x[atom(system, 8)], sizeof good);
    if (broken == 1) system->x[i][0] = NAN;
    if (broken == 2) system->x[i][0] = 1e12; /* more periods away than are counted */
    assert_int_equal(ts_step_evaluate(step, 2, &total), TS_ERR_SIMULATION);
    memcpy(system->x[i], good, sizeof good);
    must(ts_step_evaluate(step, 3, &total));
    case_results(step, system, after.energy, NULL);
    assert_memory_equal(after.energy, before.energy, (size_t)after.n * sizeof *after.energy);
  }
  free(after.energy);
  finish(&step, &system);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overlap_from_the_start),
      cmocka_unit_test(coincidence),
      cmocka_unit_test(not_a_number_from_the_start),
      cmocka_unit_test(not_a_number_later),
      cmocka_unit_test(infinite_velocity),
      cmocka_unit_test(leap),
      cmocka_unit_test(recovery),
  };
  ts_engine *engine = case_engine(1, NULL);
  const int failed = cmocka_run_group_tests(tests, set_up, tear_down);
  ts_engine_destroy(&engine);
  return failed;
}
