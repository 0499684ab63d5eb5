/* SPDX-License-Identifier: MIT
 *
 * The shapes of shards: how tightly boxes hold them, and what equal volumes would give instead. */
#ifndef TS_PLAN_SHAPE_H
#define TS_PLAN_SHAPE_H

#include "md/plan_survey.h"
#include "neighbor/shard.h"

/** Boxes over owned volumes of all shards.  A shard owns, of every small cell of space (5 Å, or
 * larger where that makes many more cells than atoms), as much as it has of its atoms; empty cells
 * are nobody's.
 * \param [in] shard  [ranks] consecutive parts of atoms.
 * \return 0 or TS_ERR_MEMORY. */
int tsi_plan_boxes(const ts_plan_atoms *atoms, int ranks, const ts_shard *shard,
                   ts_plan_spread *ratio, double *owned);

/** Atoms in the cells of a grid of `parts` equal cells, its factors as near each other as can be;
 * the finest along the longest vector.
 * \param [out] spread  Most minus fewest. */
int tsi_plan_grid(const ts_plan_atoms *atoms, int parts, int grid[3], double *spread);

/** Add one value of `count`; `spread` starts as {INFINITY, 0, -INFINITY}. */
void tsi_spread_add(ts_plan_spread *spread, int count, double value);

#endif
