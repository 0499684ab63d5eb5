/* SPDX-License-Identifier: MIT
 *
 * Sums that do not depend on the order of their terms: any order and any grouping give the same
 * bits, near to the exact sum; terms beyond the range are noticed. */
#include "md/sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { COUNT = 20000 };

static double term[COUNT];
static const double unit = 1.0 / TS_SUM_SCALE;

static int set_up(void **state)
{
  (void)state;
  uint64_t random = 7;
  for (int i = 0; i < COUNT; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    term[i] = ldexp((double)(int64_t)random, (int)(random % 40) - 81); /* 4e6 down to 4e-6 */
  }
  return 0;
}

/* Sum of first, first + stride, ... below COUNT. */
static ts_sum strided(int first, int stride)
{
  ts_sum sum = {0};
  for (int i = first; i < COUNT; i += stride)
    ts_sum_add(&sum, term[i]);
  return sum;
}

static void test_any_order(void **state)
{
  (void)state;
  long double exact = 0.0L;
  for (int i = 0; i < COUNT; i++)
    exact += term[i];
  const ts_sum straight = strided(0, 1);
  assert_true(fabsl(ts_sum_value(&straight) - exact) <= 0.5 * unit * COUNT + 1e-15L * fabsl(exact));
  for (int stride = 2; stride < 100; stride += 7) {
    ts_sum total = {0};
    for (int first = stride - 1; first >= 0; first--) {
      const ts_sum part = strided(first, stride);
      ts_sum_merge(&total, &part);
    }
    assert_true(ts_sum_value(&total) == ts_sum_value(&straight));
  }
}

static double sum_of(double a, double b)
{
  ts_sum sum = {0};
  ts_sum_add(&sum, a);
  ts_sum_add(&sum, b);
  return ts_sum_value(&sum);
}

static void test_range(void **state)
{
  (void)state;
  const double largest = nextafter(TS_SUM_LIMIT, 0.0);
  assert_true(sum_of(0.0, 0.0) == 0.0);
  assert_true(sum_of(-1.5, 1.5) == 0.0);
  assert_true(sum_of(-1.5, 0.25) == -1.25);
  assert_true(sum_of(0.49 * unit, -0.49 * unit) == 0.0);
  assert_true(sum_of(0.51 * unit, 0.0) == unit);
  assert_true(sum_of(-0.51 * unit, 0.0) == -unit);
  assert_true(sum_of(largest, largest) == 2.0 * largest);
  assert_true(sum_of(-largest, -unit) == -largest - unit);
  assert_true(isnan(sum_of(TS_SUM_LIMIT, 1.0)));
  assert_true(isnan(sum_of(-TS_SUM_LIMIT, 1.0)));
  assert_true(isnan(sum_of(INFINITY, -INFINITY)));
  assert_true(isnan(sum_of(1.0, NAN)));
}

/* Two thousand million terms of the largest size fit. */
static void test_many_terms(void **state)
{
  (void)state;
  for (int sign = -1; sign <= 1; sign += 2) {
    ts_sum sum = {0};
    ts_sum_add(&sum, sign * (TS_SUM_LIMIT - 0.5));
    for (int doubling = 0; doubling < 31; doubling++) {
      const ts_sum same = sum;
      ts_sum_merge(&sum, &same);
    }
    assert_true(ts_sum_value(&sum) == sign * (TS_SUM_LIMIT - 0.5) * 0x1p31);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_any_order),
      cmocka_unit_test(test_range),
      cmocka_unit_test(test_many_terms),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
