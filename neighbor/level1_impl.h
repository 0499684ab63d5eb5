/* SPDX-License-Identifier: MIT
 *
 * What the schemes of Level 1 share; private to this folder.  A scheme publishes one row of fixed
 * size per rank and answers from two rows alone which atoms of the one the other may need. */
#ifndef TS_LEVEL1_IMPL_H
#define TS_LEVEL1_IMPL_H

#include <math.h>

#include "comm/sparse.h"
#include "neighbor/lattice.h"
#include "neighbor/level1.h"
#include "neighbor/level1_routed.h"

/** Where atoms are compared: fractions t of the compact cell, 0 <= t <= 1 along periods. */
typedef struct tsi_space {
  ts_cell box;
  double reach[3];        /**< in fractions, with room for rounding */
  double low[3], high[3]; /**< of all atoms of all ranks */
  int bins[3];            /**< along each axis; scheme bins */
} tsi_space;

static inline void tsi_space_place(const tsi_space *space, const double x[3], double t[3])
{
  ts_cell_fraction(&space->box, x, t);
  for (int k = 0; k < 3; k++)
    if (space->box.periodic[k]) t[k] -= floor(t[k]);
}

typedef struct tsi_level1_ops {
  bool whole; /**< asked for one atom, a rank sends all */
  /** Settle what depends on all atoms (space->bins); may be NULL.  The same on all ranks. */
  void (*prepare)(const ts_level1_params *params, double reach, tsi_space *space);
  size_t (*row_size)(const ts_level1_params *params);
  /** Write the zeroed row of a rank with atoms at t [n,3], n >= 0. */
  void (*publish)(const tsi_space *space, const ts_level1_params *params, ts_lidx n,
                  const double (*t)[3], void *row);
  /** May `asker` need atoms of `source`?  Counted in stats (sources, full, trim) unless NULL. */
  bool (*asks)(const tsi_space *space, const ts_level1_params *params, const void *asker,
               const void *source, ts_level1_stats *stats);
  /** Add to images[i] how many images of the source's atom at t[i] the asker may need. */
  void (*clip)(const tsi_space *space, const ts_level1_params *params, const void *asker,
               const void *source, ts_lidx n, const double (*t)[3], uint8_t *images);
} tsi_level1_ops;

extern const tsi_level1_ops tsi_level1_boxes, tsi_level1_bins;

/** What one rank would get. */
typedef struct tsi_tally {
  int peers;
  int64_t atoms, images;
} tsi_tally;

/** One call. */
typedef struct tsi_level1 {
  const ts_ranks *ranks;
  const ts_level1_params *params;
  const ts_cell *cell;
  const ts_shard *shard;
  const tsi_level1_ops *ops;
  double reach;
  tsi_space space;
  size_t row;          /**< bytes */
  char *rows;          /**< [size] of all ranks; routed: [hosted] of ours */
  ts_sources *sources; /**< routed: [hosted] */
  ts_parcels asked;    /**< routed: rows of the ranks that ask ours */
  int64_t *metadata;   /**< [hosted] bytes */
  bool counting;       /**< ts_level1_count(): answers are counted, and sent to the wanted only */
  tsi_tally *tally;    /**< [hosted] counting: of the ranks that ask; NULL: do not count */
  const bool *wanted;  /**< [hosted] counting, or NULL: nobody */
  double (*t)[3];      /**< places of the atoms of one rank */
  uint8_t *images;     /**< [most atoms of a rank], zeros between uses */
} tsi_level1;

/** The row of a hosted rank. */
static inline char *tsi_level1_row(const tsi_level1 *l, int host)
{
  return l->rows + (size_t)(l->sources ? host : l->ranks->first + host) * l->row;
}

/** Write the places of a hosted rank's atoms to l->t. */
void tsi_level1_place(tsi_level1 *l, int host);

/** Clip, send and sort in: all after the rows are there.  Collective. */
int tsi_level1_answer(tsi_level1 *l, ts_remote *out, ts_level1_stats *stats);

#endif
