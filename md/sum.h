/* SPDX-License-Identifier: MIT
 *
 * Sums that do not depend on the order of their terms.  Energies and momenta are summed over tiles
 * by whichever worker is free, over tiles of any size, and one day over any number of ranks; with
 * doubles each of these would change the last bits of the log.  Here a term is rounded once to a
 * multiple of 2^-40 (9e-13 of its unit) and summed as an integer, which is exact and therefore
 * associative: every order gives the same bits, and MPI_SUM on int64_t does too.
 *
 * A term must be smaller than 2^22 (4 million eV, eV fs/Å, ...) and a sum may have 2^31 terms.  A
 * term that is larger or not finite makes the value NaN, which is how a blown-up run shows.  Cost:
 * a few ns a term. */
#ifndef TS_SUM_H
#define TS_SUM_H

#include "runtime/types.h"

#include <math.h>

#define TS_SUM_LIMIT 4194304.0       /* 2^22 */
#define TS_SUM_SCALE 1099511627776.0 /* 2^40 */

/** A sum; all zero is the empty sum.  Three int64_t that add componentwise. */
typedef struct ts_sum {
  int64_t high;    /**< of 2^32 units */
  int64_t low;     /**< of one unit, 2^-40; each term adds 0 .. 2^32-1 */
  int64_t outside; /**< terms that were too large or not finite */
} ts_sum;

/** Add one term. */
static inline void ts_sum_add(ts_sum *sum, double term)
{
  if (!(fabs(term) < TS_SUM_LIMIT)) {
    sum->outside++;
    return;
  }
  const double scaled = term * TS_SUM_SCALE;
  const int64_t units = (int64_t)(scaled + copysign(0.5, scaled)); /* truncates: to nearest */
  sum->high += units >> 32;
  sum->low += units & INT64_C(0xffffffff);
}

/** Add another sum. */
static inline void ts_sum_merge(ts_sum *sum, const ts_sum *other)
{
  sum->high += other->high;
  sum->low += other->low;
  sum->outside += other->outside;
}

/** The sum, rounded once to double; NaN if a term was outside. */
static inline double ts_sum_value(const ts_sum *sum)
{
  if (sum->outside) return NAN;
  const int64_t high = sum->high + (sum->low >> 32), low = sum->low & INT64_C(0xffffffff);
  return (double)((__int128)high * INT64_C(0x100000000) + low) / TS_SUM_SCALE;
}

#endif
