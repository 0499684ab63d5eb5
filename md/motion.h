/* SPDX-License-Identifier: MIT
 *
 * The tasks that move atoms and measure them; their arithmetic is md/integrate.c and
 * md/observe.c.  What changes from step to step is read through one shared struct, so the recorded
 * tasks need not change. */
#ifndef TS_MOTION_H
#define TS_MOTION_H

#include "codelets/codelets.h"
#include "md/observe.h"
#include "md/system.h"

/** What the tasks of this step do; owned by the step, written between runs. */
typedef struct ts_step_now {
  const ts_motion *motion; /**< NULL: forces only, nothing moves */
  int64_t number;
} ts_step_now;

/** One tile of the moving atoms: plain arrays of the rank, and where the tile begins. */
typedef struct ts_slice {
  const ts_step_now *now;
  ts_lidx first;
  int n;
  ts_system *system;
  double (*f)[3];
  double (*virial)[9];
  double (*x_build)[3];
  ts_motion_report *report;
  ts_partial *partial;
} ts_slice;

/** First half of a step: x and motion of the tile. */
int ts_submit_move(const ts_recorder *r, const ts_slice *slice, starpu_data_handle_t x,
                   starpu_data_handle_t motion);

/** Second half (where something moves), and the tile's observables. */
int ts_submit_kick(const ts_recorder *r, const ts_slice *slice, starpu_data_handle_t x,
                   starpu_data_handle_t energy, starpu_data_handle_t motion);

#endif
