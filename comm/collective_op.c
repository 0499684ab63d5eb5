/* SPDX-License-Identifier: MIT
 *
 * Nine loops, one per type and operation, over words that hold values of that type. */
#include "comm/collective_op.h"

typedef double __attribute__((may_alias)) word_double;
typedef float __attribute__((may_alias)) word_float;
typedef int64_t __attribute__((may_alias)) word_int;
typedef uint64_t __attribute__((may_alias)) word_unsigned; /* integers wrap, as hardware does */

#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MIN(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

#define COMBINE(name, type, op)                                                    \
  static void name(ts_word *out, const ts_word *a, const ts_word *b, size_t words) \
  {                                                                                \
    const size_t n = words * (sizeof(ts_word) / sizeof(type));                     \
    type *to = (type *)out;                                                        \
    const type *x = (const type *)a, *y = (const type *)b;                         \
    for (size_t i = 0; i < n; i++)                                                 \
      to[i] = op(x[i], y[i]);                                                      \
  }

COMBINE(sum_double, word_double, SUM)
COMBINE(max_double, word_double, MAX)
COMBINE(min_double, word_double, MIN)
COMBINE(sum_float, word_float, SUM)
COMBINE(max_float, word_float, MAX)
COMBINE(min_float, word_float, MIN)
COMBINE(sum_int, word_unsigned, SUM)
COMBINE(max_int, word_int, MAX)
COMBINE(min_int, word_int, MIN)

tsi_combine *tsi_combine_find(ts_ctype type, ts_cop op)
{
  static tsi_combine *const loops[TS_CTYPES][TS_COPS] = {
      {sum_double, max_double, min_double},
      {sum_float, max_float, min_float},
      {sum_int, max_int, min_int},
  };
  return loops[type][op];
}
