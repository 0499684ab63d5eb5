/* SPDX-License-Identifier: MIT
 *
 * An edge set cut into tiles: for each tile of `rows` atoms, its edges as receiver and its entries
 * as sender, addressed by (tile of a short list, row) instead of by atom.  A task on a tile so
 * names the few tiles that it reads, and nothing in it grows with the number of atoms. */
#ifndef TS_TILES_H
#define TS_TILES_H

#include "neighbor/edges.h"

/** One tile of one stage.  Symbols: n its atoms, E its edges, P its entries as sender. */
typedef struct ts_tile {
  ts_lidx first;      /**< its first atom */
  int n;              /**< atoms; rows of the last tile beyond n are padding */
  int64_t first_edge; /**< its edges in the whole set are first_edge .. first_edge + edges - 1 */
  int edges;          /**< E */
  int32_t *row;       /**< [n+1] edges of a receiver, from 0 */
  int32_t *sender;    /**< [E] index into from[] times rows, plus the row in that tile */
  int nfrom;
  int32_t *from;    /**< [nfrom] tiles that send to this one, ascending */
  int32_t *column;  /**< [n+1] entries of a sender, sorted by (receiver's gid, image) */
  int32_t *to_tile; /**< [P] index into to[] */
  int32_t *to_row;  /**< [P] row of the receiver in its tile */
  int32_t *to_edge; /**< [P] edge in its tile's own edges */
  int nto;
  int32_t *to; /**< [nto] tiles that receive from this one, ascending */
} ts_tile;

typedef struct ts_tiles {
  int rows;  /**< atoms of a full tile */
  int count; /**< tiles */
  int largest_edges, largest_degree;
  ts_tile *tile; /**< [count] */
  int32_t *pool; /**< what the tiles' arrays are carved from */
} ts_tiles;

/** Cut a set.  Not collective.
 * \param [in]  rows  Atoms of a tile, >= 1.
 * \param [out] out   Owned by the caller: ts_tiles_destroy(); NULL on failure.
 * \return 0, TS_ERR_MEMORY, or TS_ERR_UNSUPPORTED (a tile with more than 2^31 - 1 edges). */
int ts_tiles_build(const ts_edges *edges, int rows, ts_tiles **out);

/** Accepts NULL, sets *tiles to NULL. */
void ts_tiles_destroy(ts_tiles **tiles);

#endif
