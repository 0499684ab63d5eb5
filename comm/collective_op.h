/* SPDX-License-Identifier: MIT
 *
 * What the collectives combine: double, float or 64-bit integers, by sum, maximum or minimum.  Data
 * travel as 64-bit words (two floats a word, an odd last one padded by zero bits), so that the
 * protocols below know no types; only these loops do. */
#ifndef TS_COLLECTIVE_OP_H
#define TS_COLLECTIVE_OP_H

#include <stddef.h>
#include <stdint.h>

typedef enum ts_ctype { TS_CTYPE_DOUBLE, TS_CTYPE_FLOAT, TS_CTYPE_INT64, TS_CTYPES } ts_ctype;

/** A NaN wins in maximum and minimum; sums of integers wrap. */
typedef enum ts_cop { TS_COP_SUM, TS_COP_MAX, TS_COP_MIN, TS_COPS } ts_cop;

/** A word of a message, whatever it holds. */
typedef uint64_t __attribute__((may_alias)) ts_word;

/** out[i] = a[i] op b[i] for the values in `words` words; out may be a or b. */
typedef void tsi_combine(ts_word *out, const ts_word *a, const ts_word *b, size_t words);

/** The loop for a type and an operation, both in range. */
tsi_combine *tsi_combine_find(ts_ctype type, ts_cop op);

/** Bytes of one value: 8 or 4. */
static inline size_t tsi_ctype_size(ts_ctype type)
{
  return type == TS_CTYPE_FLOAT ? sizeof(float) : sizeof(double);
}

#endif
