/* SPDX-License-Identifier: MIT
 *
 * Private to the survey: what it carries along, and what it asks one rank. */
#ifndef TS_PLAN_RANK_H
#define TS_PLAN_RANK_H

#include "md/plan_survey.h"

typedef struct tsi_survey_work {
  const ts_plan_params *params;
  const ts_plan_atoms *atoms;
  ts_ranks ranks; /**< virtual */
  double reach;   /**< largest cutoff + skin [Å] */
  ts_shard *shard;
  int64_t *halo;                     /**< [ranks] atoms that Level 1 brings by boxes */
  double *weight;                    /**< [atoms] for the cut by edges */
  ts_plan_load *load;                /**< where the next rank's numbers go */
  ts_plan_need *need[TS_MAX_STAGES]; /**< [ranks] or NULL: not wanted */
} tsi_survey_work;

/** Find a rank's edges in every stage: numbers to *work->load++, needs to work->need.
 * \param [in] remote  Its halo by Level 1. */
int tsi_plan_look(tsi_survey_work *work, int rank, const ts_remote *remote);

/** The weights of its atoms, as a run's partition has them. */
int tsi_plan_weigh(tsi_survey_work *work, int rank, const ts_remote *remote);

#endif
