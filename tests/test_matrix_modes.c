/* SPDX-License-Identifier: MIT
 *
 * Every mode of the matrix engine against sums in long double: shapes that fill no block, strides,
 * beta, both directions; what lies between the rows stays; and a row has the same bits whatever
 * rows are beside it (except cblas). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "models/kernels.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "tests/case.h"

enum { GAP = 3, MARK = 77 };

static double uniform(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1;
}

static double get(const void *x, bool is_double, size_t i)
{
  return is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void set(void *x, bool is_double, size_t i, double value)
{
  if (is_double)
    ((double *)x)[i] = value;
  else
    ((float *)x)[i] = (float)value;
}

static void multiply(const ts_matrix *m, bool back, int rows, const void *x, int ldx, double beta,
                     void *y, int ldy)
{
  (back ? ts_matrix_backward : ts_matrix_forward)(m, rows, x, ldx, beta, y, ldy);
}

static void try_one(const ts_matrix_ops *ops, bool is_double, double tolerance, bool back, int rows,
                    int in, int out, double beta, uint64_t *state)
{
  const int from = back ? out : in, to = back ? in : out, ldx = from + GAP, ldy = to + GAP;
  const size_t size = is_double ? sizeof(double) : sizeof(float), n = (size_t)(rows * ldy);
  double *w;
  void *x, *y, *alone;
  ts_matrix m;
  must(TSI_NEW(w, in * out));
  must(tsi_alloc((size_t)(rows * ldx), size, &x));
  must(tsi_alloc(n, size, &y));
  must(tsi_alloc(n, size, &alone));
  for (int i = 0; i < in * out; i++)
    w[i] = is_double ? uniform(state) : (float)uniform(state);
  for (size_t i = 0; i < (size_t)(rows * ldx); i++)
    set(x, is_double, i, uniform(state));
  for (size_t i = 0; i < n; i++)
    set(y, is_double, i, (int)(i % (size_t)ldy) < to ? (beta == 0 ? NAN : uniform(state)) : MARK);
  memcpy(alone, y, n * size);
  must(ts_matrix_create(ops, is_double, in, out, w, &m));
  multiply(&m, back, rows, x, ldx, beta, y, ldy);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < ldy; c++) {
      const size_t at = (size_t)r * (size_t)ldy + (size_t)c;
      long double sum = c < to && beta != 0 ? beta * get(alone, is_double, at) : 0;
      for (int k = 0; k < from && c < to; k++)
        sum += (long double)get(x, is_double, (size_t)r * (size_t)ldx + (size_t)k) *
               w[back ? c * out + k : k * out + c];
      const double off = fabs(get(y, is_double, at) - (double)(c < to ? sum : MARK));
      if (!(off <= (c < to ? tolerance * (1 + 0.1 * from) : 0)))
        fail_msg("%s, %s, %s, %d x %d x %d, beta %g: row %d, column %d is off by %.2g", ops->name,
                 is_double ? "double" : "float", back ? "backward" : "forward", rows, in, out, beta,
                 r, c, off);
    }
  if (strcmp(ops->name, "cblas")) {
    for (int r = 0; r < rows; r++)
      multiply(&m, back, 1, (char *)x + (size_t)(r * ldx) * size, ldx, beta,
               (char *)alone + (size_t)(r * ldy) * size, ldy);
    assert_memory_equal(y, alone, n * size);
  }
  ts_matrix_release(&m);
  free(w);
  free(x);
  free(y);
  free(alone);
}

/* Errors of one product of numbers below 1, with room. */
static const struct mode {
  const char *name;
  double single, dual;
} modes[] = {{"packed", 1e-6, 3e-15},
             {"cblas", 1e-6, 3e-15},
             {"amx3", 1e-6, 0},
             {"amx2", 1e-4, 0},
             {"amx", 1e-2, 0}};

static void against_long_double(void **state)
{
  (void)state;
  static const int shape[][3] = {{1, 1, 1},     {5, 3, 70},    {31, 33, 32},  {32, 64, 31},
                                 {33, 100, 47}, {77, 530, 65}, {3, 1100, 33}, {200, 96, 20}};
  static const double beta[] = {0, 1, -0.5};
  uint64_t random = 3;
  for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
    for (int is_double = 0; is_double < 2; is_double++) {
      const double tolerance = is_double ? modes[k].dual : modes[k].single;
      const ts_matrix_ops *ops;
      const int status = ts_matrix_ops_find(modes[k].name, is_double,
                                            ts_kernels_find(is_double, "auto")->packed, &ops);
      if (status) {
        print_message("not here: %s\n", ts_error_message());
        assert_true(!strncmp(modes[k].name, "amx", 3));
        continue;
      }
      assert_true(tolerance > 0);
      for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int b = 0; b < 6; b++)
          try_one(ops, is_double, tolerance, b > 2, shape[s][0], shape[s][1], shape[s][2],
                  beta[b % 3], &random);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_long_double)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
