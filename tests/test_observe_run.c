/* SPDX-License-Identifier: MIT
 *
 * A run as it is observed: the drift is a least-squares slope and survives a restart, and a run
 * that has blown up stops with step, atom and position. */
#include "md/observe.h"
#include "md/ts_units.h"
#include "runtime/error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { ATOMS = 500 };

static ts_gidx gid[ATOMS];
static double mass[ATOMS], energy[ATOMS], x[ATOMS][3], v[ATOMS][3], f[ATOMS][3];

static int set_up(void **state)
{
  (void)state;
  uint32_t random = 1;
  for (int i = 0; i < ATOMS; i++) {
    gid[i] = i;
    mass[i] = (1 + i % 40) * TS_ATOMIC_MASS;
    energy[i] = -20.0 - i % 7 / 3.0;
    for (int k = 0; k < 3; k++) {
      x[i][k] = (double)(random = random * 1664525u + 1013904223u) / 0x1p29;
      v[i][k] = (double)(random = random * 1664525u + 1013904223u) / 0x1p37 - 0.015;
      f[i][k] = (double)(random = random * 1664525u + 1013904223u) / 0x1p31 - 1.0;
    }
  }
  return 0;
}

/* A partial whose energy is `value` and whose heat is `heat`; nothing moves. */
static void energy_only(double value, double heat, ts_partial *partial)
{
  ts_partial_clear(partial);
  ts_sum_add(&partial->energy, value);
  ts_sum_add(&partial->heat, heat);
}

/* E = a + b t plus a wave that a slope over whole periods does not see. */
static void test_drift(void **state)
{
  (void)state;
  const ts_observe_setup setup = {.natoms = 10, .dof = 27, .timestep = 0.5};
  ts_observer observer = {0}, resumed;
  ts_observables now, other;
  double x1 = 0.0, x2 = 0.0, y1 = 0.0, xy = 0.0;
  const int count = 4000;
  for (int s = 0; s <= count; s++) {
    const double t = s * 0.5e-3, e = -1e4 + 5e-3 * t + 1e-3 * sin(0.1 * s);
    ts_partial partial;
    energy_only(e + 0.25 * s, s ? 0.25 : 0.0, &partial); /* heat comes in; conserved is e */
    assert_int_equal(ts_observe(&setup, s, &partial, &observer, &now), 0);
    if (s == 1234) { /* through a checkpoint's array of doubles */
      double stored[TS_OBSERVER_DOUBLES];
      memcpy(stored, &observer, sizeof stored);
      memcpy(&resumed, stored, sizeof stored);
    } else if (s > 1234) {
      assert_int_equal(ts_observe(&setup, s, &partial, &resumed, &other), 0);
      assert_memory_equal(&now, &other, sizeof now);
    }
    assert_true(fabs(now.conserved - e) < 1e-8);
    x1 += t;
    x2 += t * t;
    y1 += (e + 1e4) / 10.0;
    xy += t * (e + 1e4) / 10.0;
  }
  const double n = count + 1.0, slope = (xy - x1 * y1 / n) / (x2 - x1 * x1 / n) * 1e6;
  assert_true(fabs(now.drift - slope) < 1e-4 * fabs(slope));
  assert_true(fabs(now.drift - 500.0) < 20.0);
}

static int observe_status(const ts_observe_setup *setup)
{
  ts_partial partial;
  ts_observer observer = {0};
  ts_observables now;
  ts_observe_slice(0.0, ATOMS, gid, mass, x, v, f, energy, NULL, NULL, &partial);
  return ts_observe(setup, 120, &partial, &observer, &now);
}

static void expect_failure(const ts_observe_setup *setup, const char *first, const char *second)
{
  assert_int_equal(observe_status(setup), TS_ERR_SIMULATION);
  if (!strstr(ts_error_message(), first) || !strstr(ts_error_message(), second))
    fail_msg("message '%s' lacks '%s' or '%s'", ts_error_message(), first, second);
  set_up(NULL);
  assert_int_equal(observe_status(setup), 0);
}

static void test_blow_up(void **state)
{
  (void)state;
  ts_observe_setup setup = {
      .natoms = ATOMS, .dof = 3 * ATOMS, .volume = 1e3, .timestep = 0.5, .target = 300.0};
  f[41][1] = NAN;
  f[77][1] = INFINITY;
  x[41][0] = 12.5;
  expect_failure(&setup, "step 120: atom 42 ", "(12.5, ");
  v[499][2] = -INFINITY;
  expect_failure(&setup, "step 120: atom 500 ", "not finite");
  x[0][2] = NAN;
  expect_failure(&setup, "step 120: atom 1 ", "not finite");
  energy[7] = NAN;
  expect_failure(&setup, "step 120: ", "potential energy nan");
  for (int i = 0; i < ATOMS; i++)
    v[i][0] = 0.2; /* above 100 times 300 K */
  f[8][0] = 812.0;
  x[8][0] = 3.25;
  expect_failure(&setup, "on atom 9 at (3.25,", "blown up");
  for (int i = 0; i < ATOMS; i++)
    v[i][0] = 0.2;
  setup.target = 0.0; /* no thermostat: allowed up to 1e6 K */
  assert_int_equal(observe_status(&setup), 0);
  v[5][0] = 1e4;
  expect_failure(&setup, "step 120: ", "limit 1e+06 K");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_drift),
      cmocka_unit_test(test_blow_up),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
