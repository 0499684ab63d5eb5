/* SPDX-License-Identifier: MIT
 *
 * Clebsch-Gordan blocks of a degree-l1 feature with a vector, for l1, l3 <= 2, in the row order of
 * the features: degree 1 is (x, y, z), degree 2 is (xz, xy, y^2-(x^2+z^2)/2, yz, (z^2-x^2)/2).
 * Normalised so that for each output row the squares of the block sum to one. */
#ifndef TS_CLEBSCH_H
#define TS_CLEBSCH_H

enum { TS_CLEBSCH_MAX = 5 * 3 * 5, TS_CLEBSCH_PATHS = 3 };

/** The input degrees l1 that a vector can carry to degree l3, ascending.  Not collective.
 * \param [in]  lmax  Highest degree present, <= 2.
 * \param [out] l1    At most TS_CLEBSCH_PATHS degrees.
 * \return how many. */
int ts_clebsch_paths(int l3, int lmax, int l1[TS_CLEBSCH_PATHS]);

/** One block: out_c = sum_ab G[a,b,c] feature_a u_b.  Not collective.
 * \param [in]  l1, l3  Degrees in 0..2 with |l1 - l3| <= 1, not both 0 (asserted).
 * \param [out] G       [2 l1+1, 3, 2 l3+1] double. */
void ts_clebsch_gordan(int l1, int l3, double *G);

#endif
