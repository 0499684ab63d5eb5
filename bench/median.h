/* SPDX-License-Identifier: MIT
 *
 * The median of a few timings: what every bench quotes. */
#ifndef TS_BENCH_MEDIAN_H
#define TS_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int bench_by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/** Sorts x. */
static inline double bench_median(double *x, int n)
{
  qsort(x, (size_t)n, sizeof *x, bench_by_value);
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

#endif
