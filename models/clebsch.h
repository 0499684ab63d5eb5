/* SPDX-License-Identifier: MIT
 *
 * Real spherical harmonics and the Clebsch-Gordan blocks of a feature with a vector, for degrees up
 * to 3, in the row order of the features: degree 1 is (x, y, z), degree 2 is (xz, xy,
 * y^2-(x^2+z^2)/2, yz, (z^2-x^2)/2), degree 3 is (x(3z^2-x^2), xyz, x(4y^2-x^2-z^2),
 * y(2y^2-3x^2-3z^2), z(4y^2-x^2-z^2), y(z^2-x^2), z(z^2-3x^2)) up to a factor each. */
#ifndef TS_CLEBSCH_H
#define TS_CLEBSCH_H

enum { TS_CLEBSCH_MAX = 7 * 3 * 7, TS_CLEBSCH_PATHS = 3 };

/** The input degrees l1 that a vector can carry to degree l3, ascending.  Not collective.
 * \param [in]  lmax  Highest degree present, <= 3.
 * \param [out] l1    At most TS_CLEBSCH_PATHS degrees.
 * \return how many. */
int ts_clebsch_paths(int l3, int lmax, int l1[TS_CLEBSCH_PATHS]);

/** One block: out_c = sum_ab G[a,b,c] feature_a u_b, normalised so that for each output row the
 * squares of the block sum to one.  Not collective.
 * \param [in]  l1, l3  Degrees in 0..3 with |l1 - l3| <= 1, not both 0 (asserted).
 * \param [out] G       [2 l1+1, 3, 2 l3+1] double. */
void ts_clebsch_gordan(int l1, int l3, double *G);

/** Harmonics of a vector; degree l grows as |v|^l.  Slow; kernels have their own.  Not collective.
 * \param [in]  lmax  0..3 (asserted).
 * \param [out] Y     [(lmax+1)^2] double, |Y_l|^2 = 2l+1 for a unit vector. */
void ts_harmonics(int lmax, const double v[3], double *Y);

#endif
