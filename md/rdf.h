/* SPDX-License-Identifier: MIT
 *
 * Radial distribution functions g_AB(r), averaged over frames:
 *
 *   g_AB(r) = <pairs of A and B with a distance in the bin> / (N_A N_B' / V  *  volume of the
 * shell)
 *
 * counted over ordered pairs (an A, then a B), with N_B' = N_B for different elements and N_B - 1
 * for equal ones, so that an ideal gas gives 1 in any box.  The distance is to every periodic
 * image, so r_max may exceed half the cell; an atom's own images count as pairs of equal elements,
 * as in any larger copy of the box, and then N_B' = N_B (see docs/units.md).  The coordination
 * number n_AB(r) is the mean number of B within r of an A. */
#ifndef TS_RDF_H
#define TS_RDF_H

#include "comm/peers.h"
#include "neighbor/cell.h"

typedef struct ts_rdf ts_rdf;

typedef struct ts_rdf_params {
  int npairs;
  const uint8_t (*pair)[2]; /**< [npairs] atomic numbers A, B; copied */
  double r_max;             /**< [Å], > 0 */
  double bin;               /**< [Å], > 0; the last bin may end beyond r_max */
  const ts_ranks *ranks;    /**< that share the atoms; copied; NULL: this rank has all */
} ts_rdf_params;

/** Create empty accumulators, the same on all ranks.  Collective on params->ranks.
 * \param [in] cell  Must be periodic in three directions: a density is needed.
 * \param [in] z     [n] atomic numbers of this rank's atoms; both elements of each pair must occur
 *                   on some rank.
 * \return 0, TS_ERR_INPUT (not periodic, an absent element, no bins), TS_ERR_MEMORY or TS_ERR_MPI.
 */
int ts_rdf_create(const ts_rdf_params *params, const ts_cell *cell, ts_lidx n, const uint8_t *z,
                  ts_rdf **out);
void ts_rdf_destroy(ts_rdf **rdf);

/** Add one frame.  Collective: the counts of all ranks' atoms are added on every rank.
 * \param [in] x  [n,3] double [Å], wrapped or not
 * \return 0, TS_ERR_MEMORY or TS_ERR_MPI. */
int ts_rdf_add(ts_rdf *rdf, const ts_cell *cell, ts_lidx n, const double (*x)[3], const uint8_t *z);

/** Frames so far. */
int64_t ts_rdf_frames(const ts_rdf *rdf);

/** Write r, then g and n of each pair, as CSV (aside, then renamed).  \return 0 or TS_ERR_IO. */
int ts_rdf_write(const ts_rdf *rdf, const char *path);

/** The accumulators as one array of doubles, for a checkpoint: its length, a copy out, a copy in.
 * \return load: 0 or TS_ERR_INPUT (another length or other bins than this one's). */
int64_t ts_rdf_state_size(const ts_rdf *rdf);
void ts_rdf_save(const ts_rdf *rdf, double *state);
int ts_rdf_load(ts_rdf *rdf, int64_t size, const double *state);

#endif
