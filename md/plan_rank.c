/* SPDX-License-Identifier: MIT
 *
 * One rank of a survey: the edges of its atoms, and what follows from them.  What it receives are
 * the senders that its edges name.  What it sends follows from its own edges, too: with (i, j) the
 * pair (j, i) is an edge, so the rank that owns j needs i, unless i's element does not send.  Where
 * elements do not send, edges are therefore found with them first and counted without. */
#include "md/plan_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "md/halo.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* The atoms of a rank and behind them its halo by Level 1. */
typedef struct neighbourhood {
  ts_lidx n, all;
  double (*x)[3];
  ts_gidx *gid;
  uint8_t *z; /* [all] */
  const ts_remote *remote;
} neighbourhood;

static void neighbourhood_free(neighbourhood *a)
{
  free(a->x);
  free(a->gid);
  free(a->z);
}

static int neighbourhood_make(const tsi_survey_work *w, int rank, const ts_remote *remote,
                              neighbourhood *out)
{
  const ts_shard *s = &w->shard[rank];
  const ts_lidx n = s->n;
  *out = (neighbourhood){.n = n, .all = n + remote->n, .remote = remote};
  TS_TRY(TSI_NEW(out->x, out->all));
  TS_TRY(TSI_NEW(out->gid, out->all));
  TS_TRY(TSI_NEW(out->z, out->all));
  memcpy(out->x, s->x, (size_t)n * sizeof *out->x);
  memcpy(out->gid, s->gid, (size_t)n * sizeof *out->gid);
  memcpy(out->z, s->tag, (size_t)n);
  if (remote->n > 0) {
    memcpy(out->x + n, remote->x, (size_t)remote->n * sizeof *out->x);
    memcpy(out->gid + n, remote->gid, (size_t)remote->n * sizeof *out->gid);
    memcpy(out->z + n, remote->tag, (size_t)remote->n);
  }
  return 0;
}

static int find_edges(const tsi_survey_work *w, const neighbourhood *a, int k, ts_edges **edges)
{
  const ts_stage_desc *d = &w->params->step.model->desc.stage[k];
  ts_search_params search;
  ts_search_params_init(&search);
  search.cutoff = d->cutoff;
  search.lower = d->lower;
  search.skin = w->params->step.skin;
  search.chunk = w->params->step.chunk;
  search.recycle = *edges;
  *edges = NULL;
  return ts_edges_build(&w->atoms->cell, a->n, a->all - a->n, (const double(*)[3])a->x, a->gid,
                        &search, edges);
}

/* What one stage of one rank comes to.  used [all], cleared; from, to [ranks], cleared: atoms by
 * partner; last [ranks]: scratch */
typedef struct tally {
  bool *used;
  int32_t *from, *to;
  ts_lidx *last;
} tally;

static int tally_make(const tsi_survey_work *w, const neighbourhood *a, tally *t)
{
  const int K = w->ranks.size;
  *t = (tally){.used = NULL};
  TS_TRY(TSI_NEW(t->used, a->all));
  TS_TRY(TSI_NEW(t->from, K));
  TS_TRY(TSI_NEW(t->to, K));
  TS_TRY(TSI_NEW(t->last, K));
  memset(t->last, -1, (size_t)K * sizeof *t->last);
  return 0;
}

static void tally_free(tally *t)
{
  free(t->used);
  free(t->from);
  free(t->to);
  free(t->last);
}

static void count_edges(const tsi_survey_work *w, const neighbourhood *a, int k, const ts_edges *e,
                        tally *t, ts_plan_stage_load *out)
{
  const bool *excluded = w->params->step.model->desc.stage[k].excluded;
  for (ts_lidx i = 0; i < a->n; i++) {
    bool boundary = false;
    for (int64_t at = e->row[i]; at < e->row[i + 1]; at++) {
      const ts_lidx j = e->sender[at];
      const bool counts = !excluded[a->z[j]];
      out->edges += counts;
      if (j < a->n) continue;
      const int32_t owner = a->remote->rank[j - a->n];
      if (counts) {
        out->remote++;
        boundary = true;
        t->used[j] = true;
      }
      if (t->last[owner] == i || excluded[a->z[i]]) continue;
      t->last[owner] = i;
      t->to[owner]++;
      out->sent++;
    }
    out->boundary += boundary;
  }
  for (ts_lidx j = a->n; j < a->all; j++)
    if (t->used[j]) {
      t->from[a->remote->rank[j - a->n]]++;
      out->halo++;
    }
  for (int r = 0; r < w->ranks.size; r++) {
    out->sources += t->from[r] > 0;
    out->targets += t->to[r] > 0;
  }
}

static int keep_need(const neighbourhood *a, const tally *t, ts_lidx halo, ts_plan_need *out)
{
  int32_t *rank = NULL;
  ts_lidx *index = NULL, k = 0;
  int status = TSI_NEW(rank, halo);
  if (!status) status = TSI_NEW(index, halo);
  for (ts_lidx j = 0; j < a->remote->n && !status; j++) {
    if (!t->used[a->n + j]) continue;
    rank[k] = a->remote->rank[j];
    index[k++] = a->remote->index[j];
  }
  *out = (ts_plan_need){.n = halo, .rank = rank, .index = index}; /* freed by the survey */
  return status;
}

/* The exchange with these partners: memory of its buffers, and what a step sends. */
static int count_exchange(const tsi_survey_work *w, int k, const tally *t, ts_plan_load *load)
{
  const ts_model *model = w->params->step.model;
  const ts_shape shape = ts_model_shape(model, 1);
  const ts_plan_stage_load *stage = &load->stage[k];
  tsi_halo h = {.layers = model->desc.stage[k].nlayers,
                .plan = {.sources = stage->sources, .targets = stage->targets}};
  tsi_carver carver = {.arena = NULL};
  int status = TSI_NEW(h.source, stage->sources), s = 0, p = 0;
  if (!status) status = TSI_NEW(h.target, stage->targets);
  for (int r = 0; r < w->ranks.size && !status; r++) {
    const size_t width = ts_kv_width(&shape) * model->real_size, place = 3 * sizeof(double);
    const size_t in = (size_t)t->from[r], out = (size_t)t->to[r];
    if (in) h.source[s++].n = t->from[r];
    if (out) h.target[p++].out.n = t->to[r];
    load->step_messages += (out > 0) + (in > 0) + h.layers * ((out > 0) + (in > 0));
    load->step_bytes += (int64_t)(out * place + ts_arena_round(in * place));
    load->step_bytes +=
        h.layers * (int64_t)(ts_arena_round(out * width) + ts_arena_round(in * width));
  }
  if (!status) tsi_halo_carve(&h, &carver, &shape, model->real_size, false);
  load->bytes += carver.bytes;
  free(h.source);
  free(h.target);
  return status;
}

static int look_at_stage(tsi_survey_work *w, const neighbourhood *a, int rank, int k,
                         ts_edges **edges, ts_plan_load *load)
{
  ts_plan_stage_load *out = &load->stage[k];
  tally t;
  int status = tally_make(w, a, &t);
  if (!status) status = find_edges(w, a, k, edges);
  if (!status) {
    count_edges(w, a, k, *edges, &t, out);
    status = count_exchange(w, k, &t, load);
  }
  if (!status && w->need[k]) status = keep_need(a, &t, out->halo, &w->need[k][rank]);
  tally_free(&t);
  return status;
}

int tsi_plan_look(tsi_survey_work *w, int rank, const ts_remote *remote)
{
  const ts_step_params *step = &w->params->step;
  const int stages = step->model->desc.nstages;
  ts_plan_load *load = w->load++;
  double edges_per_atom[TS_MAX_STAGES] = {0};
  ts_edges *edges = NULL;
  neighbourhood a;
  *load = (ts_plan_load){.rank = rank, .n = w->shard[rank].n};
  int status = neighbourhood_make(w, rank, remote, &a);
  for (int k = 0; k < stages && !status; k++) {
    status = look_at_stage(w, &a, rank, k, &edges, load);
    edges_per_atom[k] = (double)load->stage[k].edges / load->n;
  }
  if (!status) load->bytes += ts_step_memory(step, load->n, edges_per_atom);
  ts_edges_destroy(&edges);
  neighbourhood_free(&a);
  return status;
}

int tsi_plan_weigh(tsi_survey_work *w, int rank, const ts_remote *remote)
{
  const ts_model_desc *desc = &w->params->step.model->desc;
  ts_edges *edges = NULL;
  neighbourhood a;
  double *weight = w->weight + (w->shard[rank].gid - w->atoms->gid);
  int status = neighbourhood_make(w, rank, remote, &a);
  for (ts_lidx i = 0; i < a.n && !status; i++)
    weight[i] = 1;
  for (int k = 0; k < desc->nstages && !status; k++) {
    status = find_edges(w, &a, k, &edges);
    for (ts_lidx i = 0; i < a.n && !status; i++)
      for (int64_t at = edges->row[i]; at < edges->row[i + 1]; at++)
        if (!desc->stage[k].excluded[a.z[edges->sender[at]]]) weight[i] += desc->stage[k].nlayers;
  }
  ts_edges_destroy(&edges);
  neighbourhood_free(&a);
  return status;
}
