/* SPDX-License-Identifier: MIT
 *
 * The numbers of a step: closed forms of each, signs of pressure and stress, the motion of the
 * centre of mass, and the same bits for any slicing and order. */
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
static double mass[ATOMS], energy[ATOMS], x[ATOMS][3], v[ATOMS][3], f[ATOMS][3], virial[ATOMS][9];

static int set_up(void **state)
{
  (void)state;
  uint32_t random = 1;
  memset(virial, 0, sizeof virial);
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

static void observe(double timestep, int n, const ts_observe_setup *setup, int64_t step,
                    ts_observables *out)
{
  ts_partial partial;
  ts_observer observer = {0};
  ts_observe_slice(timestep, n, gid, mass, x, v, f, energy, virial, NULL, &partial);
  if (ts_observe(setup, step, &partial, &observer, out)) fail_msg("%s", ts_error_message());
}

static void close_to(double value, double expected)
{
  if (!(fabs(value - expected) <= 1e-11 * fabs(expected) + 1e-12)) /* sums: 1e-12 per term */
    fail_msg("%.17g instead of %.17g", value, expected);
}

static void test_closed_forms(void **state)
{
  (void)state;
  const double volume = 1000.0, dt = 0.5;
  const ts_observe_setup setup = {
      .natoms = ATOMS, .dof = 3 * ATOMS, .volume = volume, .timestep = dt};
  ts_observables now;
  observe(dt, ATOMS, &setup, 40, &now);
  double epot = 0.0, kinetic[3][3] = {{0}}, half[3][3] = {{0}}, momentum[3] = {0};
  for (int i = 0; i < ATOMS; i++) {
    epot += energy[i];
    for (int k = 0; k < 3; k++) {
      momentum[k] += mass[i] * v[i][k];
      for (int l = 0; l < 3; l++) {
        const double kick[2] = {0.5 * dt * f[i][k] / mass[i], 0.5 * dt * f[i][l] / mass[i]};
        kinetic[k][l] += mass[i] * v[i][k] * v[i][l];
        half[k][l] += 0.5 * mass[i] * (v[i][k] - kick[0]) * (v[i][l] - kick[1]);
        half[k][l] += 0.5 * mass[i] * (v[i][k] + kick[0]) * (v[i][l] + kick[1]);
      }
    }
  }
  const double trace = kinetic[0][0] + kinetic[1][1] + kinetic[2][2];
  const double half_trace = half[0][0] + half[1][1] + half[2][2];
  assert_int_equal(now.step, 40);
  close_to(now.time, 0.02);
  close_to(now.epot, epot);
  close_to(now.ekin, 0.5 * trace);
  close_to(now.etot, epot + 0.5 * trace);
  close_to(now.temperature_on_step, trace / (3 * ATOMS * TS_BOLTZMANN));
  close_to(now.temperature, half_trace / (3 * ATOMS * TS_BOLTZMANN));
  close_to(now.pressure, half_trace / 3.0 / volume * 1602176.634);
  static const int row[6] = {0, 1, 2, 1, 0, 0}, column[6] = {0, 1, 2, 2, 2, 1};
  for (int c = 0; c < 6; c++) {
    close_to(now.stress[c], -half[row[c]][column[c]] / volume);
    assert_true(now.virial_stress[c] == 0.0);
  }
  for (int k = 0; k < 3; k++)
    close_to(now.momentum[k], momentum[k]);
}

/* dE/d(strain) < 0: the system pushes outwards, positive pressure, negative stress. */
static void test_signs(void **state)
{
  (void)state;
  const double outwards[1][9] = {{-3.0, 0.5, 0.0, 0.7, -3.0, 0.0, 0.0, 0.2, -3.0}};
  const ts_observe_setup setup = {.natoms = 1, .dof = 3, .volume = 100.0, .timestep = 1.0};
  const double zero[1][3] = {{0}};
  ts_partial partial;
  ts_observer observer = {0};
  ts_observables now;
  ts_observe_slice(0.0, 1, gid, mass, zero, zero, zero, NULL, outwards, NULL, &partial);
  assert_int_equal(ts_observe(&setup, 0, &partial, &observer, &now), 0);
  close_to(now.pressure, 0.03 * 1602176.634);
  static const double expected[6] = {-0.03, -0.03, -0.03, 0.001, 0.0, 0.006};
  for (int c = 0; c < 6; c++)
    assert_true(fabs(now.stress[c] - expected[c]) < 1e-14);
}

static void test_centre_of_mass(void **state)
{
  (void)state;
  ts_observe_setup setup = {.natoms = ATOMS, .dof = ts_observe_dof(ATOMS, false), .timestep = 1.0};
  setup.momentum_conserved = true;
  ts_observables before, after;
  assert_int_equal(setup.dof, 3 * ATOMS - 3);
  assert_int_equal(ts_observe_dof(ATOMS, true), 3 * ATOMS);
  assert_int_equal(ts_observe_dof(1, false), 0);
  assert_int_equal(ts_observe_dof(0, false), 0);
  observe(0.0, ATOMS, &setup, 0, &before);
  for (int i = 0; i < ATOMS; i++)
    v[i][1] += 0.25; /* wind is not heat */
  observe(0.0, ATOMS, &setup, 0, &after);
  assert_true(fabs(before.temperature - after.temperature) < 1e-8 * before.temperature);
  assert_true(after.ekin > 10.0 * before.ekin);
  assert_true(isnan(after.pressure) && isnan(after.stress[0]));
  set_up(NULL);
}

static void test_any_slicing(void **state)
{
  (void)state;
  const ts_observe_setup setup = {
      .natoms = ATOMS, .dof = 3 * ATOMS, .volume = 1000.0, .timestep = 0.5};
  ts_observables whole, sliced;
  for (int i = 0; i < 9 * ATOMS; i++)
    virial[i / 9][i % 9] = sin(i);
  f[3][0] = f[400][1] = -5.0; /* two largest forces: the lower id counts */
  for (int k = 0; k < 2; k++)
    f[3][1 + k] = f[400][2 * k] = 0.25;
  observe(0.5, ATOMS, &setup, 7, &whole);
  assert_int_equal(whole.max_force_gid, 3);
  for (int slice = 1; slice < ATOMS; slice = 2 * slice + 1) {
    ts_partial total;
    ts_observer observer = {0};
    ts_partial_clear(&total);
    for (int first = (ATOMS - 1) / slice * slice; first >= 0; first -= slice) {
      ts_partial partial;
      ts_observe_slice(0.5, ATOMS - first < slice ? ATOMS - first : slice, gid + first,
                       mass + first, x + first, v + first, f + first, energy + first,
                       virial + first, NULL, &partial);
      ts_partial_merge(&total, &partial);
    }
    assert_int_equal(ts_observe(&setup, 7, &total, &observer, &sliced), 0);
    assert_memory_equal(&whole, &sliced, sizeof whole);
  }
  set_up(NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_closed_forms),
      cmocka_unit_test(test_signs),
      cmocka_unit_test(test_centre_of_mass),
      cmocka_unit_test(test_any_slicing),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
