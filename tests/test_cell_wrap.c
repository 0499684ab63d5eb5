/* SPDX-License-Identifier: MIT
 *
 * Cells that are refused or completed, and wrapping: faces, corners, many periods, both signs of
 * zero, and the position that lies between the last number below a face and the face. */
#include "tests/neighbor_cases.h"

static const double cubic[3][3] = {{10, 0, 0}, {0, 10, 0}, {0, 0, 10}};
static const double hexagonal[3][3] = {{6, 0, 0}, {-3, 5.196152422706632, 0}, {0, 0, 8}};
static const double triclinic[3][3] = {{7, 0.3, -1}, {-2.5, 9, 0.7}, {3, -4, 11}};

/* Wrap one atom; the unwrapped position must stay, the fraction must be inside. */
static void check_wrap(const double h[3][3], const double f[3], double slack)
{
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, h, NULL));
  double x[1][3], before[3], g[3];
  int32_t image[1][3] = {{5, -6, 7}};
  for (int m = 0; m < 3; m++) {
    x[0][m] = f[0] * h[0][m] + f[1] * h[1][m] + f[2] * h[2][m];
    before[m] = x[0][m] + 5 * h[0][m] - 6 * h[1][m] + 7 * h[2][m];
  }
  ASSERT_OK(ts_cell_wrap(&cell, 1, x, image));
  ts_cell_fraction(&cell, x[0], g);
  for (int k = 0; k < 3; k++)
    if (!(g[k] >= -1e-15 && g[k] < 1)) fail_msg("fraction %g became %.17g", f[k], g[k]);
  for (int m = 0; m < 3; m++) {
    const double after =
        x[0][m] + image[0][0] * h[0][m] + image[0][1] * h[1][m] + image[0][2] * h[2][m];
    if (fabs(after - before[m]) > slack) fail_msg("moved by %g Å", after - before[m]);
  }
  double again[1][3];
  int32_t image_again[1][3];
  memcpy(again, x, sizeof x);
  memcpy(image_again, image, sizeof image);
  ASSERT_OK(ts_cell_wrap(&cell, 1, again, image_again));
  assert_memory_equal(again, x, sizeof x);
  assert_memory_equal(image_again, image, sizeof image);
}

static void faces_and_corners(void **state)
{
  (void)state;
  static const double special[] = {0,      1, -0.0, 1 - 1e-16, 0.5,   1e-17,
                                   -1e-17, 2, -1,   -1e-16,    1e-16, 1 + 3e-16};
  for (int a = 0; a < 12; a++)
    for (int b = 0; b < 12; b++)
      for (int c = 0; c < 12; c++) {
        const double f[3] = {special[a], special[b], special[c]};
        check_wrap(cubic, f, 1e-13);
        check_wrap(hexagonal, f, 1e-13);
        check_wrap(triclinic, f, 1e-13);
      }
}

static void one_becomes_zero(void **state)
{
  (void)state;
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, cubic, NULL));
  double x[3][3] = {{10, 0, -0.0}, {-1e-17, 9.999999999999998, 20}, {-10, 10, 5}};
  int32_t image[3][3] = {{0}};
  ASSERT_OK(ts_cell_wrap(&cell, 3, x, image));
  const double want[3][3] = {{0, 0, 0}, {0, 9.999999999999998, 0}, {0, 0, 5}};
  const int32_t periods[3][3] = {{1, 0, 0}, {0, 0, 2}, {-1, 1, 0}};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) {
      assert_true(x[i][k] == want[i][k]);
      assert_int_equal(image[i][k], periods[i][k]);
    }
}

static void many_periods(void **state)
{
  (void)state;
  uint64_t seed = 3;
  for (int n = 0; n < 1000; n++) {
    const double far = n % 2 ? 1e7 : 100;
    const double f[3] = {uniform(&seed, -far, far), uniform(&seed, -far, far),
                         uniform(&seed, -far, far)};
    check_wrap(triclinic, f, 1e-6);
  }
  const double box[3][3] = {{6.2, 0, 0}, {0, 6.2, 0}, {0, 0, 6.2}};
  const double atom[3] = {13.132 / 6.2, -8.229 / 6.2, -2.700 / 6.2};
  check_wrap(box, atom, 1e-13);
}

static void nine_at_a_corner(void **state)
{
  (void)state;
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, hexagonal, NULL));
  double x[9][3];
  int32_t image[9][3] = {{0}};
  for (int i = 0; i < 9; i++) {
    x[i][0] = hexagonal[1][0] + 0.1 * (i % 3 - 1);
    x[i][1] = hexagonal[1][1] + 0.1 * (i / 3 - 1);
    x[i][2] = 0;
  }
  ASSERT_OK(ts_cell_wrap(&cell, 9, x, image));
  for (int i = 0; i < 9; i++) {
    double f[3];
    ts_cell_fraction(&cell, x[i], f);
    for (int k = 0; k < 3; k++)
      assert_true(f[k] >= 0 && f[k] < 1);
  }
}

static void open_directions_stay(void **state)
{
  (void)state;
  const bool slab[3] = {true, true, false};
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, cubic, slab));
  double x[1][3] = {{-3, 14, 1e6}};
  int32_t image[1][3] = {{0}};
  ASSERT_OK(ts_cell_wrap(&cell, 1, x, image));
  assert_true(x[0][0] == 7 && x[0][1] == 4 && x[0][2] == 1e6);
  assert_true(image[0][0] == -1 && image[0][1] == 1 && image[0][2] == 0);
  ASSERT_OK(ts_cell_init(&cell, NULL, NULL));
  ASSERT_OK(ts_cell_wrap(&cell, 1, x, image));
  assert_true(x[0][2] == 1e6);
}

static void wrap_refuses(void **state)
{
  (void)state;
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, cubic, NULL));
  double x[2][3] = {{1, 2, 3}, {1, 4e10, 3}};
  int32_t image[2][3] = {{0}};
  assert_int_equal(ts_cell_wrap(&cell, 2, x, image), TS_ERR_SIMULATION);
  assert_non_null(strstr(ts_error_message(), "atom 2"));
  x[1][1] = NAN;
  assert_int_equal(ts_cell_wrap(&cell, 2, x, image), TS_ERR_SIMULATION);
  x[1][1] = 15;
  image[1][1] = INT32_MAX;
  assert_int_equal(ts_cell_wrap(&cell, 2, x, image), TS_ERR_SIMULATION);
}

static void init_refuses(void **state)
{
  (void)state;
  ts_cell cell;
  const double flat[3][3] = {{1, 0, 0}, {0, 1, 0}, {1, 1, 0}};
  const double zero[3][3] = {{1, 0, 0}, {0, 0, 0}, {0, 0, 1}};
  const double nan[3][3] = {{1, 0, 0}, {0, NAN, 0}, {0, 0, 1}};
  const double inf[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, INFINITY}};
  assert_int_equal(ts_cell_init(&cell, flat, NULL), TS_ERR_INPUT);
  assert_int_equal(ts_cell_init(&cell, zero, NULL), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "b is zero"));
  assert_int_equal(ts_cell_init(&cell, nan, NULL), TS_ERR_INPUT);
  assert_int_equal(ts_cell_init(&cell, inf, NULL), TS_ERR_INPUT);
}

static void init_derives(void **state)
{
  (void)state;
  ts_cell cell;
  const double left[3][3] = {{0, 4, 0}, {3, 0, 0}, {0, 0, 5}};
  ASSERT_OK(ts_cell_init(&cell, left, NULL));
  assert_true(ts_cell_volume(&cell) == 60);
  assert_true(cell.height[0] == 4 && cell.height[1] == 3 && cell.height[2] == 5);
  const double plane[3][3] = {{3, 0, 4}, {0, 0, 0}, {0, 7, 0}};
  const bool open_b[3] = {true, false, true};
  ASSERT_OK(ts_cell_init(&cell, plane, open_b));
  assert_true(fabs(cell.height[0] - 5) < 1e-14 && fabs(cell.height[1] - 1) < 1e-14);
  ASSERT_OK(ts_cell_init(&cell, triclinic, NULL));
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      double sum = 0;
      for (int m = 0; m < 3; m++)
        sum += cell.h[a][m] * cell.inv[m][b];
      assert_true(fabs(sum - (a == b)) < 1e-15);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faces_and_corners),    cmocka_unit_test(one_becomes_zero),
      cmocka_unit_test(many_periods),         cmocka_unit_test(nine_at_a_corner),
      cmocka_unit_test(open_directions_stay), cmocka_unit_test(wrap_refuses),
      cmocka_unit_test(init_refuses),         cmocka_unit_test(init_derives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
