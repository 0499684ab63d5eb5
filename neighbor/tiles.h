/* SPDX-License-Identifier: MIT
 *
 * An edge set cut into tiles: for each tile of `rows` atoms, its edges as receiver and its entries
 * as sender, addressed by (block of a short list, row) instead of by atom.  A task on a tile so
 * names the few blocks that it reads, and nothing in it grows with the number of atoms.  The halo
 * comes in blocks of its own, one a peer, which only send. */
#ifndef TS_TILES_H
#define TS_TILES_H

#include "neighbor/edges.h"

/** One block of one stage: a tile of atoms, or the halo from one peer (no edges, nfrom = 0).
 * Symbols: n its atoms, E its edges, P its entries as sender. */
typedef struct ts_tile {
  ts_lidx first;      /**< its first atom (halo: first sender) */
  int n;              /**< atoms; rows of the last tile beyond n are padding */
  int64_t first_edge; /**< its edges in the whole set are first_edge .. first_edge + edges - 1 */
  int edges;          /**< E */
  int32_t *row;       /**< [n+1] edges of a receiver, from 0 */
  int32_t *sender;    /**< [E] TS_SLOT: index into from[], row in that block */
  int nfrom;          /**< blocks that send to this tile */
  int nlocal;         /**< of them, tiles of this rank: the first of the list */
  int32_t *from;      /**< [nfrom] blocks, ascending */
  int32_t *from_rows; /**< [nfrom] rows of their arrays: `rows` for tiles, n for halo blocks */
  int32_t *column;    /**< [n+1] entries of a sender, sorted by (receiver's gid, image) */
  int32_t *to_tile;   /**< [P] index into to[] */
  int32_t *to_row;    /**< [P] row of the receiver in its tile */
  int32_t *to_edge;   /**< [P] edge in its tile's own edges */
  int nto;
  int32_t *to; /**< [nto] tiles that receive from this one, ascending */
} ts_tile;

typedef struct ts_tiles {
  int rows;  /**< atoms of a full tile */
  int count; /**< tiles */
  int halos; /**< halo blocks, numbered from `count` */
  int largest_edges, largest_degree;
  ts_tile *tile; /**< [count+halos] */
  int32_t *pool; /**< what their arrays are carved from */
} ts_tiles;

/** Cut a set.  Not collective.
 * \param [in]  rows   Atoms of a tile, >= 1.
 * \param [in]  halos  Halo blocks.
 * \param [in]  block  [halos+1] senders edges->n + block[b] .. edges->n + block[b+1] - 1 are of
 * block b; NULL without halo.  All senders beyond edges->n are in a block. \param [out] out Owned
 * by the caller: ts_tiles_destroy(); NULL on failure. \return 0, TS_ERR_MEMORY, or
 * TS_ERR_UNSUPPORTED (a tile with more than 2^31 - 1 edges or more than TS_SLOT_BLOCKS partners; a
 * block of more than TS_SLOT_ROWS rows). */
int ts_tiles_build(const ts_edges *edges, int rows, int halos, const ts_lidx *block,
                   ts_tiles **out);

/** Accepts NULL, sets *tiles to NULL. */
void ts_tiles_destroy(ts_tiles **tiles);

#endif
