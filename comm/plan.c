/* SPDX-License-Identifier: MIT
 *
 * See plan.h.  What a rank needs is already sorted by owner, so a request is a piece of the list.
 */
#include "comm/plan.h"

#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* Sources and their pieces of what is needed. */
static int list_sources(const ts_plan_need *need, ts_plan *plan)
{
  int count = 0;
  for (ts_lidx i = 0; i < need->n; i++)
    count += i == 0 || need->rank[i] != need->rank[i - 1];
  TS_TRY(TSI_NEW(plan->source, count));
  TS_TRY(TSI_NEW(plan->first, count + 1));
  for (ts_lidx i = 0; i < need->n; i++)
    if (i == 0 || need->rank[i] != need->rank[i - 1]) {
      plan->first[plan->sources] = i;
      plan->source[plan->sources++] = need->rank[i];
    }
  plan->first[plan->sources] = need->n;
  return 0;
}

/* The requests of all hosted ranks as parcels of indices. */
static int make_requests(const ts_ranks *ranks, const ts_plan_need *need, const ts_plan *plan,
                         ts_parcels *out)
{
  const int hosted = ranks->hosted;
  int64_t parcels = 0, records = 0;
  for (int h = 0; h < hosted; h++) {
    parcels += plan[h].sources;
    records += need[h].n;
  }
  TS_TRY(ts_parcels_create(ranks, parcels, records, sizeof(ts_lidx), out));
  int64_t p = 0, at = 0;
  for (int h = 0; h < hosted; h++) {
    if (need[h].n > 0)
      memcpy(out->data + (size_t)at * sizeof(ts_lidx), need[h].index,
             (size_t)need[h].n * sizeof(ts_lidx));
    for (int s = 0; s < plan[h].sources; s++) {
      out->peer[p] = plan[h].source[s];
      out->start[p++] = at + plan[h].first[s];
    }
    at += need[h].n;
    out->first[h + 1] = p;
  }
  out->start[p] = at;
  return 0;
}

static int take_requests(const ts_parcels *in, int h, ts_plan *plan)
{
  const int64_t first = in->first[h], base = in->start[first];
  plan->targets = (int)(in->first[h + 1] - first);
  TS_TRY(TSI_NEW(plan->target, plan->targets));
  TS_TRY(TSI_NEW(plan->start, plan->targets + 1));
  for (int t = 0; t < plan->targets; t++) {
    plan->target[t] = in->peer[first + t];
    plan->start[t + 1] = (ts_lidx)(in->start[first + t + 1] - base);
  }
  const size_t rows = (size_t)plan->start[plan->targets];
  TS_TRY(TSI_NEW(plan->row, rows));
  if (rows > 0)
    memcpy(plan->row, in->data + (size_t)base * sizeof(ts_lidx), rows * sizeof(ts_lidx));
  return 0;
}

int ts_plan_build(const ts_ranks *ranks, const ts_plan_need *need, ts_plan *plan)
{
  ts_parcels requests = {0}, received = {0};
  int status = 0;
  memset(plan, 0, (size_t)ranks->hosted * sizeof *plan);
  for (int h = 0; h < ranks->hosted && !status; h++)
    status = list_sources(&need[h], &plan[h]);
  if (!status) status = make_requests(ranks, need, plan, &requests);
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = ts_sparse_exchange(ranks, sizeof(ts_lidx), &requests, &received);
  for (int h = 0; h < ranks->hosted && !status; h++)
    status = take_requests(&received, h, &plan[h]);
  ts_parcels_free(&requests);
  ts_parcels_free(&received);
  for (int h = 0; h < ranks->hosted && status; h++)
    ts_plan_free(&plan[h]);
  return status;
}

int ts_plan_fetch(const ts_ranks *ranks, const ts_plan *plan, size_t record, const void *const *own,
                  void *const *halo)
{
  ts_parcels send = {0}, received = {0};
  int64_t parcels = 0, records = 0, p = 0, at = 0;
  for (int h = 0; h < ranks->hosted; h++) {
    parcels += plan[h].targets;
    records += plan[h].start[plan[h].targets];
  }
  int status = ts_parcels_create(ranks, parcels, records, record, &send);
  for (int h = 0; h < ranks->hosted && !status; h++) {
    for (int t = 0; t < plan[h].targets; t++) {
      send.peer[p] = plan[h].target[t];
      for (ts_lidx i = plan[h].start[t]; i < plan[h].start[t + 1]; i++)
        memcpy(send.data + (size_t)at++ * record,
               (const char *)own[h] + (size_t)plan[h].row[i] * record, record);
      send.start[++p] = at;
    }
    send.first[h + 1] = p;
  }
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = ts_sparse_exchange(ranks, record, &send, &received);
  for (int h = 0; h < ranks->hosted && !status; h++) {
    const size_t n = (size_t)plan[h].first[plan[h].sources];
    if (n > 0)
      memcpy(halo[h], received.data + (size_t)received.start[received.first[h]] * record,
             n * record);
  }
  ts_parcels_free(&send);
  ts_parcels_free(&received);
  return status;
}

void ts_plan_free(ts_plan *plan)
{
  free(plan->source);
  free(plan->first);
  free(plan->target);
  free(plan->start);
  free(plan->row);
  memset(plan, 0, sizeof *plan);
}
