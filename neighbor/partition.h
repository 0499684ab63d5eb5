/* SPDX-License-Identifier: MIT
 *
 * Who owns which atom.  All ranks' atoms are put in one order, along a space-filling curve and by
 * id where two share a key, and the order is cut into one interval per rank.  Nobody ever holds the
 * order: the cuts are found by counting (partition_count.c).  Owners are a pure function of keys
 * and ids (and weights), whatever rank an atom is on before.  Ranks may be virtual. */
#ifndef TS_PARTITION_H
#define TS_PARTITION_H

#include "comm/peers.h"
#include "neighbor/curve.h"
#include "neighbor/shard.h"

typedef struct ts_partition_params {
  ts_curve curve;
  ts_normalization normalization;
  bool root_sort; /**< rank 0 gathers and sorts all keys: for comparison */
  double slack;   /**< cut by weight: at most (1 + slack) N/K atoms on a rank, but at least ceil */
} ts_partition_params;

/** Keys along the curve, as ts_curve_keys() gives them to one rank that holds all atoms.
 * Collective on the ranks.
 * \param [in]  shard  [hosted], x wrapped.
 * \param [out] key    [hosted][n] uint64, below 2^63. */
int ts_partition_keys(const ts_ranks *ranks, const ts_partition_params *params, const ts_cell *cell,
                      const ts_shard *shard, uint64_t *const *key);

/** Owners: the K intervals of the order by (key, gid), of floor(N/K) or ceil(N/K) atoms each, or of
 * nearly equal weight within the capacity.  Collective on the ranks; fails on all alike.
 * \param [in]  shard   [hosted], gid needed, different for all atoms of all ranks.
 * \param [in]  key     [hosted][n] uint64, below 2^63.
 * \param [in]  weight  [hosted][n] double, 0 to 1e9, counted in whole numbers from 1 up; NULL, for
 *                      all ranks alike: equal counts.
 * \param [out] owner   [hosted][n] int32, ranks.
 * \return 0; TS_ERR_ARG: fewer atoms than ranks, a bad weight, an id that comes twice;
 *         TS_ERR_MEMORY, TS_ERR_MPI. */
int ts_partition_cut(const ts_ranks *ranks, const ts_partition_params *params,
                     const ts_shard *shard, const uint64_t *const *key, const double *const *weight,
                     int32_t *const *owner);

#endif
