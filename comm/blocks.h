/* SPDX-License-Identifier: MIT
 *
 * Rows by id.  A rank holds atoms as the partition gave them, in any order; files list them by id.
 * In between stand blocks: of `rows` ids, rank r of K has r rows/K up to (r+1) rows/K (rounded
 * down), so that everybody knows where an id belongs and each rank writes or reads one piece of a
 * file.
 *
 * Who sends what to whom is found once, with the ids; then any number of arrays move along it in
 * either direction, a row of each atom at a time, by one sparse exchange each.  On one rank these
 * are copies. */
#ifndef TS_BLOCKS_H
#define TS_BLOCKS_H

#include "comm/peers.h"
#include "runtime/types.h"

/** First id of a rank's block of `rows` ids below 2^32; of rank `ranks`: rows. */
ts_gidx ts_block_first(ts_gidx rows, int ranks, int rank);

/** The rank whose block has an id, 0 <= id < rows. */
int ts_block_rank(ts_gidx rows, int ranks, ts_gidx id);

typedef struct ts_blocks ts_blocks;

/** Find the way between the ids that the ranks hold and the blocks.  Collective on the ranks.
 * \param [in]  ranks  Copied; its comm and traffic are borrowed.
 * \param [in]  n      [hosted] ids held
 * \param [in]  id     [hosted][n] from 0, in any order; each id below `rows` on one rank once.
 * \param [out] out    Owned by the caller: ts_blocks_destroy(); NULL on failure.
 * \return 0; TS_ERR_SIMULATION naming an id that nobody has, that is there twice, or that is out of
 *         range; TS_ERR_MPI; TS_ERR_MEMORY.  The same on all ranks. */
int ts_blocks_create(const ts_ranks *ranks, ts_gidx rows, const ts_lidx *n,
                     const ts_gidx *const *id, ts_blocks **out);

/** Accepts NULL, sets *blocks to NULL. */
void ts_blocks_destroy(ts_blocks **blocks);

/** Move rows of `size` bytes from their holders to the blocks.  Collective.
 * \param [in]  held   [hosted][n,size] in the order of the ids at creation
 * \param [out] block  [hosted][rows of the block,size] by id */
int ts_blocks_collect(const ts_blocks *blocks, size_t size, const void *const *held,
                      void *const *block);

/** And back.  Collective. */
int ts_blocks_return(const ts_blocks *blocks, size_t size, const void *const *block,
                     void *const *held);

#endif
