/* SPDX-License-Identifier: MIT
 *
 * The edge set of one stage: every ordered pair (receiver i, sender j, lattice shift S) within
 * reach, i attends to j's copy at x_j + S.  It is built at cutoff + skin and kept until the next
 * rebuild; ts_edges_measure (geometry.h) marks the edges that are active at the moment.
 *
 * Rows (by receiver) are for sums over neighbours, columns (by sender) for their gradients; both
 * orders depend on global ids and images only, never on the back end, the chunk size or where atoms
 * sit in memory, so sums over them give the same bits everywhere.
 *
 * Receivers are a rank's own atoms; senders are these and the halo, copies of other ranks' atoms,
 * each of them once: images are found here.
 *
 * Symbols: N receivers, G atoms of the halo, E edges, S shifts. */
#ifndef TS_EDGES_H
#define TS_EDGES_H

#include "neighbor/cell.h"

/** What a build did and how long its parts took. */
typedef struct ts_search_stats {
  int64_t candidates; /**< atoms and images that Level 1 kept */
  int64_t chunks;     /**< Level 2 */
  double candidate_s; /**< Level 1 [s] */
  double search_s;    /**< Levels 2 and 3 [s] */
  double row_s;       /**< writing the rows [s] */
  double column_s;    /**< writing the columns [s] */
} ts_search_stats;

typedef struct ts_edges {
  ts_lidx n;         /**< N */
  ts_lidx nsenders;  /**< N + G */
  int64_t count;     /**< E */
  int64_t capacity;  /**< edges that the arrays have room for, >= E */
  int64_t *row;      /**< [N+1] edges of receiver i: row[i] .. row[i+1]-1 */
  ts_lidx *receiver; /**< [E] */
  ts_lidx *sender;   /**< [E] a row is sorted by (sender's gid, image) */
  int32_t *shift;    /**< [E] index into the shifts; 0 is the zero shift */
  int32_t nshift;
  int16_t (*shift_image)[3]; /**< [S,3] lattice coordinates */
  double (*shift_vector)[3]; /**< [S,3] the same times h [Å] */
  int64_t *column;           /**< [N+G+1] edges of sender j: column_edge[column[j]] .. */
  int64_t *column_edge;      /**< [E] edge ids; a column is sorted by (receiver's gid, image) */
  ts_search_stats stats;
} ts_edges;

typedef enum ts_search_backend { TS_SEARCH_CELLS, TS_SEARCH_FAISS } ts_search_backend;

typedef struct ts_search_params {
  double cutoff; /**< [Å] > 0 */
  double lower;  /**< pairs closer than this take no part [Å] >= 0 */
  double skin;   /**< [Å] >= 0 */
  ts_search_backend backend;
  int chunk;                   /**< queries searched together, >= 1 */
  const bool *excluded_sender; /**< [N+G] atoms that do not send; NULL: all send */
  ts_edges
      *recycle; /**< an earlier edge set, taken: the new one is built in its memory, which saves
                   the system's clearing of pages (most of the time of a large build); or NULL */
} ts_search_params;

/** Defaults: no skin, no lower bound, `cells`, chunks of 512; the cutoff is the caller's to set. */
void ts_search_params_init(ts_search_params *params);

/** Find every edge with max(0, lower - skin) <= r <= cutoff + skin, exactly.
 * r is the length of (x_i - x_j) - S in double, as tsi_edge_vector forms it; only i == j with zero
 * shift is left out, so coincident atoms are edges (see ts_edges_measure).  Not collective;
 * thread-safe, runs on the calling thread.
 * \param [in]  n      N, may be 0.
 * \param [in]  nhalo  G, may be 0.
 * \param [in]  x      [N+G,3] double [Å], the receivers first; wrapped, or not far from it.
 * \param [in]  gid    [N+G] ts_gidx, all different.
 * \param [out] out    The edges, released by ts_edges_destroy; NULL on failure.  params->recycle is
 *                     gone either way.
 * \return 0, TS_ERR_ARG, TS_ERR_MEMORY, TS_ERR_SIMULATION (a position is not finite),
 *         TS_ERR_UNSUPPORTED (images or candidates beyond the index types; faiss not built in). */
int ts_edges_build(const ts_cell *cell, ts_lidx n, ts_lidx nhalo, const double (*x)[3],
                   const ts_gidx *gid, const ts_search_params *params, ts_edges **out);

/** Release; accepts NULL, sets *edges to NULL. */
void ts_edges_destroy(ts_edges **edges);

/** Full check in O(E): offsets, ranges, both sort orders, each edge once in its column, no self
 * edge, and, if `symmetric` (no sender was excluded), (j, i, -S) for every (i, j, S) whose sender
 * is a receiver, too.  On a failure ts_error_message() tells which.
 * \param [in] gid  [N+G] */
bool ts_edges_is_valid(const ts_edges *edges, const ts_gidx *gid, bool symmetric);

/** Mark the senders that edges name: used [N+G], set to true or left as it is, so that the edge
 * sets of several stages over one halo can be asked in turn.  Not collective. */
void ts_edges_used(const ts_edges *edges, bool *used);

/** Give the halo new indices: that of sender j becomes to[j].  Rows and columns keep their order.
 * Not collective.
 * \param [in] to        [N+G] ascending from halo to halo, below `nsenders`; -1 for an atom that
 *   leaves, which no edge may name; to[i] = i for receivers.
 * \param [in] nsenders  Senders from now on; indices without an old atom have no edges.
 * \return 0; TS_ERR_ARG, and the set is as it was; TS_ERR_MEMORY. */
int ts_edges_renumber(ts_edges *edges, const ts_lidx *to, ts_lidx nsenders);

#endif
