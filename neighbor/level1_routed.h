/* SPDX-License-Identifier: MIT
 *
 * Level 1, scheme `routed`: which ranks can own an atom within reach of mine, found without an
 * all-gather.  Space is cut into a grid of coarse cells, 2^b along each axis and none thinner than
 * the reach, so partners sit in the same or in touching cells.  A cell's key is its coordinates in
 * Gray code: the next cell along an axis differs in one bit, also around a periodic direction.
 * Each rank tells the home of every cell it occupies; homes pass their lists on to the next cells
 * along a, then b, then c (three steps reach all 26 neighbours), over b shifts an axis, hence at
 * most b peers under linear routing; and each home answers the ranks that occupy its cells. */
#ifndef TS_LEVEL1_ROUTED_H
#define TS_LEVEL1_ROUTED_H

#include "comm/peers.h"
#include "neighbor/cell.h"
#include "neighbor/shard.h"

typedef struct ts_sources {
  int n;
  int32_t *rank; /**< [n] ascending, without repetition; owned by the caller: free() */
} ts_sources;

typedef struct ts_level1_grid {
  int bits[3];   /**< 2^bits cells along a, b, c */
  int unreached; /**< ranks that are home to no cell: fewer cells than homes */
} ts_level1_grid;

/** Find the ranks that may own an atom within reach, the rank itself included (if it has atoms).
 * Never misses one; names more than needed, those of touching cells.  Collective on the ranks.
 * \param [in]  ranks    Real (one shard) or virtual (all shards).
 * \param [in]  params   Mode and seed of the routing, equal on all ranks; homes are the ranks below
 *   the largest power of two.
 * \param [in]  cell     Equal on all ranks.
 * \param [in]  reach    Cutoff + skin [Å], > 0, equal on all ranks.
 * \param [in]  width    Cells are at least this wide [Å] (and at least `reach`): 0 for the tightest
 *   answer, more for fewer messages and bytes.
 * \param [in]  shard    [hosted], n and x.
 * \param [out] sources  [hosted].
 * \param [out] grid     What was used, or NULL.
 * \return 0; TS_ERR_ARG; TS_ERR_SIMULATION for a position that is not finite; TS_ERR_MEMORY;
 * TS_ERR_MPI. */
int ts_level1_routed(const ts_ranks *ranks, const ts_route_params *params, const ts_cell *cell,
                     double reach, double width, const ts_shard *shard, ts_sources *sources,
                     ts_level1_grid *grid);

#endif
