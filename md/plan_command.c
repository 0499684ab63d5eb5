/* SPDX-License-Identifier: MIT
 *
 * `tessera plan`: one survey for each number of ranks and curve, then what was asked to be printed
 * and written.  A system whose size does not follow the ranks is made once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md/command.h"
#include "md/plan_plot.h"
#include "md/plan_print.h"
#include "md/plan_words.h"
#include "md/report.h"
#include "runtime/error.h"
#include "runtime/log.h"

enum { MOST_RESULTS = 2 * TS_PLAN_LIST };

typedef struct planning {
  ts_plan_words words;
  ts_model model; /* sizes only */
  ts_plan_costs costs;
  ts_plan_atoms atoms;
  char system[512]; /* in words */
  int n;
  ts_plan_result result[MOST_RESULTS];
  ts_plan_slice slice;
} planning;

static int make_atoms(planning *p, int ranks)
{
  const ts_plan_words *w = &p->words;
  ts_plan_atoms_free(&p->atoms);
  if (w->structure) return ts_plan_atoms_read(w->structure, w->repeat, &p->atoms);
  const int64_t atoms = w->atoms ? w->atoms : w->per_rank * ranks;
  if (atoms > INT32_MAX)
    return tsi_fail(TS_ERR_INPUT,
                    "plan: %lld atoms on each of %d ranks; expected at most %d in all",
                    (long long)w->per_rank, ranks, INT32_MAX);
  const ts_plan_recipe recipe = {.kind = (ts_plan_kind)w->kind,
                                 .atoms = (ts_lidx)atoms,
                                 .density = w->density,
                                 .units = ranks,
                                 .grow = w->grow,
                                 .seed = (uint64_t)w->seed};
  return ts_plan_atoms_generate(&recipe, &p->atoms);
}

/* Does the system stay as it is from one number of ranks to the next? */
static bool keeps(const ts_plan_words *w)
{
  return w->structure || (w->atoms && w->grow == 3);
}

static void describe(planning *p)
{
  const ts_plan_words *w = &p->words;
  char *at = p->system;
  size_t room = sizeof p->system;
  if (w->structure)
    snprintf(at, room, "%s, repeated %d x %d x %d", w->structure, w->repeat[0], w->repeat[1],
             w->repeat[2]);
  else if (w->atoms)
    snprintf(at, room, "%s, %lld atoms, %g per Å³, seed %lld", ts_plan_kind_word(w->kind),
             (long long)w->atoms, w->density, (long long)w->seed);
  else
    snprintf(at, room, "%s, %lld atoms a rank, %g per Å³, seed %lld", ts_plan_kind_word(w->kind),
             (long long)w->per_rank, w->density, (long long)w->seed);
  for (int k = 0; k < w->desc.nstages; k++) {
    const size_t used = strlen(at);
    snprintf(at + used, room - used, "%s %g Å (layers: %d)", k ? "," : "; cutoffs",
             w->desc.stage[k].cutoff, w->desc.stage[k].nlayers);
  }
  const size_t used = strlen(at);
  snprintf(at + used, room - used, ", skin %g Å, normalized by %s, cut by %s", w->skin,
           w->normalization == TS_NORMALIZE_LONGEST ? "the longest axis" : "axes",
           w->weighted ? "edges" : "atoms");
}

static ts_plan_params params_of(const planning *p, int ranks, int curve)
{
  const ts_plan_words *w = &p->words;
  ts_plan_params params = {.ranks = ranks, .sample = (int)w->sample};
  ts_step_params_init(&params.step);
  params.step.model = &p->model;
  params.step.workers = (int)w->workers;
  params.step.skin = w->skin;
  params.step.chunk = (int)w->chunk;
  params.step.partition = (ts_partition_params){.curve = (ts_curve)curve,
                                                .normalization = (ts_normalization)w->normalization,
                                                .slack = w->slack};
  params.step.weighted = w->weighted;
  params.step.level1.boxes = (int)w->boxes;
  params.step.level1.bin = w->bin;
  memcpy(params.scheme, w->scheme, sizeof params.scheme);
  return params;
}

static int survey_one(planning *p, int ranks, int curve)
{
  const ts_plan_words *w = &p->words;
  const double began = ts_clock();
  ts_plan_result *r = &p->result[p->n];
  if (p->atoms.n < ranks)
    return tsi_fail(TS_ERR_INPUT, "plan: %d atoms on %d ranks; expected at least one atom a rank",
                    p->atoms.n, ranks);
  r->params = params_of(p, ranks, curve);
  TS_TRY(ts_plan_atoms_sort(&p->atoms, &r->params.step.partition));
  TS_TRY(ts_survey_create(&r->params, &p->atoms, &r->survey));
  p->n++;
  if (w->costs) {
    const ts_plan_network net = {.latency = w->latency * 1e-6,
                                 .bandwidth = w->bandwidth * 1e9,
                                 .workers = (int)w->workers,
                                 .share = w->share,
                                 .interval = (int)w->interval};
    ts_plan_predict(&r->params, r->survey, &p->costs, &net, &r->time);
  }
  if (w->plot) TS_TRY(ts_plan_slice_take(&p->atoms, r->survey, &p->slice));
  ts_log(TS_LOG_INFO, "plan       %d atoms on %d ranks, %s: %.1f s", p->atoms.n, ranks,
         ts_plan_curve_word(curve), ts_clock() - began);
  return 0;
}

static int survey_all(planning *p)
{
  const ts_plan_words *w = &p->words;
  for (int i = 0; i < w->nranks; i++) {
    if (i == 0 || !keeps(w)) TS_TRY(make_atoms(p, w->ranks[i]));
    for (int curve = 0; curve < 2; curve++)
      if (w->curve[curve]) TS_TRY(survey_one(p, w->ranks[i], curve));
  }
  return 0;
}

static int put_out(const planning *p)
{
  const ts_plan_words *w = &p->words;
  const bool timed = w->costs;
  printf("%s\n", p->system);
  ts_plan_print(stdout, p->n, p->result, timed);
  if (w->csv) TS_TRY(ts_plan_write_csv(w->csv, p->n, p->result, timed));
  if (w->json) TS_TRY(ts_plan_write_json(w->json, p->system, p->n, p->result, timed));
  if (w->plot) TS_TRY(ts_plan_plot(w->plot, p->system, p->n, p->result, &p->slice));
  return 0;
}

int ts_plan_command(int argc, char **argv)
{
  static planning p;
  TS_TRY(ts_plan_words_parse(argc, argv, &p.words));
  if (p.words.costs) TS_TRY(ts_plan_costs_read(p.words.costs, &p.costs));
  ts_plan_model(&p.words.desc, p.words.is_double, &p.model);
  describe(&p);
  int status = survey_all(&p);
  if (!status) status = put_out(&p);
  for (int i = 0; i < p.n; i++)
    ts_survey_destroy(&p.result[i].survey);
  ts_plan_slice_free(&p.slice);
  ts_plan_atoms_free(&p.atoms);
  return status;
}
