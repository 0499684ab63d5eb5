/* SPDX-License-Identifier: MIT
 *
 * The derived Clebsch-Gordan blocks: equal to the recorded ones, and equivariant; and the
 * harmonics.
 */
#include "models/clebsch.h"
#include "tests/model_cases.h"

#include <math.h>

/* The blocks of a file; returns how many. */
static int compare_recorded(const char *name, int lmax)
{
  ts_json *doc = golden_file(name);
  const ts_json_node *model = ts_json_member(ts_json_root(doc), "model");
  const ts_json_node *list = ts_json_member(model, "cg_first_order");
  int blocks = 0;
  for (int l3 = 0; l3 <= lmax; ++l3) {
    int l1[TS_CLEBSCH_PATHS];
    const ts_json_node *paths = ts_json_at(ts_json_at(list, l3), 1);
    assert_int_equal(ts_clebsch_paths(l3, lmax, l1), ts_json_size(paths));
    for (int p = 0; p < ts_json_size(paths); ++p, ++blocks) {
      const ts_json_node *path = ts_json_at(paths, p), *block = ts_json_at(path, 1);
      double G[TS_CLEBSCH_MAX];
      assert_true(ts_json_number(ts_json_at(path, 0)) == l1[p]);
      ts_clebsch_gordan(l1[p], l3, G);
      const int nc = 2 * l3 + 1;
      for (int i = 0; i < (2 * l1[p] + 1) * 3 * nc; ++i) {
        const ts_json_node *row = ts_json_at(ts_json_at(block, i / nc / 3), i / nc % 3);
        assert_true(fabs(G[i] - ts_json_number(ts_json_at(row, i % nc))) < 1e-15);
      }
    }
  }
  ts_json_destroy(&doc);
  return blocks;
}

static void test_recorded(void **state)
{
  (void)state;
  assert_int_equal(compare_recorded("pair", 2), 6);
  assert_int_equal(compare_recorded("made/degree-1", 1), 3);
  assert_int_equal(compare_recorded("made/degree-3", 3), 9);
}

static double uniform(void)
{
  return 2.0 * rand() / (double)RAND_MAX - 1.0;
}

static void random_vector(double u[3])
{
  double square;
  do {
    square = 0.0;
    for (int i = 0; i < 3; ++i) {
      u[i] = uniform();
      square += u[i] * u[i];
    }
  } while (square > 1.0 || square < 0.01);
  for (int i = 0; i < 3; ++i)
    u[i] /= sqrt(square);
}

/* Rows of degree l of a unit vector. */
static void rows(int l, const double u[3], double *out)
{
  const double x = u[0], y = u[1], z = u[2], s = sqrt(3.0);
  const double two[5] = {s * x * z, s * x * y, y * y - (x * x + z * z) / 2.0, s * y * z,
                         s / 2.0 * (z * z - x * x)};
  const double six = sqrt(3.0 / 8.0), ten = sqrt(5.0 / 8.0), f = sqrt(15.0);
  const double three[7] = {
      ten * x * (3.0 * z * z - x * x),         f * x * y * z,
      six * x * (4.0 * y * y - x * x - z * z), y * (2.0 * y * y - 3.0 * (x * x + z * z)) / 2.0,
      six * z * (4.0 * y * y - x * x - z * z), f / 2.0 * y * (z * z - x * x),
      ten * z * (z * z - 3.0 * x * x)};
  const double one = 1.0;
  memcpy(out, l == 0 ? &one : l == 1 ? u : l == 2 ? two : three, (size_t)(2 * l + 1) * sizeof *out);
}

/* A random rotation: the product of reflections in two random planes. */
static void rotate(const double p[3], const double q[3], const double in[3], double out[3])
{
  const double *const normal[2] = {p, q};
  memcpy(out, in, 3 * sizeof *out);
  for (int k = 0; k < 2; ++k) {
    double along = 0.0;
    for (int i = 0; i < 3; ++i)
      along += 2.0 * normal[k][i] * out[i];
    for (int i = 0; i < 3; ++i)
      out[i] -= along * normal[k][i];
  }
}

/* The product of the rows of a with u, seen along the rows of c: a number that turns with nothing.
 */
static double triple(int l1, int l3, const double a[3], const double u[3], const double c[3])
{
  double G[TS_CLEBSCH_MAX], left[7], right[7], sum = 0.0;
  ts_clebsch_gordan(l1, l3, G);
  rows(l1, a, left);
  rows(l3, c, right);
  for (int i = 0; i < 2 * l1 + 1; ++i)
    for (int b = 0; b < 3; ++b)
      for (int k = 0; k < 2 * l3 + 1; ++k)
        sum += G[(i * 3 + b) * (2 * l3 + 1) + k] * left[i] * u[b] * right[k];
  return sum;
}

static void test_equivariance(void **state)
{
  (void)state;
  double largest = 0.0;
  for (int l3 = 0; l3 <= 3; ++l3) {
    int l1[TS_CLEBSCH_PATHS];
    const int npaths = ts_clebsch_paths(l3, 3, l1);
    for (int p = 0; p < npaths; ++p)
      for (int trial = 0; trial < 100; ++trial) {
        double v[3][3], w[3][3], axis[2][3];
        for (int i = 0; i < 2; ++i)
          random_vector(axis[i]);
        for (int i = 0; i < 3; ++i) {
          random_vector(v[i]);
          rotate(axis[0], axis[1], v[i], w[i]);
        }
        const double before = triple(l1[p], l3, v[0], v[1], v[2]);
        const double after = triple(l1[p], l3, w[0], w[1], w[2]);
        assert_true(fabs(before - after) < 1e-14);
        largest = fmax(largest, fabs(before));
      }
  }
  assert_true(largest > 0.5);
}

static void test_normalisation(void **state)
{
  (void)state;
  for (int l3 = 0; l3 <= 3; ++l3) {
    int l1[TS_CLEBSCH_PATHS];
    const int npaths = ts_clebsch_paths(l3, 3, l1), nc = 2 * l3 + 1;
    for (int p = 0; p < npaths; ++p) {
      double G[TS_CLEBSCH_MAX];
      ts_clebsch_gordan(l1[p], l3, G);
      for (int c = 0; c < nc; ++c) {
        double sum = 0.0;
        for (int i = 0; i < (2 * l1[p] + 1) * 3; ++i)
          sum += G[i * nc + c] * G[i * nc + c];
        assert_true(fabs(sum - 1.0) < 1e-14);
      }
    }
  }
}

static void test_harmonics(void **state)
{
  (void)state;
  for (int trial = 0; trial < 100; ++trial) {
    double u[3], Y[16], row[7];
    random_vector(u);
    ts_harmonics(3, u, Y);
    for (int l = 0; l <= 3; ++l) {
      double square = 0.0;
      rows(l, u, row);
      for (int m = 0; m < 2 * l + 1; ++m) {
        const double y = Y[l * l + m];
        assert_true(fabs(y - sqrt(2.0 * l + 1.0) * row[m]) < 1e-14);
        square += y * y;
      }
      assert_true(fabs(square - (2.0 * l + 1.0)) < 1e-13);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recorded),
      cmocka_unit_test(test_equivariance),
      cmocka_unit_test(test_normalisation),
      cmocka_unit_test(test_harmonics),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
