/* SPDX-License-Identifier: MIT
 *
 * Exchanges of which nobody knows the partners beforehand: everybody sends what it has to whom it
 * likes, and finds out what came.  Cost and memory grow with a rank's own parcels, not with the
 * number of ranks.  Ranks may be virtual (peers.h). */
#ifndef TS_SPARSE_H
#define TS_SPARSE_H

#include "comm/peers.h"

/** Records on their way: of the hosted ranks, one after the other, and within a rank by peer. */
typedef struct ts_parcels {
  int64_t *first; /**< [hosted+1] parcels of a hosted rank */
  int *peer;      /**< [parcels] destination or source: ascending, each at most once for a rank */
  int64_t *start; /**< [parcels+1] their records */
  char *data;     /**< records */
} ts_parcels;

/** Deliver.  Collective on the ranks; no other exchange of theirs may be under way.  A parcel to
 * oneself is a copy; an empty one is not delivered.
 * \param [in]  record    Bytes of a record, the same on all ranks.
 * \param [out] received  Released by ts_parcels_free(); empty on failure.
 * \return 0; TS_ERR_MPI (also a parcel of 2^31 records or more); TS_ERR_MEMORY: after it the ranks
 *         have lost step, and the run must end. */
int ts_sparse_exchange(const ts_ranks *ranks, size_t record, const ts_parcels *send,
                       ts_parcels *received);

/** Room for `parcels` parcels of `records` records in all, everything zero. */
int ts_parcels_create(const ts_ranks *ranks, int64_t parcels, int64_t records, size_t record,
                      ts_parcels *out);

/** Free what is in it and clear it. */
void ts_parcels_free(ts_parcels *parcels);

/** The same failure for everybody: status and message of the lowest rank that failed, 0 if none
 * has.  Collective. */
int tsi_ranks_agree(const ts_ranks *ranks, int status);

/** Sums over all ranks, in place.  Collective.
 * \param [in,out] x  [hosted,n] int64; every row becomes the sum of all ranks' rows. */
int ts_ranks_sum_i64(const ts_ranks *ranks, int n, int64_t *x);

/** Largest over all ranks, in place.  \param [in,out] x  [hosted,n] double. */
int ts_ranks_max(const ts_ranks *ranks, int n, double *x);

#endif
