/* SPDX-License-Identifier: MIT
 *
 * A survey: cut, count Level 1 with every scheme, find the edges of all or some ranks, plan.
 * Ranks are visited in batches whose halos fit into memory together; edges live one rank at a time
 * (plan_rank.c).  Who is looked at where not everybody can be follows from the numbers of ranks and
 * atoms alone, so a survey says the same whenever it is repeated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "md/plan_rank.h"
#include "md/plan_shape.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum {
  BATCH_ATOMS = 1 << 24,   /* of halos that are held at a time */
  SEARCHED_ATOMS = 400000, /* about as many atoms' edges are found without being asked for */
  LEAST_SAMPLE = 8
};

void ts_plan_model(const ts_model_desc *desc, bool is_double, ts_model *model)
{
  *model = (ts_model){.desc = *desc, .is_double = is_double};
  model->real_size = is_double ? sizeof(double) : sizeof(float);
  model->head.merge = desc->merge;
  for (int k = 0; k < desc->nstages; k++)
    for (int l = 0; l < desc->stage[k].nlayers; l++)
      model->layer[k][l].order = desc->stage[k].order[l];
}

/* ---- the cut ---- */

static void set_shards(tsi_survey_work *w, const int64_t *first)
{
  for (int r = 0; r < w->ranks.size; r++)
    w->shard[r] = (ts_shard){.n = (ts_lidx)(first[r + 1] - first[r]),
                             .x = (const double(*)[3])w->atoms->x + first[r],
                             .gid = w->atoms->gid + first[r],
                             .tag = w->atoms->z + first[r]};
}

/* New shards by the cut of a run, from the present ones; `weight` [atoms] or NULL.  The atoms are
 * in the order that is cut, so owners have to ascend. */
static int cut(tsi_survey_work *w, const double *weight)
{
  const int ranks = w->ranks.size;
  const ts_lidx n = w->atoms->n;
  const uint64_t **key = NULL;
  const double **weights = NULL;
  int32_t *owner = NULL, **owners = NULL;
  int64_t *first = NULL;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(key, ranks), done);
  TS_TRY_GOTO(status, TSI_NEW(weights, ranks), done);
  TS_TRY_GOTO(status, TSI_NEW(owners, ranks), done);
  TS_TRY_GOTO(status, TSI_NEW(owner, n), done);
  TS_TRY_GOTO(status, TSI_NEW(first, ranks + 1), done);
  for (int r = 0; r < ranks; r++) {
    const ptrdiff_t at = w->shard[r].gid - w->atoms->gid;
    key[r] = w->atoms->key + at;
    owners[r] = owner + at;
    weights[r] = weight ? weight + at : NULL;
  }
  TS_TRY_GOTO(status,
              ts_partition_cut(&w->ranks, &w->params->step.partition, w->shard, key,
                               weight ? weights : NULL, owners),
              done);
  for (ts_lidx i = 0; i < n; i++) {
    if (i > 0 && owner[i] < owner[i - 1]) {
      status = tsi_fail(TS_ERR_SIMULATION, "the cut is not an interval of the curve at atom %lld",
                        (long long)w->atoms->gid[i] + 1);
      goto done;
    }
    first[owner[i] + 1]++;
  }
  for (int r = 0; r < ranks; r++)
    first[r + 1] += first[r];
  set_shards(w, first);
done:
  free(key);
  free(weights);
  free(owners);
  free(owner);
  free(first);
  return status;
}

/* Any shares do to start from: the cut does not depend on where atoms are. */
static int cut_evenly(tsi_survey_work *w)
{
  int64_t *first = NULL;
  const int ranks = w->ranks.size;
  TS_TRY(TSI_NEW(first, ranks + 1));
  for (int r = 0; r <= ranks; r++)
    first[r] = (int64_t)w->atoms->n * r / ranks;
  set_shards(w, first);
  free(first);
  return cut(w, NULL);
}

/* ---- Level 1 ---- */

static const ts_plan_spread no_spread = {INFINITY, 0, -INFINITY};

static int count_scheme(tsi_survey_work *w, ts_level1_scheme which, ts_plan_scheme *out)
{
  const int K = w->ranks.size;
  ts_level1_params params = w->params->step.level1;
  ts_level1_stats *stats = NULL;
  ts_traffic *traffic = NULL;
  ts_ranks ranks = w->ranks;
  int status;
  params.scheme = which;
  TS_TRY_GOTO(status, TSI_NEW(stats, K), done);
  TS_TRY_GOTO(status, TSI_NEW(traffic, K), done);
  ranks.traffic = traffic;
  TS_TRY_GOTO(
      status,
      ts_level1_count(&ranks, &params, &w->atoms->cell, w->reach, w->shard, NULL, NULL, stats),
      done);
  *out = (ts_plan_scheme){true,      no_spread, no_spread, no_spread,
                          no_spread, no_spread, no_spread, no_spread};
  for (int r = 0; r < K; r++) {
    const ts_level1_stats *s = &stats[r];
    tsi_spread_add(&out->asked, K, s->sources);
    tsi_spread_add(&out->peers, K, s->peers);
    tsi_spread_add(&out->candidates, K, (double)s->pool);
    tsi_spread_add(&out->whole, K, (double)s->full);
    tsi_spread_add(&out->row, K, (double)s->metadata);
    tsi_spread_add(&out->messages, K, (double)traffic[r].messages);
    tsi_spread_add(&out->bytes, K, (double)traffic[r].bytes);
    w->halo[r] = s->atoms;
  }
done:
  free(stats);
  free(traffic);
  return status;
}

/* Boxes last: they find the halos below. */
static int count_schemes(tsi_survey_work *w, ts_survey *out)
{
  for (int s = TS_PLAN_SCHEMES - 1; s >= 0; s--)
    if (w->params->scheme[s] && s != TS_LEVEL1_BOX)
      TS_TRY(count_scheme(w, (ts_level1_scheme)s, &out->scheme[s]));
  ts_plan_scheme box;
  TS_TRY(count_scheme(w, TS_LEVEL1_BOX, &box));
  if (w->params->scheme[TS_LEVEL1_BOX]) out->scheme[TS_LEVEL1_BOX] = box;
  return 0;
}

/* ---- ranks, one by one ---- */

typedef int (*visit)(tsi_survey_work *w, int rank, const ts_remote *remote);

/* Where the next batch ends: as many wanted ranks as have halos of BATCH_ATOMS, at least one. */
static int mark_batch(const tsi_survey_work *w, const bool *wanted, int first, bool *batch)
{
  int64_t room = 0;
  int r = first;
  memset(batch, 0, (size_t)w->ranks.size * sizeof *batch);
  for (; r < w->ranks.size && (room == 0 || room + w->halo[r] <= BATCH_ATOMS); r++)
    if (wanted[r]) {
      batch[r] = true;
      room += w->halo[r] + 1;
    }
  return r;
}

static int visit_ranks(tsi_survey_work *w, const bool *wanted, visit what)
{
  const int K = w->ranks.size;
  const ts_level1_params params = {.scheme = TS_LEVEL1_BOX, .boxes = 1};
  ts_remote *remote = NULL;
  bool *batch = NULL;
  int status = TSI_NEW(remote, K);
  if (!status) status = TSI_NEW(batch, K);
  for (int first = 0, last; first < K && !status; first = last) {
    last = mark_batch(w, wanted, first, batch);
    status = ts_level1_count(&w->ranks, &params, &w->atoms->cell, w->reach, w->shard, batch, remote,
                             NULL);
    for (int r = first; r < last && !status; r++)
      if (batch[r]) {
        status = what(w, r, &remote[r]);
        ts_remote_free(&remote[r]);
      }
    for (int r = first; r < last && status; r++)
      ts_remote_free(&remote[r]);
  }
  free(remote);
  free(batch);
  return status;
}

/* Cut once more, by the edges that the first cut has found: what a run's second partition does. */
static int cut_by_edges(tsi_survey_work *w)
{
  bool *all = NULL;
  int status = TSI_NEW(all, w->ranks.size);
  if (!status) status = TSI_NEW(w->weight, w->atoms->n);
  for (int r = 0; r < w->ranks.size && !status; r++)
    all[r] = true;
  if (!status) {
    ts_plan_scheme box;
    status = count_scheme(w, TS_LEVEL1_BOX, &box); /* sizes of the halos */
  }
  if (!status) status = visit_ranks(w, all, tsi_plan_weigh);
  if (!status) status = cut(w, w->weight);
  free(all);
  free(w->weight);
  w->weight = NULL;
  return status;
}

/* `count` of K ranks, one by chance in each of as many even stretches: every n-th rank would have
 * the same place in the curve's pattern.  The first and the last are always among them. */
static void choose(int K, int count, bool *wanted)
{
  uint64_t state = 1;
  for (int i = 0; i < count; i++) {
    const int64_t low = (int64_t)K * i / count, high = (int64_t)K * (i + 1) / count;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const int64_t at = low + (int64_t)(state >> 33) % (high - low);
    wanted[i == 0 ? 0 : i == count - 1 ? K - 1 : at] = true;
  }
}

static int sample_size(const ts_plan_params *p, ts_lidx atoms)
{
  const int64_t each = (atoms + p->ranks - 1) / p->ranks, some = SEARCHED_ATOMS / each;
  const int64_t wish = p->sample > 0 ? p->sample : some > LEAST_SAMPLE ? some : LEAST_SAMPLE;
  return wish < p->ranks ? (int)wish : p->ranks;
}

/* The plan that the needs of all ranks make; both sides of it have been counted apart. */
static int make_plan(const tsi_survey_work *w, ts_survey *out, int k)
{
  TS_TRY(TSI_NEW(out->plan[k], out->ranks));
  TS_TRY(ts_plan_build(&w->ranks, w->need[k], out->plan[k]));
  for (int r = 0; r < out->ranks; r++) {
    const ts_plan *p = &out->plan[k][r];
    const ts_plan_stage_load *l = &out->load[r].stage[k];
    if (p->sources != l->sources || p->targets != l->targets || p->first[p->sources] != l->halo ||
        p->start[p->targets] != l->sent)
      return tsi_fail(
          TS_ERR_SIMULATION,
          "rank %d, stage %d: the plan sends %d atoms to %d ranks, by its edges %d to %d", r, k + 1,
          p->start[p->targets], p->targets, l->sent, l->targets);
  }
  return 0;
}

static int look_at_ranks(tsi_survey_work *w, ts_survey *out)
{
  bool *wanted = NULL;
  out->sampled = sample_size(w->params, w->atoms->n);
  int status = TSI_NEW(out->load, out->sampled);
  if (!status) status = TSI_NEW(wanted, out->ranks);
  for (int k = 0; k < out->stages && !status && out->sampled == out->ranks; k++)
    status = TSI_NEW(w->need[k], out->ranks);
  if (!status) {
    choose(out->ranks, out->sampled, wanted);
    w->load = out->load;
    status = visit_ranks(w, wanted, tsi_plan_look);
  }
  for (int k = 0; k < out->stages && !status && w->need[k]; k++)
    status = make_plan(w, out, k);
  free(wanted);
  return status;
}

/* ---- all of it ---- */

static int fill(tsi_survey_work *w, ts_survey *out)
{
  const ts_plan_params *p = w->params;
  TS_TRY(TSI_NEW(w->shard, p->ranks));
  TS_TRY(TSI_NEW(w->halo, p->ranks));
  TS_TRY(cut_evenly(w));
  if (p->step.weighted) TS_TRY(cut_by_edges(w));
  out->count = no_spread;
  TS_TRY(TSI_NEW(out->first, p->ranks + 1));
  for (int r = 0; r < p->ranks; r++)
    out->first[r + 1] = out->first[r] + w->shard[r].n;
  for (int r = 0; r < p->ranks; r++)
    tsi_spread_add(&out->count, p->ranks, w->shard[r].n);
  TS_TRY(tsi_plan_boxes(w->atoms, p->ranks, w->shard, &out->box_ratio, &out->owned_volume));
  TS_TRY(tsi_plan_grid(w->atoms, p->ranks, out->grid, &out->grid_spread));
  TS_TRY(count_schemes(w, out));
  return look_at_ranks(w, out);
}

static void work_free(tsi_survey_work *w)
{
  for (int k = 0; k < TS_MAX_STAGES; k++) {
    for (int r = 0; w->need[k] && r < w->ranks.size; r++) {
      free((void *)(uintptr_t)w->need[k][r].rank);
      free((void *)(uintptr_t)w->need[k][r].index);
    }
    free(w->need[k]);
  }
  free(w->shard);
  free(w->halo);
}

int ts_survey_create(const ts_plan_params *params, const ts_plan_atoms *atoms, ts_survey **out)
{
  const ts_model_desc *desc = &params->step.model->desc;
  tsi_survey_work w = {.params = params, .atoms = atoms, .ranks = ts_ranks_virtual(params->ranks)};
  *out = NULL;
  TS_TRY(TSI_NEW(*out, 1));
  **out = (ts_survey){.ranks = params->ranks,
                      .stages = desc->nstages,
                      .atoms = atoms->n,
                      .curve = params->step.partition.curve};
  for (int k = 0; k < desc->nstages; k++)
    w.reach = fmax(w.reach, desc->stage[k].cutoff + params->step.skin);
  const int status = fill(&w, *out);
  work_free(&w);
  if (status) ts_survey_destroy(out);
  return status;
}

void ts_survey_destroy(ts_survey **survey)
{
  ts_survey *s = *survey;
  if (!s) return;
  for (int k = 0; k < TS_MAX_STAGES; k++) {
    for (int r = 0; s->plan[k] && r < s->ranks; r++)
      ts_plan_free(&s->plan[k][r]);
    free(s->plan[k]);
  }
  free(s->first);
  free(s->load);
  free(s);
  *survey = NULL;
}

ts_plan_spread ts_survey_spread(const ts_survey *s, int stage,
                                double (*value)(const ts_plan_load *load, int stage))
{
  ts_plan_spread spread = no_spread;
  for (int i = 0; i < s->sampled; i++)
    tsi_spread_add(&spread, s->sampled, value(&s->load[i], stage));
  return spread;
}

double ts_survey_local(const ts_survey *s, int stage)
{
  double edges = 0, remote = 0;
  for (int i = 0; i < s->sampled; i++) {
    edges += (double)s->load[i].stage[stage].edges;
    remote += (double)s->load[i].stage[stage].remote;
  }
  return edges > 0 ? 1 - remote / edges : 1;
}
