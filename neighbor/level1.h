/* SPDX-License-Identifier: MIT
 *
 * Level 1: which atoms of other ranks may lie within reach of mine.  Every rank publishes a little
 * about where its atoms are; that names the ranks that can matter, and each of these sends the
 * atoms that lie within reach of what the other has published, straight away: it knows that itself
 * and need not be asked.  What provably lies further is never sent; an atom that matters always is.
 *
 * Schemes differ in what is published, and so in how much is sent:
 *   all      how many atoms it has; everybody sends everything (for comparison)
 *   box      the box of the rank's atoms and of each of its images near the cell, at most 27
 *   boxes    the same for `boxes` slices of equal count: tighter where a shard is not compact
 *   bins     which bins of a common grid are occupied, and which are near one that is
 *   routed   its coarse cells, to their homes (level1_routed.h); then the sources get its boxes, so
 *            nobody hears from everybody
 *
 * Places are compared in fractions of a compact cell of the same lattice (lattice.h), in which a
 * period is 1 along each axis and a reach is the same length for all atoms: no shape of cell is
 * special, and a cell thinner than twice the reach merely discards nothing along that axis. */
#ifndef TS_LEVEL1_H
#define TS_LEVEL1_H

#include "comm/peers.h"
#include "comm/route.h"
#include "neighbor/cell.h"
#include "neighbor/shard.h"

typedef enum ts_level1_scheme {
  TS_LEVEL1_ALL,
  TS_LEVEL1_BOX,
  TS_LEVEL1_BOXES,
  TS_LEVEL1_BINS,
  TS_LEVEL1_ROUTED
} ts_level1_scheme;

enum { TS_LEVEL1_MOST_BOXES = 64, TS_LEVEL1_MOST_BINS = 8192 };

typedef struct ts_level1_params {
  ts_level1_scheme scheme;
  int boxes;           /**< slices of a shard for `boxes`, 1..TS_LEVEL1_MOST_BOXES */
  double bin;          /**< smallest width of a bin [Å]; 0: as fine as TS_LEVEL1_MOST_BINS allow */
  ts_route_mode route; /**< of the homes, for `routed` */
  uint64_t seed;       /**< of that route */
} ts_level1_params;

/** Other ranks' atoms that may be senders, in the order of (rank, index).  Each stands once, where
 * its owner has it: the search finds the images. */
typedef struct ts_remote {
  ts_lidx n;
  double (*x)[3]; /**< [n,3] double [Å] */
  ts_gidx *gid;   /**< [n] */
  uint8_t *tag;   /**< [n] */
  int32_t *rank;  /**< [n] owner */
  ts_lidx *index; /**< [n] at the owner */
  int peers;      /**< ranks that own some */
  int32_t *peer;  /**< [peers] ascending */
  ts_lidx *first; /**< [peers+1] atoms of a peer */
} ts_remote;

/** What a rank's filter did.  Pools count images, and the rank's own atoms. */
typedef struct ts_level1_stats {
  int sources;      /**< ranks asked, itself included */
  int peers;        /**< other ranks that send some */
  int64_t atoms;    /**< of other ranks, each once: the halo */
  int64_t metadata; /**< published [bytes]; routed: sent before any atom */
  int64_t full;     /**< box, boxes: atoms of all images (of slices) that were asked for */
  int64_t trim;     /**< box, boxes: those within reach of the cell */
  int64_t pool;     /**< those within reach of what the rank published: what was sent */
} ts_level1_stats;

/** `box`; 8 boxes, automatic bins for the others. */
void ts_level1_params_init(ts_level1_params *params);

/** Find the atoms of other ranks that may lie, with any image, within reach of one of mine.
 * Collective on the ranks.
 * \param [in]  params  Equal on all ranks, like `cell` and `reach`.
 * \param [in]  reach   Cutoff + skin [Å], > 0.
 * \param [in]  shard   [hosted]; positions wrapped, or not far from it.
 * \param [out] out     [hosted]; released by ts_remote_free(); empty on failure.
 * \param [out] stats   [hosted] or NULL (on all ranks alike).
 * \return 0; TS_ERR_ARG; TS_ERR_SIMULATION for a position that is not finite; TS_ERR_MEMORY;
 * TS_ERR_UNSUPPORTED (more than 2^31 - 1 atoms); TS_ERR_MPI.  Never 0 on one rank only. */
int ts_level1_find(const ts_ranks *ranks, const ts_level1_params *params, const ts_cell *cell,
                   double reach, const ts_shard *shard, ts_remote *out, ts_level1_stats *stats);

/** What ts_level1_find() would do, in numbers: no atom is sent, so memory does not grow with the
 * halos of all ranks.  `traffic`, where ranks have it, is that of the metadata alone.  Virtual
 * ranks only.
 * \param [in]  wanted  [size] ranks whose halo is made all the same; NULL: none.
 * \param [out] out     [size] as there, empty for ranks that are not wanted; NULL if none are.
 * \param [out] stats   [size]; NULL: only the halos of the wanted ranks are looked for.
 * \return as there. */
int ts_level1_count(const ts_ranks *ranks, const ts_level1_params *params, const ts_cell *cell,
                    double reach, const ts_shard *shard, const bool *wanted, ts_remote *out,
                    ts_level1_stats *stats);

void ts_remote_free(ts_remote *remote);

#endif
