/* SPDX-License-Identifier: MIT
 *
 * How long a step would take, from the costs of one rank (bench/bench_costs measures them), the
 * latency and bandwidth of a message, and what a survey has counted.
 *
 * Of a rank with n atoms, for each layer, each way:
 *     T = own work + max(Tc, Tl) + Tr,    Tc = latency + bytes / bandwidth + messages * handling
 * Tl is the attention to senders that are here, which hides the exchange; Tr that to the others,
 * which waits for it.  A step adds the geometry of its edges, behind which positions and, at the
 * end, forces travel, two reductions of log2(K) latencies, and its part of a rebuild; the slowest
 * rank's time is the step's.  What a rank waits is what Tc exceeds Tl by.  Efficiency is the time
 * of a rank alone with as many atoms and edges over the step's. */
#ifndef TS_PLAN_TIME_H
#define TS_PLAN_TIME_H

#include "md/plan_survey.h"

/** Of one worker [s]. */
typedef struct ts_plan_costs {
  double atom;          /**< an atom, all that does not depend on edges; both ways, a layer */
  double step_atom;     /**< the same, once a step */
  double edge_forward;  /**< an edge, a layer */
  double edge_back;     /**< an edge, a layer */
  double edge_geometry; /**< an edge, once a stage and step */
  double row;           /**< an atom packed or taken back, a layer and way */
  double message;       /**< handling of one message */
  double step;          /**< a step of a rank without atoms */
  double rebuild_atom;  /**< an atom or candidate, at a rebuild */
  double rebuild_edge;  /**< an edge, at a rebuild */
} ts_plan_costs;

typedef struct ts_plan_network {
  double latency;   /**< [s] */
  double bandwidth; /**< [bytes/s] */
  int workers;      /**< of a rank */
  double share;     /**< ranks that take turns on a core, >= 1 */
  int interval;     /**< steps between rebuilds */
} ts_plan_network;

/** Predicted, of the slowest of the ranks whose edges were found [s]. */
typedef struct ts_plan_time {
  double step;       /**< a step with its part of a rebuild */
  double hit;        /**< a step between rebuilds */
  double rebuild;    /**< a rebuild by itself */
  double wait;       /**< of a hit: for exchanges, mean over ranks */
  double alone;      /**< a hit of one rank without others, as many atoms and edges */
  double efficiency; /**< alone, with its rebuilds, over step */
} ts_plan_time;

/** Read costs.  \return 0 or TS_ERR_INPUT naming file, line, key and what was expected. */
int ts_plan_costs_read(const char *path, ts_plan_costs *out);

void ts_plan_predict(const ts_plan_params *params, const ts_survey *survey,
                     const ts_plan_costs *costs, const ts_plan_network *network, ts_plan_time *out);

#endif
