/* SPDX-License-Identifier: MIT
 *
 * Drawn velocities: exact temperature with 3N-3 degrees of freedom, no net momentum, the
 * Maxwell-Boltzmann distribution for each mass, the same bits for any slicing and any order of the
 * atoms, and the ends of the range: one atom, two atoms, temperature 0. */
#include "md/ts_units.h"
#include "md/velocities.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 3000 };

static ts_gidx gid[COUNT];
static double mass[COUNT], v[COUNT][3], w[COUNT][3];

static int set_up(void **state)
{
  (void)state;
  for (int i = 0; i < COUNT; i++) {
    gid[i] = i;
    mass[i] = (i % 3 ? 1.008 : 15.999) * TS_ATOMIC_MASS;
  }
  return 0;
}

/* Draw n atoms in slices of `slice`, last slice first, and settle. */
static void draw(uint64_t seed, double temperature, int n, int slice, double (*out)[3])
{
  ts_velocity_sums total = {0};
  for (int first = (n - 1) / slice * slice; first >= 0; first -= slice) {
    const int count = n - first < slice ? n - first : slice;
    ts_velocity_sums sums = {0};
    ts_velocities_draw(seed, count, gid + first, mass + first, out + first, &sums);
    ts_velocity_sums_merge(&total, &sums);
  }
  for (int first = 0; first < n; first += slice)
    ts_velocities_settle(temperature, &total, n - first < slice ? n - first : slice, out + first);
}

static double twice_kinetic(int n)
{
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    sum += mass[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
  return sum;
}

static void check_temperature_and_momentum(int n, double temperature)
{
  draw(1, temperature, n, n, v);
  const double reached = twice_kinetic(n) / ((3.0 * n - 3.0) * TS_BOLTZMANN);
  assert_true(fabs(reached - temperature) <= 1e-11 * temperature);
  for (int k = 0; k < 3; k++) {
    double p = 0.0, size = 0.0;
    for (int i = 0; i < n; i++) {
      p += mass[i] * v[i][k];
      size += fabs(mass[i] * v[i][k]);
    }
    assert_true(fabs(p) <= 1e-12 * size);
  }
}

static void test_temperature_and_momentum(void **state)
{
  (void)state;
  static const int n[] = {2, 3, 8, COUNT};
  for (int i = 0; i < 4; i++) {
    check_temperature_and_momentum(n[i], 300.0);
    check_temperature_and_momentum(n[i], 1e-6);
    check_temperature_and_momentum(n[i], 5000.0);
  }
}

/* Each element has its share: <m v^2> = kT per component, within five standard errors. */
static void test_equipartition(void **state)
{
  (void)state;
  draw(5, 300.0, COUNT, COUNT, v);
  for (int element = 0; element < 3; element++) {
    double m2 = 0.0, m4 = 0.0;
    const int count = COUNT / 3 * 3;
    for (int i = element; i < COUNT; i += 3)
      for (int k = 0; k < 3; k++) {
        const double e = mass[i] * v[i][k] * v[i][k] / (TS_BOLTZMANN * 300.0);
        m2 += e / count;
        m4 += e * e / count;
      }
    assert_true(fabs(m2 - 1.0) < 5.0 * sqrt(2.0 / count));
    assert_true(fabs(m4 - 3.0) < 5.0 * sqrt(96.0 / count));
  }
}

static void test_slicing_and_order(void **state)
{
  (void)state;
  draw(1, 300.0, COUNT, COUNT, v);
  static const int slice[] = {1, 7, 64, 1000};
  for (int s = 0; s < 4; s++) {
    draw(1, 300.0, COUNT, slice[s], w);
    assert_memory_equal(v, w, sizeof v);
  }
  for (int i = 0; i < COUNT; i++) { /* turned round: the masses stay with the ids */
    gid[i] = COUNT - 1 - i;
    mass[i] = (gid[i] % 3 ? 1.008 : 15.999) * TS_ATOMIC_MASS;
  }
  draw(1, 300.0, COUNT, 11, w);
  for (int i = 0; i < COUNT; i++)
    assert_memory_equal(v[i], w[COUNT - 1 - i], sizeof v[i]);
  set_up(NULL);
}

static void test_seeds_differ(void **state)
{
  (void)state;
  draw(1, 300.0, COUNT, COUNT, v);
  draw(2, 300.0, COUNT, COUNT, w);
  double cross = 0.0;
  for (int i = 0; i < COUNT; i++)
    for (int k = 0; k < 3; k++)
      cross += mass[i] * v[i][k] * w[i][k] / (TS_BOLTZMANN * 300.0);
  assert_true(fabs(cross) < 5.0 * sqrt(3.0 * COUNT));
}

static void test_nothing_moves(void **state)
{
  (void)state;
  static const double zero[COUNT][3];
  draw(1, 0.0, COUNT, 100, v);
  for (int i = 0; i < 3 * COUNT; i++)
    assert_true(v[i / 3][i % 3] == 0.0);
  draw(1, 300.0, 1, 1, v);
  assert_memory_equal(v, zero, sizeof v[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_temperature_and_momentum),
      cmocka_unit_test(test_equipartition),
      cmocka_unit_test(test_slicing_and_order),
      cmocka_unit_test(test_seeds_differ),
      cmocka_unit_test(test_nothing_moves),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
