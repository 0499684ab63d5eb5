/* SPDX-License-Identifier: MIT
 *
 * A plan of exchange: which of its atoms a rank sends to whom, and what it receives from whom.  It
 * is made once, when the receivers know what they need; after that both sides know every count, and
 * nothing is negotiated. */
#ifndef TS_PLAN_H
#define TS_PLAN_H

#include "comm/peers.h"
#include "runtime/types.h"

/** Atoms of other ranks that a rank needs: sorted by (rank, index), without repetition. */
typedef struct ts_plan_need {
  ts_lidx n;
  const int32_t *rank;  /**< [n] owner */
  const ts_lidx *index; /**< [n] at the owner */
} ts_plan_need;

typedef struct ts_plan {
  int sources;     /**< ranks that send to this one */
  int32_t *source; /**< [sources] ascending */
  ts_lidx *first;  /**< [sources+1] what is needed first[s] .. first[s+1]-1 comes from source s */
  int targets;     /**< ranks that this one sends to */
  int32_t *target; /**< [targets] ascending */
  ts_lidx *start;  /**< [targets+1] */
  ts_lidx *row;    /**< [start[targets]] owned atoms to send, by target */
} ts_plan;

/** Tell every owner what is needed of it.  Collective on the ranks: one message to each source.
 * \param [in]  need  [hosted], borrowed.
 * \param [out] plan  [hosted], each released by ts_plan_free().
 * \return 0, TS_ERR_MPI or TS_ERR_MEMORY. */
int ts_plan_build(const ts_ranks *ranks, const ts_plan_need *need, ts_plan *plan);

/** What the owners hold of the needed atoms: halo [n] records from own [atoms] records of the
 * others. For what changes seldom; steps have buffers of their own.  Collective on the ranks.
 * \param [in]  own   [hosted] arrays of `record` bytes an atom.
 * \param [out] halo  [hosted] arrays of plan's first[sources] records.
 * \return 0, TS_ERR_MPI or TS_ERR_MEMORY. */
int ts_plan_fetch(const ts_ranks *ranks, const ts_plan *plan, size_t record, const void *const *own,
                  void *const *halo);

/** Free what is in a plan and clear it. */
void ts_plan_free(ts_plan *plan);

#endif
