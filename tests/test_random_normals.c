/* SPDX-License-Identifier: MIT
 *
 * The deviates are normal and independent: moments, a chi-square of their distribution and its
 * tails, and correlations (also of squares) between components, atoms, steps, seeds and purposes.
 * The numbers are fixed by the seed, so a limit of five standard errors can only be broken by a
 * change of the generator. */
#include "md/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ATOMS = 400, STEPS = 400, COUNT = ATOMS * STEPS };

static void draw(uint64_t seed, ts_purpose purpose, ts_gidx gid, int64_t step, double (*out)[3])
{
  for (int i = 0; i < COUNT; i++)
    ts_random_normal3(seed, purpose, gid + i % ATOMS, step + i / ATOMS, out[i]);
}

static void near(const char *what, double value, double expected, double standard_error)
{
  if (!(fabs(value - expected) <= 5.0 * standard_error))
    fail_msg("%s is %g, expected %g +- %g", what, value, expected, standard_error);
}

static void test_moments(void **state)
{
  (void)state;
  double(*x)[3] = malloc(sizeof *x * COUNT);
  assert_non_null(x);
  draw(1, TS_PURPOSE_LANGEVIN, 0, 0, x);
  for (int k = 0; k < 3; k++) {
    double m[5] = {0};
    for (int i = 0; i < COUNT; i++)
      for (int p = 1; p < 5; p++)
        m[p] += pow(x[i][k], p) / COUNT;
    near("mean", m[1], 0.0, sqrt(1.0 / COUNT));
    near("variance", m[2], 1.0, sqrt(2.0 / COUNT));
    near("third moment", m[3], 0.0, sqrt(15.0 / COUNT));
    near("fourth moment", m[4], 3.0, sqrt(96.0 / COUNT));
  }
  free(x);
}

/* Equally probable bins by the normal distribution function; tails by their own probability. */
static void test_distribution(void **state)
{
  (void)state;
  enum { BINS = 200 };
  double(*x)[3] = malloc(sizeof *x * COUNT);
  assert_non_null(x);
  draw(2, TS_PURPOSE_LANGEVIN, 0, 0, x);
  int bin[BINS] = {0}, beyond = 0;
  for (int i = 0; i < 3 * COUNT; i++) {
    const double value = x[i / 3][i % 3], u = 0.5 * erfc(-value / sqrt(2.0));
    const int b = (int)(u * BINS);
    bin[b < BINS ? b : BINS - 1]++;
    if (fabs(value) > 4.0) beyond++;
  }
  const double expected = 3.0 * COUNT / BINS;
  double chi2 = 0.0;
  for (int b = 0; b < BINS; b++)
    chi2 += (bin[b] - expected) * (bin[b] - expected) / expected;
  near("chi-square", chi2, BINS - 1, sqrt(2.0 * (BINS - 1)));
  const double tail = 3.0 * COUNT * erfc(4.0 / sqrt(2.0));
  near("count beyond 4", beyond, tail, sqrt(tail));
  free(x);
}

/* Correlation of a and b, and of their squares. */
static void uncorrelated(const char *what, double (*a)[3], double (*b)[3], int turn)
{
  double product = 0.0, square = 0.0;
  for (int i = 0; i < 3 * COUNT; i++) {
    const double p = a[i / 3][i % 3], q = b[i / 3][(i + turn) % 3];
    product += p * q;
    square += (p * p - 1.0) * (q * q - 1.0);
  }
  near(what, product / (3.0 * COUNT), 0.0, sqrt(1.0 / (3.0 * COUNT)));
  near(what, square / (3.0 * COUNT), 0.0, sqrt(4.0 / (3.0 * COUNT)));
}

static void test_correlations(void **state)
{
  (void)state;
  double(*x)[3] = malloc(sizeof *x * COUNT), (*y)[3] = malloc(sizeof *y * COUNT);
  assert_non_null(x);
  assert_non_null(y);
  draw(1, TS_PURPOSE_LANGEVIN, 0, 0, x);
  uncorrelated("components", x, x, 1);
  draw(1, TS_PURPOSE_LANGEVIN, 1, 0, y);
  uncorrelated("neighbouring atoms", x, y, 0);
  draw(1, TS_PURPOSE_LANGEVIN, 1ll << 32, 0, y);
  uncorrelated("atoms 2^32 apart", x, y, 0);
  draw(1, TS_PURPOSE_LANGEVIN, 0, 1, y);
  uncorrelated("neighbouring steps", x, y, 0);
  uncorrelated("neighbouring steps, other component", x, y, 1);
  draw(2, TS_PURPOSE_LANGEVIN, 0, 0, y);
  uncorrelated("neighbouring seeds", x, y, 0);
  draw(1, TS_PURPOSE_VELOCITIES, 0, 0, y);
  uncorrelated("purposes", x, y, 0);
  free(x);
  free(y);
}

/* The mean over the atoms of a step and over the steps of an atom: sums of many, so common noise
 * too weak for the tests above would show. */
static void test_common_noise(void **state)
{
  (void)state;
  double of_step[STEPS] = {0}, of_atom[ATOMS] = {0}, step2 = 0.0, atom2 = 0.0, xi[3];
  for (int i = 0; i < COUNT; i++) {
    ts_random_normal3(3, TS_PURPOSE_LANGEVIN, i % ATOMS, i / ATOMS, xi);
    of_step[i / ATOMS] += xi[0];
    of_atom[i % ATOMS] += xi[0];
  }
  for (int i = 0; i < STEPS; i++)
    step2 += of_step[i] * of_step[i] / ATOMS / STEPS;
  for (int i = 0; i < ATOMS; i++)
    atom2 += of_atom[i] * of_atom[i] / STEPS / ATOMS;
  near("variance of sums over atoms", step2, 1.0, sqrt(2.0 / STEPS));
  near("variance of sums over steps", atom2, 1.0, sqrt(2.0 / ATOMS));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_moments),
      cmocka_unit_test(test_distribution),
      cmocka_unit_test(test_correlations),
      cmocka_unit_test(test_common_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
