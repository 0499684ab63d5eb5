/* SPDX-License-Identifier: MIT
 *
 * Keys along the curves.  Skilling's transform turns grid coordinates into the Hilbert index in
 * "transposed" form, bits spread over the three axes; interleaving them, x first, gives the index.
 */
#include "neighbor/curve.h"

#include <math.h>
#include <stdlib.h>

#include "neighbor/sort.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* Move bit k of a 21-bit number to bit 3k. */
static uint64_t spread(uint32_t a)
{
  uint64_t x = a & 0x1fffff;
  x = (x | x << 32) & 0x001f00000000ffffULL;
  x = (x | x << 16) & 0x001f0000ff0000ffULL;
  x = (x | x << 8) & 0x100f00f00f00f00fULL;
  x = (x | x << 4) & 0x10c30c30c30c30c3ULL;
  return (x | x << 2) & 0x1249249249249249ULL;
}

uint64_t ts_curve_morton(const uint32_t c[3], int bits)
{
  (void)bits; /* leading zeros stay zeros */
  return spread(c[0]) << 2 | spread(c[1]) << 1 | spread(c[2]);
}

uint64_t ts_curve_hilbert(const uint32_t c[3], int bits)
{
  uint32_t x[3] = {c[0], c[1], c[2]};
  for (int b = bits - 1; b > 0; b--) { /* undo excess work, top bit down; coin flips: no branches */
    const uint32_t low = (1u << b) - 1;
    for (int k = 0; k < 3; k++) {
      const uint32_t set = 0u - (x[k] >> b & 1);
      const uint32_t swap = (x[0] ^ x[k]) & low & ~set;
      x[0] ^= swap ^ (low & set);
      x[k] ^= swap;
    }
  }
  x[1] ^= x[0]; /* Gray encode */
  x[2] ^= x[1];
  uint32_t t = x[2] >> 1; /* of all higher bits the exclusive or */
  for (int shift = 1; shift < bits; shift *= 2)
    t ^= t >> shift;
  for (int k = 0; k < 3; k++)
    x[k] ^= t;
  return ts_curve_morton(x, bits);
}

void ts_curve_extent(const ts_cell *cell, ts_lidx n, const double (*x)[3], double low[3],
                     double high[3])
{
  for (ts_lidx i = 0; i < n; i++) {
    double f[3];
    ts_cell_fraction(cell, x[i], f);
    for (int k = 0; k < 3; k++) {
      low[k] = fmin(low[k], f[k]);
      high[k] = fmax(high[k], f[k]);
    }
  }
}

static uint32_t grid_index(double f, double origin, double scale)
{
  const double g = floor((f - origin) * scale), last = ldexp(1, TS_CURVE_BITS) - 1;
  return g > 0 ? (uint32_t)(g < last ? g : last) : 0;
}

void ts_curve_keys_within(ts_curve curve, ts_normalization normalization, const ts_cell *cell,
                          const double low[3], const double high[3], ts_lidx n,
                          const double (*x)[3], uint64_t *key)
{
  double origin[3], scale[3], length[3], longest = 0;
  for (int k = 0; k < 3; k++) { /* fractions to grid */
    const double extent = cell->periodic[k] || !(high[k] > low[k]) ? 1 : high[k] - low[k];
    origin[k] = cell->periodic[k] ? 0 : low[k];
    scale[k] = ldexp(1, TS_CURVE_BITS) / extent;
    length[k] = extent * cell->height[k];
    longest = fmax(longest, length[k]);
  }
  for (int k = 0; k < 3 && normalization == TS_NORMALIZE_LONGEST; k++)
    scale[k] *= length[k] / longest;
  for (ts_lidx i = 0; i < n; i++) {
    double f[3];
    uint32_t c[3];
    ts_cell_fraction(cell, x[i], f);
    for (int k = 0; k < 3; k++)
      c[k] = grid_index(f[k], origin[k], scale[k]);
    key[i] = curve == TS_CURVE_MORTON ? ts_curve_morton(c, TS_CURVE_BITS)
                                      : ts_curve_hilbert(c, TS_CURVE_BITS);
  }
}

void ts_curve_keys(ts_curve curve, ts_normalization normalization, const ts_cell *cell, ts_lidx n,
                   const double (*x)[3], uint64_t *key)
{
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  ts_curve_extent(cell, n, x, low, high);
  ts_curve_keys_within(curve, normalization, cell, low, high, n, x, key);
}

int ts_curve_order(ts_curve curve, ts_normalization normalization, const ts_cell *cell, ts_lidx n,
                   const double (*x)[3], const ts_gidx *gid, ts_lidx *order)
{
  uint64_t *key = NULL;
  int status = TSI_NEW(key, n);
  if (status) return status;
  for (ts_lidx i = 0; i < n; i++) {
    order[i] = i;
    key[i] = (uint64_t)gid[i];
  }
  TS_TRY_GOTO(status, tsi_sort_order(n, key, order), done); /* ids decide ties */
  ts_curve_keys(curve, normalization, cell, n, x, key);
  TS_TRY_GOTO(status, tsi_sort_order(n, key, order), done);
done:
  free(key);
  return status;
}
