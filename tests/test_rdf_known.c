/* SPDX-License-Identifier: MIT
 *
 * Radial distributions that are known: an ideal gas (1 everywhere, in a skewed box, past half of
 * it and in several batches), crystals (shells at exact places with exact coordination numbers,
 * from cells smaller than r_max), and a direct count over images. */
#include "md/rdf.h"
#include "runtime/error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { MAX_ATOMS = 4000, MAX_BINS = 600, MAX_PAIRS = 3 };

static double x[MAX_ATOMS][3];
static uint8_t z[MAX_ATOMS];
/* what was written: centre of each bin, then g and n of each pair */
static double r[MAX_BINS], g[MAX_PAIRS][MAX_BINS], n[MAX_PAIRS][MAX_BINS];
static const bool all[3] = {true, true, true};

static double uniform(void)
{
  static uint64_t random = 12345;
  random = random * 6364136223846793005u + 1442695040888963407u;
  return (double)(random >> 11) * 0x1p-53;
}

static void random_atoms(const ts_cell *cell, int first, int count, uint8_t element)
{
  for (int i = first; i < first + count; i++) {
    const double f[3] = {uniform(), uniform(), uniform()};
    for (int k = 0; k < 3; k++)
      x[i][k] = f[0] * cell->h[0][k] + f[1] * cell->h[1][k] + f[2] * cell->h[2][k];
    z[i] = element;
  }
}

static ts_rdf *create(const ts_cell *cell, int natoms, int npairs, const uint8_t (*pair)[2],
                      double r_max, double bin)
{
  const ts_rdf_params params = {.npairs = npairs, .pair = pair, .r_max = r_max, .bin = bin};
  ts_rdf *rdf;
  if (ts_rdf_create(&params, cell, natoms, z, &rdf)) fail_msg("%s", ts_error_message());
  return rdf;
}

static void add(ts_rdf *rdf, const ts_cell *cell, int natoms)
{
  if (ts_rdf_add(rdf, cell, natoms, (const double(*)[3])x, z)) fail_msg("%s", ts_error_message());
}

/* Write, read back into r, g, n; returns the number of bins. */
static int read_back(const ts_rdf *rdf, int npairs, const char *header)
{
  char path[] = "/tmp/tessera-test-XXXXXX", line[4096];
  int bins = 0;
  assert_true(close(mkstemp(path)) == 0);
  assert_int_equal(ts_rdf_write(rdf, path), 0);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  assert_string_equal(line, header);
  for (; fgets(line, sizeof line, file); bins++) {
    char *at = line;
    assert_true(bins < MAX_BINS);
    r[bins] = strtod(at, &at);
    for (int p = 0; p < npairs; p++) {
      g[p][bins] = strtod(at + 1, &at);
      n[p][bins] = strtod(at + 1, &at);
    }
    assert_true(*at == '\n');
  }
  fclose(file);
  unlink(path);
  return bins;
}

static void test_ideal_gas(void **state)
{
  (void)state;
  const double h[3][3] = {{31.0, 0.0, 0.0}, {14.0, 29.0, 0.0}, {-9.0, 11.0, 33.0}};
  const uint8_t pair[3][2] = {{8, 8}, {8, 1}, {1, 8}};
  enum { OXYGEN = 1200, HYDROGEN = 2400, FRAMES = 3 };
  ts_cell cell;
  assert_int_equal(ts_cell_init(&cell, h, all), 0);
  random_atoms(&cell, 0, OXYGEN, 8);
  random_atoms(&cell, OXYGEN, HYDROGEN, 1);
  ts_rdf *rdf = create(&cell, OXYGEN + HYDROGEN, 3, pair, 19.99, 0.5);
  for (int frame = 0; frame < FRAMES; frame++) {
    random_atoms(&cell, 0, OXYGEN, 8);
    random_atoms(&cell, OXYGEN, HYDROGEN, 1);
    add(rdf, &cell, OXYGEN + HYDROGEN);
  }
  assert_int_equal(read_back(rdf, 3, "r_A,g_O-O,n_O-O,g_O-H,n_O-H,g_H-O,n_H-O\n"), 40);
  for (int k = 0; k < 40; k++) {
    const double shell = 4.0 / 3.0 * 3.14159265358979 * (pow(r[k] + 0.25, 3) - pow(r[k] - 0.25, 3));
    const double expected = FRAMES * shell / ts_cell_volume(&cell) * OXYGEN; /* per O or per H */
    assert_true(fabs(r[k] - 0.5 * (k + 0.5)) < 1e-12);
    assert_true(fabs(g[0][k] - 1.0) < 5.0 / sqrt(expected * OXYGEN / 2.0));
    assert_true(fabs(g[1][k] - 1.0) < 5.0 / sqrt(expected * HYDROGEN));
    assert_true(g[1][k] == g[2][k]);
    assert_true(fabs(n[1][k] - 2.0 * n[2][k]) < 1e-9 * n[1][k]);
  }
  ts_rdf_destroy(&rdf);
}

/* Up to r, n atoms; between the listed distances nothing. */
static void expect_shells(int p, int bins, int nshells, const double *distance, const int *count)
{
  int shell = 0, sum = 0;
  for (int k = 0; k < bins; k++) {
    if (shell < nshells && distance[shell] < r[k] + 0.005) {
      sum += count[shell++];
      assert_true(g[p][k] > 0.0);
    } else {
      assert_true(g[p][k] == 0.0);
    }
    assert_true(fabs(n[p][k] - sum) < 1e-9);
  }
  assert_int_equal(shell, nshells);
}

static void test_crystals(void **state)
{
  (void)state;
  const double a = 4.003; /* no shell at the end of a bin */
  const double face[3][3] = {{0, a / 2, a / 2}, {a / 2, 0, a / 2}, {a / 2, a / 2, 0}};
  const double fcc[] = {sqrt(0.5) * a, a, sqrt(1.5) * a},
               salt[] = {0.5 * a, sqrt(0.75) * a, sqrt(1.25) * a};
  const int of_fcc[] = {12, 6, 24}, of_salt[] = {6, 8, 24};
  const uint8_t pair[2][2] = {{11, 11}, {11, 17}};
  ts_cell cell;
  assert_int_equal(ts_cell_init(&cell, face, all), 0);
  memset(x, 0, sizeof x[0] * 2);
  x[1][0] = 0.5 * a + 100.0 * face[1][0]; /* unwrapped, far away */
  x[1][2] = 100.0 * face[1][2];
  z[0] = 11;
  z[1] = 17;
  ts_rdf *rdf = create(&cell, 2, 2, pair, 5.2, 0.01);
  add(rdf, &cell, 2);
  const int bins = read_back(rdf, 2, "r_A,g_Na-Na,n_Na-Na,g_Na-Cl,n_Na-Cl\n");
  assert_int_equal(bins, 520);
  expect_shells(0, bins, 3, fcc, of_fcc);
  expect_shells(1, bins, 3, salt, of_salt);
  ts_rdf_destroy(&rdf);
}

/* A thin, skewed cell with few atoms against all images in a generous range. */
static void test_direct_count(void **state)
{
  (void)state;
  const double h[3][3] = {{5.1, 0.0, 0.3}, {3.9, 4.2, 0.0}, {-2.0, 1.0, 7.7}};
  const uint8_t pair[2][2] = {{1, 1}, {1, 6}};
  enum { ATOMS = 9, BINS = 100, REACH = 5 };
  static double count[2][BINS];
  ts_cell cell;
  assert_int_equal(ts_cell_init(&cell, h, all), 0);
  random_atoms(&cell, 0, 4, 6);
  random_atoms(&cell, 4, 5, 1);
  for (int i = 0; i < ATOMS; i++) {
    for (int j = 0; j < ATOMS; j++) {
      for (int s = 0; s < (2 * REACH + 1) * (2 * REACH + 1) * (2 * REACH + 1); s++) {
        const int32_t image[3] = {s % (2 * REACH + 1) - REACH,
                                  s / (2 * REACH + 1) % (2 * REACH + 1) - REACH,
                                  s / (2 * REACH + 1) / (2 * REACH + 1) - REACH};
        double shift[3], sum = 0.0;
        ts_cell_shift(&cell, image, shift);
        for (int k = 0; k < 3; k++)
          sum += pow(x[i][k] - x[j][k] - shift[k], 2);
        const double distance = sqrt(sum);
        if (z[i] != 1 || distance == 0.0 || distance >= 10.0) continue;
        count[z[j] == 6][(int)(distance / 0.1)] += 1.0;
      }
    }
  }
  ts_rdf *rdf = create(&cell, ATOMS, 2, pair, 10.0, 0.1);
  add(rdf, &cell, ATOMS);
  assert_int_equal(read_back(rdf, 2, "r_A,g_H-H,n_H-H,g_H-C,n_H-C\n"), BINS);
  for (int p = 0; p < 2; p++) {
    double sum = 0.0;
    for (int k = 0; k < BINS; k++) {
      const double shell = 4.0 / 3.0 * 3.14159265358979 * (pow(0.1 * (k + 1), 3) - pow(0.1 * k, 3));
      const double expected = 5.0 * (p ? 4.0 : 5.0) / ts_cell_volume(&cell) * shell;
      sum += count[p][k];
      assert_true(fabs(g[p][k] - count[p][k] / expected) < 1e-9 * (1.0 + g[p][k]));
      assert_true(fabs(n[p][k] - sum / 5.0) < 1e-9);
    }
  }
  ts_rdf_destroy(&rdf);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ideal_gas),
      cmocka_unit_test(test_crystals),
      cmocka_unit_test(test_direct_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
