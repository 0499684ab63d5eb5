/* SPDX-License-Identifier: MIT
 *
 * An automatic period: atoms that rest, or tremble however long, are never dealt out anew; atoms
 * that travel are, each time after half the longest cutoff.  No number depends on it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/case.h"

enum { STEPS = 16, NEVER = 1000000000 };
static const double TIMESTEP = 0.1; /* [fs] */
static const double STRIDE = 0.45;  /* [Å] a step */
static const double CUTOFF = 5;     /* of the case [Å] */

typedef enum walk { REST, TREMBLE, TRAVEL } walk;

/* Total energies of all steps; the number of partitions after the first. */
static int64_t simulate(const ts_model *model, const golden_case *c, walk how, int64_t period,
                        double *energy)
{
  const ts_motion motion = {.timestep = TIMESTEP};
  ts_step_params params = case_params(model, 0.4);
  ts_system *system = case_copy(c->system);
  ts_partial total;
  ts_step *step;
  params.rebuild = 3;
  params.period = period;
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  for (int i = 1; i <= STEPS; i++) {
    const double sign = how == REST ? 0 : how == TREMBLE && i % 2 ? -1 : 1;
    for (ts_lidx a = 0; a < system->n; a++)
      for (int k = 0; k < 3; k++)
        system->v[a][k] = k == 0 ? sign * STRIDE / TIMESTEP : 0;
    must(ts_step_advance(step, &motion, i, &total));
    energy[i - 1] = ts_sum_value(&total.energy);
  }
  const int64_t partitions = ts_step_statistics(step).rebuilds[TS_REBUILD_PARTITION];
  assert_true(!period == !!ts_step_partition_positions(step));
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  return partitions;
}

static void only_travel_is_a_reason(void **state)
{
  (void)state;
  golden_case c = case_read("triclinic-first");
  ts_model *model = case_model(&c, true);
  double energy[STEPS], fixed[STEPS];
  ts_engine *engine = case_engine(1, NULL);
  assert_true(c.desc.nstages == 1 && c.desc.stage[0].cutoff == CUTOFF);
  assert_int_equal(simulate(model, &c, REST, 0, energy), 0);
  assert_int_equal(simulate(model, &c, TREMBLE, 0, energy), 0);
  assert_int_equal(simulate(model, &c, TRAVEL, NEVER, fixed), 0);
  /* every step is longer than skin/2 and rebuilds; what a build finds counts at the next */
  const int64_t far = (int64_t)floor(CUTOFF / 2 / STRIDE) + 1;
  assert_int_equal(simulate(model, &c, TRAVEL, 0, energy), STEPS / (far + 1));
  assert_true(STEPS / (far + 1) > 1);
  for (int i = 0; i < STEPS; i++)
    assert_true(fabs(energy[i] - fixed[i]) <= 1e-11 * fabs(fixed[i]));
  ts_engine_destroy(&engine);
  ts_model_destroy(&model);
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_travel_is_a_reason)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
