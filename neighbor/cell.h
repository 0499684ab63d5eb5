/* SPDX-License-Identifier: MIT
 *
 * The simulation cell: three vectors of any triclinic shape, each direction periodic or not.  Rows
 * of `h` are the vectors a, b, c.  A direction that is not periodic has no images; it is bounded by
 * the atoms alone and its vector serves only to name fractional coordinates.  An isolated system
 * has three such directions and the unit matrix. */
#ifndef TS_CELL_H
#define TS_CELL_H

#include "runtime/types.h"

typedef struct ts_cell {
  double h[3][3];   /**< rows a, b, c [Å] */
  bool periodic[3]; /**< along a, b, c */
  double inv[3][3]; /**< h * inv = 1: fractional f_k = sum_m x_m inv[m][k] [1/Å] */
  double height[3]; /**< distance of the two faces that a, b, c cross [Å] */
} ts_cell;

/** Check a cell and derive its inverse and heights.  Not collective.
 * \param [out] cell      The cell.
 * \param [in]  h         [3,3] double [Å], rows a, b, c, either handedness; NULL: isolated.  A row
 * of zeros along a direction that is not periodic is completed by a unit vector. \param [in]
 * periodic  [3]; NULL: periodic where h is given. \return 0, or TS_ERR_INPUT for vectors that are
 * not finite or span no volume. */
int ts_cell_init(ts_cell *cell, const double h[3][3], const bool periodic[3]);

/** Volume of the parallelepiped [Å^3]; means something only when every direction is periodic. */
double ts_cell_volume(const ts_cell *cell);

/** Move atoms into the cell, [0, 1) in fractions along periodic directions, and count the
 * crossings. The unwrapped position x + image h does not change.  A fraction of exactly 1 becomes
 * 0; atoms may be any number of periods away.  Not collective. \param [in,out] x      [n,3] double
 * [Å]. \param [in,out] image  [n,3] int32. \return 0, or TS_ERR_SIMULATION for a position that is
 * not finite or an image count beyond int32, with the index (from 1) in the message; atoms before
 * that one are wrapped. */
int ts_cell_wrap(const ts_cell *cell, ts_lidx n, double (*x)[3], int32_t (*image)[3]);

/** Fractional coordinates of one point. */
static inline void ts_cell_fraction(const ts_cell *cell, const double x[3], double f[3])
{
  for (int k = 0; k < 3; k++)
    f[k] = x[0] * cell->inv[0][k] + x[1] * cell->inv[1][k] + x[2] * cell->inv[2][k];
}

/** The lattice vector of an image [Å]; exactly antisymmetric: S(-n) = -S(n). */
static inline void ts_cell_shift(const ts_cell *cell, const int32_t image[3], double s[3])
{
  for (int k = 0; k < 3; k++)
    s[k] = image[0] * cell->h[0][k] + image[1] * cell->h[1][k] + image[2] * cell->h[2][k];
}

#endif
