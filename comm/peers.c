/* SPDX-License-Identifier: MIT
 *
 * Windows, and exchanges in them.  Messages need no more than two tags: between two ranks MPI keeps
 * the order of messages of one tag, and all ranks run the same exchanges in the same order. */
#include "comm/peers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { COUNT_TAG = 71, DATA_TAG = 72 };

typedef enum window { WINDOW_XOR, WINDOW_ALL, WINDOW_FOLD } window;

struct ts_peers {
  ts_ranks ranks;
  window window;
  int limit; /* XOR: ranks at or above it have no peers; FOLD: the distance */
  int slots;
  int *value;              /* XOR [slots] */
  int *slot_of_shift;      /* XOR, of the shifts at creation; NULL otherwise */
  const ts_router *router; /* ALL, of shifted keys; NULL otherwise */
};

int ts_ranks_of(MPI_Comm comm, ts_ranks *out)
{
  *out = (ts_ranks){.comm = comm, .hosted = 1};
  TS_TRY_MPI(MPI_Comm_rank(comm, &out->first));
  TS_TRY_MPI(MPI_Comm_size(comm, &out->size));
  return 0;
}

ts_ranks ts_ranks_virtual(int size)
{
  return (ts_ranks){.comm = MPI_COMM_NULL, .size = size, .hosted = size};
}

static int create(const ts_ranks *ranks, window kind, int limit, int slots, ts_peers **out)
{
  *out = NULL;
  TS_TRY(TSI_NEW(*out, 1));
  **out = (ts_peers){.ranks = *ranks, .window = kind, .limit = limit, .slots = slots};
  return 0;
}

int ts_peers_create_all(const ts_ranks *ranks, ts_peers **out)
{
  return create(ranks, WINDOW_ALL, ranks->size, ranks->size, out);
}

int tsi_peers_create_fold(const ts_ranks *ranks, int fold, ts_peers **out)
{
  return create(ranks, WINDOW_FOLD, fold, 1, out);
}

int ts_peers_create_xor(const ts_ranks *ranks, int limit, int slots, const int *value,
                        ts_peers **out)
{
  TS_TRY(create(ranks, WINDOW_XOR, limit, slots, out));
  const int status = TSI_NEW((*out)->value, slots);
  if (status) {
    ts_peers_destroy(out);
    return status;
  }
  for (int s = 0; s < slots; s++)
    (*out)->value[s] = value[s];
  return 0;
}

static int ascending(const void *a, const void *b)
{
  const int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Sort, drop repetitions; returns how many are left. */
static int make_distinct(int n, int *value)
{
  int kept = 0;
  if (n) qsort(value, (size_t)n, sizeof *value, ascending);
  for (int i = 0; i < n; i++)
    if (kept == 0 || value[i] != value[kept - 1]) value[kept++] = value[i];
  return kept;
}

int ts_peers_create(const ts_ranks *ranks, const ts_router *router, int nshift, const ts_key *shift,
                    ts_peers **out)
{
  *out = NULL;
  if (ts_router_params(router)->mode == TS_ROUTE_SPLITMIX) {
    TS_TRY(ts_peers_create_all(ranks, out));
    (*out)->router = router;
    return 0;
  }
  int *hash = NULL, *value = NULL, status = 0;
  TS_TRY_GOTO(status, TSI_NEW(hash, nshift), done);
  TS_TRY_GOTO(status, TSI_NEW(value, nshift), done);
  for (int s = 0; s < nshift; s++)
    hash[s] = value[s] = ts_router_shift(router, shift[s]);
  const int slots = make_distinct(nshift, value);
  TS_TRY_GOTO(status,
              ts_peers_create_xor(ranks, ts_router_params(router)->ranks, slots, value, out), done);
  for (int s = 0; s < nshift; s++) {
    const int *found = bsearch(&hash[s], value, (size_t)slots, sizeof *value, ascending);
    hash[s] = (int)(found - value);
  }
  (*out)->slot_of_shift = hash; /* taken */
  hash = NULL;
done:
  free(hash);
  free(value);
  return status;
}

void ts_peers_destroy(ts_peers **peers)
{
  if (!*peers) return;
  free((*peers)->value);
  free((*peers)->slot_of_shift);
  free(*peers);
  *peers = NULL;
}

int ts_peers_slots(const ts_peers *peers)
{
  return peers->slots;
}

int ts_peers_rank(const ts_peers *peers, int rank, int slot)
{
  int other = slot;
  if (peers->window == WINDOW_XOR)
    other = rank < peers->limit ? rank ^ peers->value[slot] : -1;
  else if (peers->window == WINDOW_FOLD)
    other = rank < peers->limit ? rank + peers->limit : rank - peers->limit;
  return other < peers->ranks.size ? other : -1;
}

int ts_peers_slot(const ts_peers *peers, ts_key shifted, int s)
{
  return peers->router ? ts_router_rank(peers->router, shifted) : peers->slot_of_shift[s];
}

/* The slot in which the rank behind one of `rank`'s slots sees `rank`. */
static int slot_back(const ts_peers *peers, int rank, int slot)
{
  return peers->window == WINDOW_ALL ? rank : slot;
}

int ts_exchange_create(const ts_peers *peers, ts_exchange *out)
{
  const int n = peers->ranks.hosted * peers->slots;
  int status = 0;
  *out = (ts_exchange){0};
  TS_TRY_GOTO(status, TSI_NEW(out->sent, n), fail);
  TS_TRY_GOTO(status, TSI_NEW(out->received, n), fail);
  TS_TRY_GOTO(status, TSI_NEW(out->first, n + 1), fail);
  TS_TRY_GOTO(status, TSI_NEW(out->out_first, n + 1), fail);
  if (peers->ranks.comm != MPI_COMM_NULL)
    TS_TRY_GOTO(status, tsi_alloc((size_t)(4 * n), sizeof(MPI_Request), &out->requests), fail);
  return 0;
fail:
  ts_exchange_destroy(out);
  return status;
}

void ts_exchange_destroy(ts_exchange *x)
{
  free(x->sent);
  free(x->received);
  free(x->first);
  free(x->out_first);
  free(x->data);
  free(x->out);
  free(x->requests);
  *x = (ts_exchange){0};
}

/* Offsets from counts, and room for that many records (contents are not kept). */
static int lay_out(int n, const int64_t *count, size_t record, int64_t *first, char **data,
                   size_t *size)
{
  for (int i = 0; i < n; i++)
    first[i + 1] = first[i] + count[i];
  const size_t needed = (size_t)first[n] * record;
  if (needed <= *size) return 0;
  free(*data);
  *data = NULL;
  *size = 0;
  TS_TRY(tsi_alloc(needed + needed / 4, 1, (void **)data));
  *size = needed + needed / 4;
  return 0;
}

static int pack_all(const ts_peers *p, size_t record, ts_pack pack, void *context, ts_exchange *x)
{
  const int n = p->ranks.hosted * p->slots;
  TS_TRY(lay_out(n, x->sent, record, x->out_first, &x->out, &x->out_size));
  for (int i = 0; i < n; i++)
    if (x->sent[i])
      pack(context, i / p->slots, i % p->slots, x->out + (size_t)x->out_first[i] * record);
  return 0;
}

static void count_traffic(const ts_peers *p, int host, int64_t messages, size_t bytes)
{
  if (!p->ranks.traffic) return;
  p->ranks.traffic[host].messages += messages;
  p->ranks.traffic[host].bytes += (int64_t)bytes;
}

static bool remote(const ts_peers *p, int rank, int slot)
{
  const int other = ts_peers_rank(p, rank, slot);
  return other >= 0 && other != rank;
}

/* Traffic is counted in one place for real and virtual ranks alike. */
static void count_exchange(const ts_peers *p, size_t record, bool counts, const ts_exchange *x)
{
  for (int h = 0; h < p->ranks.hosted; h++)
    for (int s = 0; s < p->slots; s++) {
      const int64_t n = x->sent[h * p->slots + s];
      if (!remote(p, p->ranks.first + h, s)) continue;
      if (counts) count_traffic(p, h, 1, sizeof n);
      if (n) count_traffic(p, h, 1, (size_t)n * record);
    }
}

static int post_counts(const ts_peers *p, ts_exchange *x, int *posted)
{
  MPI_Request *request = x->requests;
  const int me = p->ranks.first;
  for (int s = 0; s < p->slots; s++) {
    const int other = ts_peers_rank(p, me, s);
    x->received[s] = other == me ? x->sent[s] : 0;
    if (!remote(p, me, s)) continue;
    TS_TRY_MPI(MPI_Irecv(&x->received[s], 1, MPI_INT64_T, other, COUNT_TAG, p->ranks.comm,
                         &request[(*posted)++]));
    TS_TRY_MPI(MPI_Isend(&x->sent[s], 1, MPI_INT64_T, other, COUNT_TAG, p->ranks.comm,
                         &request[(*posted)++]));
  }
  return 0;
}

static int post_slot(const ts_peers *p, size_t record, MPI_Datatype type, int s, ts_exchange *x,
                     int *posted)
{
  MPI_Request *request = x->requests;
  const int other = ts_peers_rank(p, p->ranks.first, s);
  char *in = x->data + (size_t)x->first[s] * record;
  const char *out = x->out + (size_t)x->out_first[s] * record;
  if (x->sent[s] > INT_MAX || x->received[s] > INT_MAX)
    return tsi_fail(TS_ERR_MPI, "%lld records to or from rank %d: at most %d fit a message",
                    (long long)(x->sent[s] > x->received[s] ? x->sent[s] : x->received[s]), other,
                    INT_MAX);
  if (other == p->ranks.first) {
    if (x->sent[s]) memcpy(in, out, (size_t)x->sent[s] * record);
    return 0;
  }
  if (x->received[s])
    TS_TRY_MPI(MPI_Irecv(in, (int)x->received[s], type, other, DATA_TAG, p->ranks.comm,
                         &request[(*posted)++]));
  if (x->sent[s])
    TS_TRY_MPI(MPI_Isend(out, (int)x->sent[s], type, other, DATA_TAG, p->ranks.comm,
                         &request[(*posted)++]));
  return 0;
}

static int move_payload(const ts_peers *p, size_t record, ts_exchange *x)
{
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int posted = 0;
  TS_TRY_MPI(MPI_Type_contiguous((int)record, MPI_BYTE, &type));
  TS_TRY_MPI(MPI_Type_commit(&type));
  for (int s = 0; s < p->slots; s++)
    TS_TRY(post_slot(p, record, type, s, x, &posted));
  TS_TRY_MPI(MPI_Waitall(posted, x->requests, MPI_STATUSES_IGNORE));
  TS_TRY_MPI(MPI_Type_free(&type));
  return 0;
}

/* Virtual ranks: what one slot sends stands where the peer looks for it. */
static void deliver_counts(const ts_peers *p, ts_exchange *x)
{
  for (int h = 0; h < p->ranks.hosted; h++)
    for (int s = 0; s < p->slots; s++) {
      const int other = ts_peers_rank(p, h, s), back = slot_back(p, h, s);
      if (other >= 0) x->received[other * p->slots + back] = x->sent[h * p->slots + s];
    }
}

static void deliver_payload(const ts_peers *p, size_t record, ts_exchange *x)
{
  for (int h = 0; h < p->ranks.hosted; h++)
    for (int s = 0; s < p->slots; s++) {
      const int64_t from = h * p->slots + s;
      if (!x->sent[from]) continue;
      const int64_t to = ts_peers_rank(p, h, s) * p->slots + slot_back(p, h, s);
      memcpy(x->data + (size_t)x->first[to] * record, x->out + (size_t)x->out_first[from] * record,
             (size_t)x->sent[from] * record);
    }
}

/* The payload, once both sides know the counts. */
static int move(const ts_peers *p, size_t record, ts_exchange *x)
{
  TS_TRY(
      lay_out(p->ranks.hosted * p->slots, x->received, record, x->first, &x->data, &x->data_size));
  if (p->ranks.comm != MPI_COMM_NULL) return move_payload(p, record, x);
  deliver_payload(p, record, x);
  return 0;
}

int ts_peers_exchange(const ts_peers *peers, size_t record, const int64_t *count, ts_pack pack,
                      void *context, ts_exchange *x)
{
  const size_t n = (size_t)(peers->ranks.hosted * peers->slots);
  const bool real = peers->ranks.comm != MPI_COMM_NULL;
  int posted = 0;
  if (n) memcpy(x->sent, count, n * sizeof *count);
  if (real)
    TS_TRY(post_counts(peers, x, &posted));
  else
    deliver_counts(peers, x);
  TS_TRY(pack_all(peers, record, pack, context, x));
  if (real) TS_TRY_MPI(MPI_Waitall(posted, x->requests, MPI_STATUSES_IGNORE));
  count_exchange(peers, record, true, x);
  return move(peers, record, x);
}

int ts_peers_replay(const ts_peers *peers, size_t record, bool back, ts_pack pack, void *context,
                    ts_exchange *x)
{
  if (back) {
    int64_t *swap = x->sent;
    x->sent = x->received;
    x->received = swap;
  }
  TS_TRY(pack_all(peers, record, pack, context, x));
  count_exchange(peers, record, false, x);
  return move(peers, record, x);
}
