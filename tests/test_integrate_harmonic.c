/* SPDX-License-Identifier: MIT
 *
 * Both integrators on independent harmonic oscillators, where everything is known: Verlet's energy
 * error falls as the square of the timestep and does not drift, and BAOAB samples positions, and
 * the half-step kinetic energy, exactly even at large timesteps.  Slices of any size, and a restart
 * in the middle, give the same bits. */
#include "md/integrate.h"
#include "md/observe.h"
#include "md/ts_units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ATOMS = 60 };

static const double stiffness = 40.0; /* [eV/Å^2], a stiff bond: period 10 fs for hydrogen */

typedef struct world {
  double x[ATOMS][3], v[ATOMS][3], f[ATOMS][3];
} world;

static ts_gidx gid[ATOMS];
static double mass[ATOMS];
static const double origin[ATOMS][3];

static int set_up(void **state)
{
  (void)state;
  for (int i = 0; i < ATOMS; i++) {
    gid[i] = i;
    mass[i] = (i % 2 ? 1.008 : 2.5) * TS_ATOMIC_MASS;
  }
  return 0;
}

static void force(world *w)
{
  for (int i = 0; i < 3 * ATOMS; i++)
    w->f[i / 3][i % 3] = -stiffness * w->x[i / 3][i % 3];
}

static double potential(const world *w)
{
  double sum = 0.0;
  for (int i = 0; i < 3 * ATOMS; i++)
    sum += 0.5 * stiffness * w->x[i / 3][i % 3] * w->x[i / 3][i % 3];
  return sum;
}

static double kinetic(const world *w)
{
  double sum = 0.0;
  for (int i = 0; i < 3 * ATOMS; i++)
    sum += 0.5 * mass[i / 3] * w->v[i / 3][i % 3] * w->v[i / 3][i % 3];
  return sum;
}

static void start(world *w)
{
  memset(w, 0, sizeof *w);
  for (int i = 0; i < 3 * ATOMS; i++)
    w->x[i / 3][i % 3] = 0.02 * (1 + i % 5);
  force(w);
}

/* One step in slices; returns the heat. */
static double step(const ts_motion *motion, int64_t number, int slice, world *w)
{
  ts_sum heat = {0};
  for (int i = 0; i < ATOMS; i += slice) {
    const int n = ATOMS - i < slice ? ATOMS - i : slice;
    ts_motion_report report;
    ts_integrate_first(motion, number, n, gid + i, mass + i, w->f + i, w->v + i, w->x + i, origin,
                       &report);
    assert_int_equal(report.bad, -1);
    ts_sum_merge(&heat, &report.heat);
  }
  force(w);
  for (int i = 0; i < ATOMS; i += slice)
    ts_integrate_second(motion, ATOMS - i < slice ? ATOMS - i : slice, mass + i, w->f + i,
                        w->v + i);
  return ts_sum_value(&heat);
}

/* Largest energy error of `time` fs. */
static double verlet_error(double timestep, double time)
{
  const ts_motion motion = {.timestep = timestep};
  world w;
  start(&w);
  const double before = potential(&w);
  double worst = 0.0;
  for (int64_t s = 1; s <= llrint(time / timestep); s++) {
    assert_true(step(&motion, s, ATOMS, &w) == 0.0);
    worst = fmax(worst, fabs(potential(&w) + kinetic(&w) - before));
  }
  return worst / before;
}

static void test_verlet_is_second_order(void **state)
{
  (void)state;
  const double coarse = verlet_error(0.4, 2000.0), fine = verlet_error(0.2, 2000.0);
  assert_true(coarse < 0.02);
  assert_true(fabs(coarse / fine - 4.0) < 0.2);
  const double longer = verlet_error(0.4, 20000.0); /* bounded: no drift */
  assert_true(fabs(longer / coarse - 1.0) < 0.01);
}

/* Mean and standard error of a correlated series, from the means of 50 blocks. */
static void block_mean(int n, const double *series, double *mean, double *standard_error)
{
  enum { BLOCKS = 50 };
  double sum = 0.0, square = 0.0;
  for (int b = 0; b < BLOCKS; b++) {
    double block = 0.0;
    for (int i = n / BLOCKS * b; i < n / BLOCKS * (b + 1); i++)
      block += series[i];
    block /= n / BLOCKS; /* NOLINT: the count of a block */
    sum += block;
    square += block * block;
  }
  *mean = sum / BLOCKS;
  *standard_error = sqrt((square / BLOCKS - *mean * *mean) / (BLOCKS - 1));
}

static void expect_mean(const char *what, int n, const double *series, double expected,
                        double limit)
{
  double mean, standard_error;
  block_mean(n, series, &mean, &standard_error);
  if (!(fabs(mean - expected) < 4.0 * standard_error) || standard_error > limit * expected)
    fail_msg("%s: %g +- %g, expected %g", what, mean, standard_error, expected);
}

/* omega dt is 0.6 for the light atoms: Verlet-like errors would be 9 %. */
static void test_baoab_samples_exactly(void **state)
{
  (void)state;
  enum { STEPS = 100000 };
  const ts_motion motion = {
      .timestep = 1.0, .langevin = true, .friction = 0.05, .temperature = 300.0, .seed = 11};
  const double kt = TS_BOLTZMANN * motion.temperature;
  double *position = malloc(sizeof *position * STEPS), *half = malloc(sizeof *half * STEPS);
  double heat = 0.0, lowest = INFINITY, highest = -INFINITY;
  world w;
  assert_non_null(position);
  assert_non_null(half);
  start(&w);
  for (int s = 1; s <= 2000; s++)
    step(&motion, s, ATOMS, &w);
  for (int s = 0; s < STEPS; s++) {
    heat += step(&motion, 2001 + s, ATOMS, &w);
    ts_partial partial;
    ts_observe_slice(motion.timestep, ATOMS, gid, mass, w.x, w.v, w.f, NULL, NULL, NULL, &partial);
    position[s] = 2.0 * potential(&w) / (3 * ATOMS);
    half[s] = 0.0;
    for (int c = 0; c < 3; c++)
      half[s] += (ts_sum_value(&partial.kinetic[c]) + ts_sum_value(&partial.kick[c])) / (3 * ATOMS);
    const double conserved = potential(&w) + kinetic(&w) - heat;
    lowest = fmin(lowest, conserved);
    highest = fmax(highest, conserved);
  }
  expect_mean("k <x^2>", STEPS, position, kt, 2e-3);
  expect_mean("m <v^2> at half steps", STEPS, half, kt, 2e-3);
  /* the total energy itself spans about 0.7 of this unit */
  assert_true(highest - lowest < 0.06 * 3 * ATOMS * kt);
  free(position);
  free(half);
}

static void test_no_friction_is_verlet(void **state)
{
  (void)state;
  const ts_motion verlet = {.timestep = 0.5},
                  cold = {.timestep = 0.5, .langevin = true, .temperature = 300.0};
  world a, b;
  start(&a);
  start(&b);
  for (int s = 1; s <= 100; s++) {
    step(&verlet, s, ATOMS, &a);
    assert_true(step(&cold, s, ATOMS, &b) == 0.0);
  }
  for (int i = 0; i < 3 * ATOMS; i++)
    assert_true(fabs(a.x[i / 3][i % 3] - b.x[i / 3][i % 3]) < 1e-12);
}

static void test_slices_and_restart(void **state)
{
  (void)state;
  for (int langevin = 0; langevin < 2; langevin++) {
    const ts_motion motion = {
        .timestep = 0.5, .langevin = langevin, .friction = 0.01, .temperature = 300.0, .seed = 3};
    world straight, other;
    double heat = 0.0, other_heat = 0.0;
    start(&straight);
    for (int s = 1; s <= 200; s++)
      heat += step(&motion, s, ATOMS, &straight);
    for (int slice = 1; slice < ATOMS; slice += 6) {
      start(&other);
      other_heat = 0.0;
      for (int s = 1; s <= 100; s++)
        other_heat += step(&motion, s, slice, &other);
      const world stored = other; /* all that a checkpoint holds */
      memset(&other, 0xff, sizeof other);
      other = stored;
      for (int s = 101; s <= 200; s++)
        other_heat += step(&motion, s, ATOMS - slice, &other);
      assert_memory_equal(&straight, &other, sizeof other);
      assert_true(heat == other_heat);
    }
  }
}

static void test_report(void **state)
{
  (void)state;
  const ts_motion motion = {.timestep = 1.0};
  const double still[3][3] = {{0}};
  double x[3][3] = {{0}}, v[3][3] = {{0.1, 0, 0}, {0, 0.3, 0.4}, {0}}, f[3][3] = {{0}};
  ts_motion_report report;
  ts_integrate_first(&motion, 1, 3, gid, mass, f, v, x, still, &report);
  assert_int_equal(report.bad, -1);
  assert_true(fabs(report.displacement2 - 0.25) < 1e-15);
  f[1][2] = NAN;
  f[2][0] = INFINITY;
  ts_integrate_first(&motion, 2, 3, gid, mass, f, v, x, still, &report);
  assert_int_equal(report.bad, 1);
  assert_true(isinf(report.displacement2));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_verlet_is_second_order),
      cmocka_unit_test(test_baoab_samples_exactly),
      cmocka_unit_test(test_no_friction_is_verlet),
      cmocka_unit_test(test_slices_and_restart),
      cmocka_unit_test(test_report),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
