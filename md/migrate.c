/* SPDX-License-Identifier: MIT
 *
 * Migration: one record per atom with all it has, one sparse exchange, one sort.  Most atoms stay
 * where they are; these are copied with the others, which is cheap against a search and keeps one
 * way for all. */
#include "md/migrate.h"

#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "neighbor/sort.h"
#include "runtime/error.h"
#include "runtime/memory.h"

typedef struct record {
  double x[3], v[3], mass;
  ts_gidx gid;
  uint64_t key;
  int32_t image[3], z;
} record;

static void pack(const ts_system *s, ts_lidx i, uint64_t key, record *out)
{
  *out = (record){.mass = s->mass[i], .gid = s->gid[i], .key = key, .z = s->z[i]};
  memcpy(out->x, s->x[i], sizeof out->x);
  memcpy(out->v, s->v[i], sizeof out->v);
  memcpy(out->image, s->image[i], sizeof out->image);
}

static void unpack(const record *in, ts_system *s, ts_lidx i)
{
  memcpy(s->x[i], in->x, sizeof in->x);
  memcpy(s->v[i], in->v, sizeof in->v);
  memcpy(s->image[i], in->image, sizeof in->image);
  s->mass[i] = in->mass;
  s->gid[i] = in->gid;
  s->z[i] = (uint8_t)in->z;
}

static int check_owners(const ts_ranks *ranks, const ts_system *s, const int32_t *owner)
{
  if (ranks->hosted != 1)
    return tsi_fail(TS_ERR_ARG, "migration on %d ranks in one process; expected one each",
                    ranks->hosted);
  for (ts_lidx i = 0; i < s->n; i++)
    if (owner[i] < 0 || owner[i] >= ranks->size)
      return tsi_fail(TS_ERR_ARG, "atom %lld has the owner %d; expected 0 to %d",
                      (long long)s->gid[i] + 1, owner[i], ranks->size - 1);
  return 0;
}

/* Parcels by owner. */
static int pack_all(const ts_ranks *ranks, const ts_system *s, const uint64_t *key,
                    const int32_t *owner, ts_parcels *send)
{
  uint64_t *to = NULL;
  ts_lidx *order = NULL;
  int64_t parcels = 0;
  int status = TSI_NEW(to, s->n);
  if (!status) status = TSI_NEW(order, s->n);
  for (ts_lidx i = 0; i < s->n && !status; i++) {
    to[i] = (uint64_t)owner[i];
    order[i] = i;
  }
  if (!status) status = tsi_sort_order(s->n, to, order);
  for (ts_lidx k = 0; k < s->n && !status; k++)
    parcels += k == 0 || owner[order[k]] != owner[order[k - 1]];
  if (!status) status = ts_parcels_create(ranks, parcels, s->n, sizeof(record), send);
  if (!status) {
    record *out = (record *)(void *)send->data;
    int64_t p = 0;
    for (ts_lidx k = 0; k < s->n; k++) {
      const ts_lidx i = order[k];
      if (k == 0 || owner[i] != owner[order[k - 1]]) send->peer[p++] = owner[i];
      send->start[p] = k + 1;
      pack(s, i, key[i], &out[k]);
    }
    send->first[1] = p;
  }
  free(to);
  free(order);
  return status;
}

/* order[k]: the record of the k-th atom by (key, gid).  `sorted` [n] is scratch. */
static int order_records(ts_lidx n, const record *in, uint64_t *sorted, ts_lidx *order)
{
  for (ts_lidx i = 0; i < n; i++) {
    order[i] = i;
    sorted[i] = (uint64_t)in[i].gid;
  }
  TS_TRY(tsi_sort_order(n, sorted, order)); /* ids decide ties */
  for (ts_lidx i = 0; i < n; i++)
    sorted[i] = in[i].key;
  return tsi_sort_order(n, sorted, order);
}

static int unpack_all(const ts_parcels *received, ts_system *s, uint64_t **key)
{
  const int64_t n = received->start[received->first[1]];
  const record *in = (const record *)(const void *)received->data;
  ts_lidx *order = NULL;
  uint64_t *fresh = NULL;
  int status;
  if (n > INT32_MAX)
    return tsi_fail(TS_ERR_ARG, "%lld atoms on one rank; expected at most %d", (long long)n,
                    INT32_MAX);
  TS_TRY_GOTO(status, TSI_NEW(order, n), done);
  TS_TRY_GOTO(status, TSI_NEW(fresh, n), done);
  TS_TRY_GOTO(status, order_records((ts_lidx)n, in, fresh, order), done);
  TS_TRY_GOTO(status, ts_system_reserve(s, (ts_lidx)n), done);
  s->n = (ts_lidx)n;
  for (ts_lidx k = 0; k < s->n; k++) {
    unpack(&in[order[k]], s, k);
    fresh[k] = in[order[k]].key;
  }
  free(*key);
  *key = fresh;
  fresh = NULL;
done:
  free(order);
  free(fresh);
  return status;
}

/* Number of atoms, and a sum over their ids that a lost or doubled one changes. */
static void fingerprint(const ts_system *s, int64_t out[2])
{
  out[0] = s->n;
  out[1] = 0;
  for (ts_lidx i = 0; i < s->n; i++)
    out[1] += (int64_t)((uint64_t)(s->gid[i] + 1) * 0x9e3779b97f4a7c15ULL >> 33);
}

static int compare(const ts_ranks *ranks, int64_t print[4])
{
  TS_TRY(ts_ranks_sum_i64(ranks, 4, print));
  if (print[0] == print[2] && print[1] == print[3]) return 0;
  return tsi_fail(TS_ERR_SIMULATION, "%lld atoms have become %lld (or others) on their way",
                  (long long)print[0], (long long)print[2]);
}

int ts_system_migrate(ts_system *system, const ts_ranks *ranks, uint64_t **key,
                      const int32_t *owner)
{
  ts_parcels send = {0}, received = {0};
  int64_t print[4];
  int status = check_owners(ranks, system, owner);
  if (!status) status = pack_all(ranks, system, *key, owner, &send);
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, status), done);
  fingerprint(system, print);
  TS_TRY_GOTO(status, ts_sparse_exchange(ranks, sizeof(record), &send, &received), done);
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, unpack_all(&received, system, key)), done);
  fingerprint(system, print + 2);
  status = compare(ranks, print);
done:
  ts_parcels_free(&send);
  ts_parcels_free(&received);
  return status;
}
