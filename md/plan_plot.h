/* SPDX-License-Identifier: MIT
 *
 * Surveys as one picture, an SVG: peers, candidates and metadata against the number of ranks, and
 * the shards that a plane cuts. */
#ifndef TS_PLAN_PLOT_H
#define TS_PLAN_PLOT_H

#include "md/plan_print.h"

/** Who owns what in a plane across c, as small squares along a and b. */
typedef struct ts_plan_slice {
  int ranks; /**< 0: none taken */
  ts_curve curve;
  int columns, rows;
  double width, height; /**< [Å] */
  int32_t *owner;       /**< [rows, columns], -1: no atom near */
} ts_plan_slice;

/** Take the slice of a survey, if it is nearer to 64 ranks than the one there is: fewer say little,
 * of more nobody tells the colours apart.  Not collective.  \return 0 or TS_ERR_MEMORY. */
int ts_plan_slice_take(const ts_plan_atoms *atoms, const ts_survey *survey, ts_plan_slice *slice);
void ts_plan_slice_free(ts_plan_slice *slice);

/** Write the picture.  \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_plan_plot(const char *path, const char *title, int n, const ts_plan_result *result,
                 const ts_plan_slice *slice);

#endif
