/* SPDX-License-Identifier: MIT
 *
 * Space-filling curves: one integer per atom whose order keeps neighbours in space near each other
 * in memory.  Each axis gives 21 bits of its fractional coordinate (of the atoms' own extent where
 * the direction is not periodic), hence 63-bit keys; or the longest gives 21 and the others what
 * their lengths are to it, so that intervals are compact in a long or flat cell too.  Hilbert
 * (Skilling's transform, AIP Conf. Proc. 707, 381) is the default: consecutive cells share a face,
 * so an interval of the order is compact.  Morton interleaves the bits, cheaper and looser; it is
 * kept for comparison. */
#ifndef TS_CURVE_H
#define TS_CURVE_H

#include "neighbor/cell.h"

enum { TS_CURVE_BITS = 21 };

typedef enum ts_curve { TS_CURVE_HILBERT, TS_CURVE_MORTON } ts_curve;

/** What fills the curve's cube: every axis, or only the longest (lengths between faces). */
typedef enum ts_normalization { TS_NORMALIZE_AXES, TS_NORMALIZE_LONGEST } ts_normalization;

/** Key of grid cell (c[0], c[1], c[2]), each below 2^bits, bits <= 21: below 2^(3 bits). */
uint64_t ts_curve_hilbert(const uint32_t c[3], int bits);
uint64_t ts_curve_morton(const uint32_t c[3], int bits);

/** Widen low and high [3] to the atoms' smallest and largest fractions.  Not collective. */
void ts_curve_extent(const ts_cell *cell, ts_lidx n, const double (*x)[3], double low[3],
                     double high[3]);

/** Keys of wrapped atoms whose extent is given: where a direction is not periodic, the grid spans
 * low to high, fractions (of all ranks' atoms, where there are several).  Not collective.
 * \param [out] key  [n] uint64. */
void ts_curve_keys_within(ts_curve curve, ts_normalization normalization, const ts_cell *cell,
                          const double low[3], const double high[3], ts_lidx n,
                          const double (*x)[3], uint64_t *key);

/** The same within the atoms' own extent.  Not collective.
 * \param [in]  x    [n,3] double [Å], wrapped (outside fractions are clamped).
 * \param [out] key  [n] uint64. */
void ts_curve_keys(ts_curve curve, ts_normalization normalization, const ts_cell *cell, ts_lidx n,
                   const double (*x)[3], uint64_t *key);

/** The order of atoms along the curve: order[k] is the index of the k-th atom, sorted by (key,
 * gid), so a pure function of positions and ids.  Not collective. \param [out] order  [n] ts_lidx.
 * \return 0 or TS_ERR_MEMORY. */
int ts_curve_order(ts_curve curve, ts_normalization normalization, const ts_cell *cell, ts_lidx n,
                   const double (*x)[3], const ts_gidx *gid, ts_lidx *order);

#endif
