/* SPDX-License-Identifier: MIT
 *
 * Surveys on the screen and in files. */
#ifndef TS_PLAN_PRINT_H
#define TS_PLAN_PRINT_H

#include <stdio.h>

#include "md/plan_fields.h"

/** One number of ranks and one curve. */
typedef struct ts_plan_result {
  ts_plan_params params;
  ts_survey *survey;
  ts_plan_time time; /**< if times were asked for */
} ts_plan_result;

/** Tables for a person.  \param [in] timed  The results have times. */
void ts_plan_print(FILE *file, int n, const ts_plan_result *result, bool timed);

/** One row a result, names joined by dots.  \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_plan_write_csv(const char *path, int n, const ts_plan_result *result, bool timed);

/** {"system": ..., "results": [...]}, names nested.  \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_plan_write_json(const char *path, const char *system, int n, const ts_plan_result *result,
                       bool timed);

#endif
