/* SPDX-License-Identifier: MIT
 *
 * What K ranks would do with a system, found by K virtual ranks in this process: they run the cut,
 * Level 1 with every scheme, the search and the plan that real ranks run.  Level 1 is counted for
 * all ranks; edges are found for all of them where that takes seconds, and else for a sample, which
 * the result says.  Memory grows with the atoms and with the edges of one rank. */
#ifndef TS_PLAN_SURVEY_H
#define TS_PLAN_SURVEY_H

#include "comm/plan.h"
#include "md/plan_system.h"
#include "md/step.h"

enum { TS_PLAN_SCHEMES = TS_LEVEL1_ROUTED + 1 };

typedef struct ts_plan_params {
  int ranks;
  ts_step_params step; /**< as a run would have them: model (only its sizes are read), skin, chunk,
                          partition, weighted, level1 (its scheme is not) */
  bool scheme[TS_PLAN_SCHEMES]; /**< those to count */
  int sample;                   /**< ranks of which edges are found; 0: automatic */
} ts_plan_params;

/** Over ranks. */
typedef struct ts_plan_spread {
  double least, mean, most;
} ts_plan_spread;

/** Level 1 by one scheme. */
typedef struct ts_plan_scheme {
  bool counted;
  ts_plan_spread asked;      /**< ranks, itself included */
  ts_plan_spread peers;      /**< other ranks that send atoms */
  ts_plan_spread candidates; /**< atoms and images that are searched, its own included */
  ts_plan_spread whole;      /**< box, boxes: if sources sent whole shards instead */
  ts_plan_spread row;        /**< what a rank publishes [bytes] */
  ts_plan_spread messages;   /**< of metadata that a rank sends at a rebuild */
  ts_plan_spread bytes;      /**< in them */
} ts_plan_scheme;

/** Of one rank whose edges were found, in one stage. */
typedef struct ts_plan_stage_load {
  int sources, targets; /**< other ranks that it receives from and sends to */
  ts_lidx halo, sent;   /**< atoms received and sent, by each exchange */
  int64_t edges;        /**< at cutoff + skin */
  int64_t remote;       /**< of them, with senders of other ranks */
  ts_lidx boundary;     /**< own atoms with such edges */
} ts_plan_stage_load;

typedef struct ts_plan_load {
  int rank;
  ts_lidx n;
  size_t bytes; /**< of a step's arrays, estimated as `tessera check` does, and of the exchange */
  int step_messages;  /**< sent by a step to other ranks: places, keys and values of every layer, */
  int64_t step_bytes; /**< their gradients, forces; as ts_step_stats has them */
  ts_plan_stage_load stage[TS_MAX_STAGES];
} ts_plan_load;

typedef struct ts_survey {
  int ranks, stages;
  int64_t atoms;
  ts_curve curve;
  int64_t *first;           /**< [ranks+1] atoms of a rank, in the order along the curve */
  ts_plan_spread count;     /**< atoms of a rank */
  double owned_volume;      /**< mean [Å^3]; of the places that are taken, see plan_shape.c */
  ts_plan_spread box_ratio; /**< volume of a rank's box over what it owns */
  int grid[3];              /**< cells of an equal-volume grid of as many parts */
  double grid_spread;       /**< most minus fewest atoms in one */
  ts_plan_scheme scheme[TS_PLAN_SCHEMES];
  int sampled;                  /**< ranks whose edges were found; = ranks: all */
  ts_plan_load *load;           /**< [sampled] by rank */
  ts_plan *plan[TS_MAX_STAGES]; /**< [ranks], if all were; or NULL */
} ts_survey;

/** The sizes of a described model without its weights: what params->step.model needs to be here.
 * \param [out] model  The caller's; nothing in it is to be released. */
void ts_plan_model(const ts_model_desc *desc, bool is_double, ts_model *model);

/** Survey.  Not collective.
 * \param [in]  atoms  Sorted along params->step.partition.curve.
 * \param [out] out    Released by ts_survey_destroy(); NULL on failure.
 * \return 0; TS_ERR_ARG (fewer atoms than ranks); TS_ERR_UNSUPPORTED, TS_ERR_SIMULATION,
 *         TS_ERR_MEMORY as the parts have them. */
int ts_survey_create(const ts_plan_params *params, const ts_plan_atoms *atoms, ts_survey **out);
void ts_survey_destroy(ts_survey **survey);

/** Over the ranks whose edges were found; `value` picks a number of one of them. */
ts_plan_spread ts_survey_spread(const ts_survey *survey, int stage,
                                double (*value)(const ts_plan_load *load, int stage));

/** Part of all edges of a stage whose senders are the receiver's rank's own. */
double ts_survey_local(const ts_survey *survey, int stage);

#endif
