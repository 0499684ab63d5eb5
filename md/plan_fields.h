/* SPDX-License-Identifier: MIT
 *
 * Every number of a survey with its name, once: for CSV and JSON.  And the numbers that are made of
 * others. */
#ifndef TS_PLAN_FIELDS_H
#define TS_PLAN_FIELDS_H

#include "md/plan_survey.h"
#include "md/plan_time.h"

/** Reals of an atom of the halo, for each layer and direction. */
typedef struct ts_plan_width {
  size_t projected;   /**< key and value: what is sent */
  size_t unprojected; /**< two features, if receivers projected what key and value are made of */
  size_t real_size;
} ts_plan_width;

ts_plan_width ts_plan_width_of(const ts_model *model);

/** Numbers of the ranks whose edges were found; the last three are of all stages together. */
typedef enum ts_plan_quantity_id {
  TS_PLAN_SOURCES,
  TS_PLAN_TARGETS,
  TS_PLAN_HALO,
  TS_PLAN_SENT,
  TS_PLAN_EDGES,
  TS_PLAN_BOUNDARY,
  TS_PLAN_MESSAGES,
  TS_PLAN_BYTES,
  TS_PLAN_MEMORY,
  TS_PLAN_QUANTITIES
} ts_plan_quantity_id;

typedef struct ts_plan_quantity {
  const char *name;
  double (*value)(const ts_plan_load *load, int stage);
} ts_plan_quantity;

extern const ts_plan_quantity ts_plan_quantities[TS_PLAN_QUANTITIES];

ts_plan_spread ts_plan_quantity_spread(const ts_survey *survey, ts_plan_quantity_id which,
                                       int stage);

/** 1 - 9 r / (8 L): first-order part of local senders of a cube of volume L^3. */
double ts_plan_local_formula(const ts_survey *survey, double reach);

/** 2 sqrt(2 m ln K): spread of counts that K equal volumes of m atoms each have by chance. */
double ts_plan_grid_formula(const ts_survey *survey);

/** Where names and numbers go; groups nest. */
typedef struct ts_plan_sink {
  void *context;
  void (*open)(void *context, const char *name);
  void (*close)(void *context);
  void (*number)(void *context, const char *name, double value);
  void (*text)(void *context, const char *name, const char *value);
} ts_plan_sink;

/** \param [in] time  NULL: none were asked for. */
void ts_plan_fields(const ts_plan_params *params, const ts_survey *survey, const ts_plan_time *time,
                    const ts_plan_sink *sink);

#endif
