/* SPDX-License-Identifier: MIT
 *
 * Level 1 from survey to halo: agree on the space, publish a row per rank, answer
 * (level1_answer.c). A source decides from the rows alone, so there are no requests; only `routed`,
 * where a rank does not see all rows, sends its own to the sources that it was told.  Each failure
 * that one rank may have alone is agreed upon before the next exchange. */
#include "neighbor/level1.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "neighbor/array.h"
#include "neighbor/level1_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* ---- scheme all ---- */

static size_t all_row_size(const ts_level1_params *params)
{
  (void)params;
  return sizeof(int64_t);
}

static void all_publish(const tsi_space *space, const ts_level1_params *params, ts_lidx n,
                        const double (*t)[3], void *row)
{
  (void)space, (void)params, (void)t;
  *(int64_t *)row = n;
}

static bool all_asks(const tsi_space *space, const ts_level1_params *params, const void *asker,
                     const void *source, ts_level1_stats *stats)
{
  (void)space, (void)params;
  const bool some = *(const int64_t *)asker > 0 && *(const int64_t *)source > 0;
  if (stats) stats->sources += some;
  return some;
}

static void all_clip(const tsi_space *space, const ts_level1_params *params, const void *asker,
                     const void *source, ts_lidx n, const double (*t)[3], uint8_t *images)
{
  (void)space, (void)params, (void)asker, (void)source, (void)t;
  memset(images, 1, (size_t)n);
}

static const tsi_level1_ops everything = {.whole = true,
                                          .row_size = all_row_size,
                                          .publish = all_publish,
                                          .asks = all_asks,
                                          .clip = all_clip};

static const tsi_level1_ops *const ops_of[] = {[TS_LEVEL1_ALL] = &everything,
                                               [TS_LEVEL1_BOX] = &tsi_level1_boxes,
                                               [TS_LEVEL1_BOXES] = &tsi_level1_boxes,
                                               [TS_LEVEL1_BINS] = &tsi_level1_bins,
                                               [TS_LEVEL1_ROUTED] = &tsi_level1_boxes};

void ts_level1_params_init(ts_level1_params *params)
{
  *params = (ts_level1_params){.scheme = TS_LEVEL1_BOX, .boxes = 8, .seed = 1};
}

static int check_params(const ts_level1_params *p, double reach)
{
  if ((unsigned)p->scheme > TS_LEVEL1_ROUTED)
    return tsi_fail(TS_ERR_ARG, "level 1: scheme %d is unknown", (int)p->scheme);
  if (p->boxes < 1 || p->boxes > TS_LEVEL1_MOST_BOXES)
    return tsi_fail(TS_ERR_ARG, "level 1: %d boxes, expected 1 to %d", p->boxes,
                    TS_LEVEL1_MOST_BOXES);
  if (!(p->bin >= 0 && p->bin < 1e12))
    return tsi_fail(TS_ERR_ARG, "level 1: bins of %g Å, expected zero or a positive length",
                    p->bin);
  if (!(reach > 0 && reach < 1e12))
    return tsi_fail(TS_ERR_ARG, "level 1: a reach of %g Å, expected a positive length", reach);
  return 0;
}

/* ---- survey: one space for all ranks ---- */

/* Ends of the fractions and the largest coordinate of the hosted atoms. */
static int survey_shard(const tsi_level1 *l, const ts_shard *shard, double most[7])
{
  for (ts_lidx i = 0; i < shard->n; i++) {
    double t[3];
    tsi_space_place(&l->space, shard->x[i], t);
    for (int k = 0; k < 3; k++) {
      if (!(fabs(shard->x[i][k]) <= 1e15))
        return tsi_fail(
            TS_ERR_SIMULATION, "atom %lld at (%g, %g, %g) Å: not finite, or beyond 1e15 Å",
            (long long)shard->gid[i] + 1, shard->x[i][0], shard->x[i][1], shard->x[i][2]);
      most[k] = fmax(most[k], -t[k]);
      most[3 + k] = fmax(most[3 + k], t[k]);
      most[6] = fmax(most[6], fabs(shard->x[i][k]));
    }
  }
  return 0;
}

/* Each fraction is some roundings of the coordinates off; 2^-46 of them is ample. */
static void set_reach(tsi_level1 *l, double size)
{
  tsi_space *s = &l->space;
  for (int k = 0; k < 3; k++)
    for (int m = 0; m < 3; m++)
      size += fabs(s->box.h[k][m]);
  for (int k = 0; k < 3; k++) {
    s->reach[k] = l->reach * (1 + 1e-6) / s->box.height[k] +
                  ldexp(size, -46) *
                      (fabs(s->box.inv[0][k]) + fabs(s->box.inv[1][k]) + fabs(s->box.inv[2][k]));
  }
}

static int survey(tsi_level1 *l)
{
  double most[7] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 0};
  tsi_lattice lattice;
  int status = 0;
  TS_TRY(tsi_lattice_reduce(l->cell, &lattice));
  l->space.box = lattice.box;
  for (int h = 0; h < l->ranks->hosted && !status; h++)
    status = survey_shard(l, &l->shard[h], most);
  TS_TRY(tsi_ranks_agree(l->ranks, status));
  if (l->ranks->comm != MPI_COMM_NULL)
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 7, MPI_DOUBLE, MPI_MAX, l->ranks->comm));
  for (int k = 0; k < 3; k++) {
    l->space.low[k] = -most[k];
    l->space.high[k] = most[3 + k];
  }
  set_reach(l, most[6]);
  if (l->ops->prepare) l->ops->prepare(l->params, l->reach, &l->space);
  return 0;
}

/* ---- publish ---- */

void tsi_level1_place(tsi_level1 *l, int h)
{
  for (ts_lidx i = 0; i < l->shard[h].n; i++)
    tsi_space_place(&l->space, l->shard[h].x[i], l->t[i]);
}

static int make_room(tsi_level1 *l)
{
  const int rows = l->sources ? l->ranks->hosted : l->ranks->size;
  ts_lidx most = 0;
  for (int h = 0; h < l->ranks->hosted; h++)
    if (l->shard[h].n > most) most = l->shard[h].n;
  l->row = l->ops->row_size(l->params);
  TS_TRY(tsi_alloc((size_t)rows, l->row, (void **)&l->rows));
  TS_TRY(TSI_ARRAY(l->t, most));
  return TSI_NEW(l->images, most);
}

static int gather_rows(tsi_level1 *l)
{
  const ts_ranks *r = l->ranks;
  for (int h = 0; h < r->hosted; h++) {
    l->metadata[h] = (int64_t)l->row;
    if (!r->traffic) continue;
    r->traffic[h].messages += r->size - 1;
    r->traffic[h].bytes += (int64_t)l->row * (r->size - 1);
  }
  if (r->comm != MPI_COMM_NULL)
    TS_TRY_MPI(
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, l->rows, (int)l->row, MPI_BYTE, r->comm));
  return 0;
}

/* To each source of a hosted rank but itself, the rank's row. */
static int list_requests(const tsi_level1 *l, ts_parcels *out)
{
  int64_t count = 0;
  for (int h = 0; h < l->ranks->hosted; h++)
    count += l->sources[h].n;
  TS_TRY(ts_parcels_create(l->ranks, count, count, l->row, out));
  int64_t at = 0;
  for (int h = 0; h < l->ranks->hosted; h++) {
    for (int i = 0; i < l->sources[h].n; i++) {
      if (l->sources[h].rank[i] == l->ranks->first + h) continue;
      memcpy(out->data + (size_t)at * l->row, tsi_level1_row(l, h), l->row);
      out->peer[at++] = l->sources[h].rank[i];
      out->start[at] = at;
    }
    out->first[h + 1] = at;
  }
  return 0;
}

static int route_rows(tsi_level1 *l)
{
  ts_route_params route;
  ts_ranks counted = *l->ranks;
  ts_traffic *traffic = NULL;
  ts_parcels requests = {0};
  int status;
  ts_route_params_init(&route, 1);
  route.mode = l->params->route;
  route.seed = l->params->seed;
  TS_TRY(tsi_ranks_agree(l->ranks, TSI_NEW(traffic, counted.hosted)));
  counted.traffic = traffic;
  TS_TRY_GOTO(status,
              ts_level1_routed(&counted, &route, l->cell, l->reach, 0, l->shard, l->sources, NULL),
              done);
  TS_TRY_GOTO(status, tsi_ranks_agree(l->ranks, list_requests(l, &requests)), done);
  TS_TRY_GOTO(status, ts_sparse_exchange(&counted, l->row, &requests, &l->asked), done);
  for (int h = 0; h < counted.hosted; h++) {
    l->metadata[h] = traffic[h].bytes;
    if (!l->ranks->traffic) continue;
    l->ranks->traffic[h].messages += traffic[h].messages;
    l->ranks->traffic[h].bytes += traffic[h].bytes;
  }
done:
  ts_parcels_free(&requests);
  free(traffic);
  return status;
}

static int publish(tsi_level1 *l)
{
  TS_TRY(tsi_ranks_agree(l->ranks, make_room(l)));
  for (int h = 0; h < l->ranks->hosted; h++) {
    tsi_level1_place(l, h);
    l->ops->publish(&l->space, l->params, l->shard[h].n, (const double(*)[3])l->t,
                    tsi_level1_row(l, h));
  }
  return l->sources ? route_rows(l) : gather_rows(l);
}

static int find(tsi_level1 *l, ts_remote *out, ts_level1_stats *stats)
{
  TS_TRY(survey(l));
  TS_TRY(publish(l));
  return tsi_level1_answer(l, out, stats);
}

static void release(tsi_level1 *l)
{
  for (int h = 0; l->sources && h < l->ranks->hosted; h++)
    free(l->sources[h].rank);
  free(l->sources);
  ts_parcels_free(&l->asked);
  free(l->metadata);
  free(l->tally);
  free(l->rows);
  free(l->t);
  free(l->images);
}

/* Both calls: `l` has what they were given. */
static int start(tsi_level1 *l, ts_remote *out, ts_level1_stats *stats)
{
  const int hosted = l->ranks->hosted;
  if (out) memset(out, 0, (size_t)hosted * sizeof *out);
  TS_TRY(check_params(l->params, l->reach));
  l->ops = ops_of[l->params->scheme];
  int status = TSI_NEW(l->metadata, hosted);
  if (!status && l->params->scheme == TS_LEVEL1_ROUTED) status = TSI_NEW(l->sources, hosted);
  if (!status && l->counting && stats) status = TSI_NEW(l->tally, hosted);
  status = tsi_ranks_agree(l->ranks, status);
  if (!status) status = find(l, out, stats);
  release(l);
  for (int h = 0; out && status && h < hosted; h++)
    ts_remote_free(&out[h]);
  return status;
}

int ts_level1_find(const ts_ranks *ranks, const ts_level1_params *params, const ts_cell *cell,
                   double reach, const ts_shard *shard, ts_remote *out, ts_level1_stats *stats)
{
  tsi_level1 l = {.ranks = ranks, .params = params, .cell = cell, .shard = shard, .reach = reach};
  return start(&l, out, stats);
}

int ts_level1_count(const ts_ranks *ranks, const ts_level1_params *params, const ts_cell *cell,
                    double reach, const ts_shard *shard, const bool *wanted, ts_remote *out,
                    ts_level1_stats *stats)
{
  tsi_level1 l = {.ranks = ranks,
                  .params = params,
                  .cell = cell,
                  .shard = shard,
                  .reach = reach,
                  .counting = true,
                  .wanted = wanted};
  if (ranks->comm != MPI_COMM_NULL || (wanted && !out))
    return tsi_fail(TS_ERR_ARG, "level 1: counting is for virtual ranks, with room for the halos");
  return start(&l, out, stats);
}
