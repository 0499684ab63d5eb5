/* SPDX-License-Identifier: MIT
 *
 * The words of `tessera plan`, checked. */
#ifndef TS_PLAN_WORDS_H
#define TS_PLAN_WORDS_H

#include "md/plan_survey.h"

enum { TS_PLAN_MOST_RANKS = 65536, TS_PLAN_LIST = 64 };

typedef struct ts_plan_words {
  const char *structure; /**< NULL: generated */
  int repeat[3];
  int kind;                /**< ts_plan_kind */
  int64_t atoms, per_rank; /**< of a generated system, one of them; 0: not given */
  double density;
  int grow; /**< axes */
  int64_t seed;
  int nranks, ranks[TS_PLAN_LIST];
  int normalization;
  bool curve[2], scheme[TS_PLAN_SCHEMES]; /**< which ones */
  int64_t boxes;
  double bin;
  const char *model;  /**< NULL: the published widths */
  ts_model_desc desc; /**< of the model */
  int is_double;
  double skin;
  int64_t chunk;
  int weighted;
  double slack;
  int64_t sample, workers; /**< sample 0: automatic */
  const char *csv, *json, *plot;
  const char *costs;         /**< NULL: no times */
  double latency, bandwidth; /**< [us], [GB/s] */
  double share;              /**< ranks that take turns on a core */
  int64_t interval;          /**< steps between rebuilds */
} ts_plan_words;

extern const char ts_plan_usage[];

/** Parse the words behind `plan`; reads a description that they name.
 * \return 0; TS_ERR_INPUT naming option, value and what was expected. */
int ts_plan_words_parse(int argc, char **argv, ts_plan_words *out);

/** Words of what has a number. */
const char *ts_plan_kind_word(int kind);
const char *ts_plan_curve_word(int curve);
const char *ts_plan_normalization_word(int normalization);
const char *ts_plan_scheme_word(int scheme);

#endif
