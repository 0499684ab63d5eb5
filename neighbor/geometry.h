/* SPDX-License-Identifier: MIT
 *
 * What changes on every step of an epoch while the edge set stays: lengths and directions, which
 * edges are active, how far atoms have moved, and a fingerprint of the active set. */
#ifndef TS_GEOMETRY_H
#define TS_GEOMETRY_H

#include "neighbor/edges.h"

/** Measure the edges of receivers first .. last-1.  Not collective; thread-safe on disjoint rows.
 * \param [in]  x             [N+G,3] double [Å], the order of the build, moved continuously since.
 * \param [in]  lower,cutoff  Active means lower <= r <= cutoff [Å], and r > 0.
 * \param [out] geometry      [edges of the rows,4] double: u = d / r (0 where r = 0), r [Å].
 * \param [out] active        [edges of the rows] uint8: 1 or 0.
 * \param [out] closest       Smallest r of these rows, infinity if they have no edge; may be NULL.
 * \param [out] closest_edge  Its edge id, the first of equals, or -1; may be NULL.  The caller
 * stops on overlapping atoms with it: an edge shorter than `lower` is not active, so nothing else
 * would notice. */
void ts_edges_measure(const ts_edges *edges, const double (*x)[3], ts_lidx first, ts_lidx last,
                      double lower, double cutoff, double *geometry, uint8_t *active,
                      double *closest, int64_t *closest_edge);

/** Fingerprint of a set of edges in global ids: a sum over edges of a 64-bit mix of (receiver's
 * gid, sender's gid, shift between unwrapped positions S + image_i - image_j).  Equal for every
 * order of atoms and edges, back end, wrapping and number of ranks; sums over ranks (or tiles)
 * combine. \param [in] active  [E] uint8; NULL: every edge. \param [in] gid     [N+G] ts_gidx.
 * \param [in] image   [N+G,3] int32, as ts_cell_wrap counts; NULL: zeros. */
uint64_t ts_edges_hash(const ts_edges *edges, const uint8_t *active, const ts_gidx *gid,
                       const int32_t (*image)[3]);

/** Largest distance between two sets of positions [Å]; infinity if one is not finite; 0 for n = 0.
 * \param [out] atom  The atom that moved furthest, -1 if none; may be NULL. */
double ts_displacement_max(ts_lidx n, const double (*x)[3], const double (*reference)[3],
                           ts_lidx *atom);

#endif
