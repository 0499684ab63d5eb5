/* SPDX-License-Identifier: MIT
 *
 * The accumulators of a radial distribution: saved and loaded they continue to the same bytes of
 * rdf.csv; what cannot be counted is refused when it starts; and an atom is not its own pair. */
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

enum { ATOMS = 60 };

static const double h[3][3] = {{9.0, 0.0, 0.0}, {1.0, 8.0, 0.0}, {0.0, 2.0, 10.0}};
static const uint8_t water[2][2] = {{8, 8}, {8, 1}};
static uint8_t z[ATOMS];
static ts_cell cell;

static int set_up(void **state)
{
  (void)state;
  const bool all[3] = {true, true, true};
  for (int i = 0; i < ATOMS; i++)
    z[i] = i % 3 ? 1 : 8;
  return ts_cell_init(&cell, h, all);
}

static ts_rdf *create(const uint8_t (*pair)[2], double bin)
{
  const ts_rdf_params params = {.npairs = 2, .pair = pair, .r_max = 6.0, .bin = bin};
  ts_rdf *rdf;
  if (ts_rdf_create(&params, &cell, ATOMS, z, &rdf)) fail_msg("%s", ts_error_message());
  return rdf;
}

static void add_frame(ts_rdf *rdf, int frame)
{
  double x[ATOMS][3];
  for (int i = 0; i < 3 * ATOMS; i++)
    x[i / 3][i % 3] = 10.0 * sin(1.0 + 7.0 * i + 100.0 * frame);
  assert_int_equal(ts_rdf_add(rdf, &cell, ATOMS, (const double(*)[3])x, z), 0);
}

static char *written(const ts_rdf *rdf)
{
  char path[] = "/tmp/tessera-test-XXXXXX", *text = calloc(1, 100000);
  assert_true(close(mkstemp(path)) == 0);
  assert_int_equal(ts_rdf_write(rdf, path), 0);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(text);
  assert_true(fread(text, 1, 99999, file) > 20);
  fclose(file);
  unlink(path);
  return text;
}

static void test_continues(void **state)
{
  (void)state;
  ts_rdf *straight = create(water, 0.1), *resumed = create(water, 0.1);
  const int64_t size = ts_rdf_state_size(straight);
  double *stored = calloc((size_t)size, sizeof *stored);
  assert_non_null(stored);
  for (int frame = 0; frame < 6; frame++) {
    add_frame(straight, frame);
    if (frame == 2) ts_rdf_save(straight, stored);
  }
  assert_int_equal(ts_rdf_load(resumed, size, stored), 0);
  assert_int_equal(ts_rdf_frames(resumed), 3);
  for (int frame = 3; frame < 6; frame++)
    add_frame(resumed, frame);
  assert_int_equal(ts_rdf_frames(resumed), 6);
  char *one = written(straight), *two = written(resumed);
  assert_string_equal(one, two);
  free(one);
  free(two);

  const uint8_t other[2][2] = {{8, 8}, {1, 1}};
  ts_rdf *wrong[2] = {create(other, 0.1), create(water, 0.2)};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ts_rdf_load(wrong[i], size, stored), TS_ERR_INPUT);
    ts_rdf_destroy(&wrong[i]);
  }
  free(stored);
  ts_rdf_destroy(&straight);
  ts_rdf_destroy(&resumed);
}

/* Two atoms at 1.25 Å: two ordered pairs in one bin, N (N - 1) = 2 of them expected in V. */
static void test_not_itself(void **state)
{
  (void)state;
  const double x[2][3] = {{0.0, 0.0, 0.0}, {1.25, 0.0, 0.0}};
  const uint8_t argon[2] = {18, 18}, pair[1][2] = {{18, 18}};
  const ts_rdf_params params = {.npairs = 1, .pair = pair, .r_max = 2.0, .bin = 0.5};
  ts_rdf *rdf;
  assert_int_equal(ts_rdf_create(&params, &cell, 2, argon, &rdf), 0);
  assert_int_equal(ts_rdf_add(rdf, &cell, 2, x, argon), 0);
  char *text = written(rdf);
  double r, g, n;
  assert_int_equal(sscanf(strstr(text, "\n1.25,") + 1, "%lf,%lf,%lf", &r, &g, &n), 3);
  const double shell = 4.0 / 3.0 * 3.14159265358979 * (1.5 * 1.5 * 1.5 - 1.0);
  assert_true(fabs(g - 720.0 / shell) < 1e-10 * g);
  assert_true(n == 1.0);
  assert_non_null(strstr(text, "\n0.25,0,0\n0.75,0,0\n"));
  assert_non_null(strstr(text, "\n1.75,0,1\n"));
  free(text);
  ts_rdf_destroy(&rdf);
}

static void refuse(const ts_rdf_params *params, const ts_cell *where, const char *expected)
{
  ts_rdf *rdf;
  assert_int_equal(ts_rdf_create(params, where, ATOMS, z, &rdf), TS_ERR_INPUT);
  assert_null(rdf);
  if (!strstr(ts_error_message(), expected))
    fail_msg("message '%s' lacks '%s'", ts_error_message(), expected);
}

static void test_refused(void **state)
{
  (void)state;
  const bool slab[3] = {true, true, false};
  const uint8_t salt[1][2] = {{1, 17}};
  ts_cell open;
  ts_rdf_params params = {.npairs = 1, .pair = water, .r_max = 6.0, .bin = 0.1};
  assert_int_equal(ts_cell_init(&open, h, slab), 0);
  refuse(&params, &open, "periodic in three directions");
  assert_int_equal(ts_cell_init(&open, NULL, NULL), 0);
  refuse(&params, &open, "periodic in three directions");
  params.pair = salt;
  refuse(&params, &cell, "H-Cl: the structure has no Cl");
  params.pair = water;
  params.bin = 0.0;
  refuse(&params, &cell, "bins of 0 Å");
  params.bin = 1e-9;
  refuse(&params, &cell, "at most 1000000 bins");
  params.bin = 0.1;
  params.r_max = NAN;
  refuse(&params, &cell, "r_max nan");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_continues),
      cmocka_unit_test(test_not_itself),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
