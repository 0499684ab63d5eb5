/* SPDX-License-Identifier: MIT
 *
 * Real ranks find out what comes by the algorithm NBX (Hoefler, Siebert, Lumsdaine, "Scalable
 * communication protocols for dynamic sparse data exchange", PPoPP 2010): synchronous sends end
 * when they have been received; who has seen all of its own end enters a barrier that does not
 * block, and when that is through, nothing is under way.  Messages of the next exchange cannot be
 * taken for those of this one, because the two alternate between two tags. */
#include "comm/sparse.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { TAG = 4711 };

int ts_parcels_create(const ts_ranks *ranks, int64_t parcels, int64_t records, size_t record,
                      ts_parcels *out)
{
  int status;
  *out = (ts_parcels){0};
  TS_TRY_GOTO(status, TSI_NEW(out->first, ranks->hosted + 1), fail);
  TS_TRY_GOTO(status, TSI_NEW(out->peer, parcels), fail);
  TS_TRY_GOTO(status, TSI_NEW(out->start, parcels + 1), fail);
  TS_TRY_GOTO(status, tsi_alloc((size_t)records, record, (void **)&out->data), fail);
  return 0;
fail:
  ts_parcels_free(out);
  return status;
}

void ts_parcels_free(ts_parcels *parcels)
{
  free(parcels->first);
  free(parcels->peer);
  free(parcels->start);
  free(parcels->data);
  *parcels = (ts_parcels){0};
}

static void count_message(const ts_ranks *ranks, int host, int64_t bytes)
{
  if (!ranks->traffic) return;
  ranks->traffic[host].messages++;
  ranks->traffic[host].bytes += bytes;
}

/* ---- virtual ranks */

/* Two passes over all parcels in the order of their senders: count, then copy. */
static int deliver_virtual(const ts_ranks *ranks, size_t record, const ts_parcels *send,
                           ts_parcels *in)
{
  const int64_t parcels = send->first[ranks->hosted];
  int64_t *at = NULL;
  int status = TSI_NEW(at, ranks->hosted + 1);
  if (!status) status = ts_parcels_create(ranks, parcels, send->start[parcels], record, in);
  if (status) {
    free(at);
    return status;
  }
  for (int64_t p = 0; p < parcels; p++)
    in->first[send->peer[p] + 1] += send->start[p + 1] > send->start[p];
  for (int h = 0; h < ranks->hosted; h++) {
    in->first[h + 1] += in->first[h];
    at[h] = in->first[h];
  }
  for (int h = 0; h < ranks->hosted; h++)
    for (int64_t p = send->first[h]; p < send->first[h + 1]; p++) {
      const int64_t records = send->start[p + 1] - send->start[p];
      if (records == 0) continue;
      const int64_t q = at[send->peer[p]]++;
      in->peer[q] = h;
      in->start[q + 1] = records;
      if (send->peer[p] != h) count_message(ranks, h, records * (int64_t)record);
    }
  for (int64_t q = 0; q < in->first[ranks->hosted]; q++)
    in->start[q + 1] += in->start[q];
  for (int h = 0; h < ranks->hosted; h++)
    at[h] = in->first[h];
  for (int h = 0; h < ranks->hosted; h++)
    for (int64_t p = send->first[h]; p < send->first[h + 1]; p++) {
      const size_t records = (size_t)(send->start[p + 1] - send->start[p]);
      if (records == 0) continue;
      const int64_t q = at[send->peer[p]]++;
      memcpy(in->data + (size_t)in->start[q] * record, send->data + (size_t)send->start[p] * record,
             records * record);
    }
  free(at);
  return 0;
}

/* ---- real ranks */

typedef struct arrival {
  int source, tag;
  int64_t records;
  char *data;
  struct arrival *next;
} arrival;

static void free_arrivals(arrival *list)
{
  while (list) {
    arrival *next = list->next;
    free(list->data);
    free(list);
    list = next;
  }
}

static int by_source(const void *a, const void *b)
{
  const arrival *x = *(arrival *const *)a, *y = *(arrival *const *)b;
  return (x->source > y->source) - (x->source < y->source);
}

/* A message that has come, if one has. */
static int take_arrival(const ts_ranks *ranks, MPI_Datatype type, size_t record, int tag,
                        arrival **list)
{
  int there = 0, count = 0;
  MPI_Status status;
  TS_TRY_MPI(MPI_Iprobe(MPI_ANY_SOURCE, tag, ranks->comm, &there, &status));
  if (!there) {
    sched_yield();
    return 0;
  }
  TS_TRY_MPI(MPI_Get_count(&status, type, &count));
  arrival *a = NULL;
  TS_TRY(TSI_NEW(a, 1));
  a->next = *list;
  *list = a;
  a->source = status.MPI_SOURCE;
  a->records = count;
  TS_TRY(tsi_alloc((size_t)count, record, (void **)&a->data));
  TS_TRY_MPI(MPI_Recv(a->data, count, type, a->source, tag, ranks->comm, MPI_STATUS_IGNORE));
  return 0;
}

static int post_sends(const ts_ranks *ranks, MPI_Datatype type, size_t record, int tag,
                      const ts_parcels *send, MPI_Request *request, int *count)
{
  for (int64_t p = 0; p < send->first[1]; p++) {
    const int64_t records = send->start[p + 1] - send->start[p];
    if (records == 0 || send->peer[p] == ranks->first) continue;
    if (records > INT_MAX)
      return tsi_fail(TS_ERR_MPI, "%lld records for rank %d in one message: at most %d",
                      (long long)records, send->peer[p], INT_MAX);
    TS_TRY_MPI(MPI_Issend(send->data + (size_t)send->start[p] * record, (int)records, type,
                          send->peer[p], tag, ranks->comm, &request[*count]));
    ++*count;
    count_message(ranks, 0, records * (int64_t)record);
  }
  return 0;
}

/* Receive until all ranks know that all of their messages have been received. */
static int receive_all(const ts_ranks *ranks, MPI_Datatype type, size_t record, int tag, int sends,
                       MPI_Request *request, arrival **list)
{
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool inside = false;
  for (int done = 0; !done;) {
    TS_TRY(take_arrival(ranks, type, record, tag, list));
    if (inside) {
      TS_TRY_MPI(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE));
      continue;
    }
    int sent = 0;
    TS_TRY_MPI(MPI_Testall(sends, request, &sent, MPI_STATUSES_IGNORE));
    if (!sent) continue;
    TS_TRY_MPI(MPI_Ibarrier(ranks->comm, &barrier));
    inside = true;
  }
  return 0;
}

/* Own parcel and arrivals by source, as parcels. */
static int assemble(const ts_ranks *ranks, size_t record, const ts_parcels *send, arrival *list,
                    ts_parcels *in)
{
  int64_t count = 0, records = 0, at = 0;
  arrival own = {.source = ranks->first, .next = list}, **sorted = NULL;
  for (int64_t p = 0; p < send->first[1]; p++)
    if (send->peer[p] == ranks->first) {
      own.records = send->start[p + 1] - send->start[p];
      own.data = send->data + (size_t)send->start[p] * record;
    }
  for (const arrival *a = &own; a; a = a->next) {
    count++;
    records += a->records;
  }
  TS_TRY(TSI_NEW(sorted, count));
  const int status = ts_parcels_create(ranks, count, records, record, in);
  if (!status) {
    for (arrival *a = &own; a; a = a->next)
      sorted[at++] = a;
    qsort(sorted, (size_t)count, sizeof(arrival *), by_source);
    int64_t q = 0;
    for (at = 0; at < count; at++) {
      if (sorted[at]->records == 0) continue;
      in->peer[q] = sorted[at]->source;
      in->start[q + 1] = in->start[q] + sorted[at]->records;
      memcpy(in->data + (size_t)in->start[q] * record, sorted[at]->data,
             (size_t)sorted[at]->records * record);
      q++;
    }
    in->first[1] = q;
  }
  free(sorted);
  return status;
}

static int deliver_real(const ts_ranks *ranks, size_t record, const ts_parcels *send,
                        ts_parcels *in)
{
  static int turn; /* the same on all ranks of a process' only communicator of exchanges */
  const int tag = TAG + (turn++ & 1);
  MPI_Request *request = NULL;
  MPI_Datatype type;
  arrival *list = NULL;
  int sends = 0, status;
  TS_TRY(TSI_NEW(request, send->first[1]));
  TS_TRY_MPI(MPI_Type_contiguous((int)record, MPI_BYTE, &type));
  TS_TRY_MPI(MPI_Type_commit(&type));
  status = post_sends(ranks, type, record, tag, send, request, &sends);
  if (!status) status = receive_all(ranks, type, record, tag, sends, request, &list);
  if (!status) status = assemble(ranks, record, send, list, in);
  MPI_Type_free(&type);
  free_arrivals(list);
  free(request);
  return status;
}

int ts_sparse_exchange(const ts_ranks *ranks, size_t record, const ts_parcels *send,
                       ts_parcels *received)
{
  *received = (ts_parcels){0};
  return ranks->comm == MPI_COMM_NULL ? deliver_virtual(ranks, record, send, received)
                                      : deliver_real(ranks, record, send, received);
}

/* ---- small agreements */

int tsi_ranks_agree(const ts_ranks *ranks, int status)
{
  if (ranks->comm == MPI_COMM_NULL || ranks->size == 1) return status;
  int mine[2] = {status ? ranks->first : INT_MAX, status}, first = INT_MAX;
  TS_TRY_MPI(MPI_Allreduce(&mine[0], &first, 1, MPI_INT, MPI_MIN, ranks->comm));
  if (first == INT_MAX) return 0;
  char message[2048];
  snprintf(message, sizeof message, "%s", status ? ts_error_message() : "");
  TS_TRY_MPI(MPI_Bcast(&mine[1], 1, MPI_INT, first, ranks->comm));
  TS_TRY_MPI(MPI_Bcast(message, sizeof message, MPI_CHAR, first, ranks->comm));
  return tsi_fail(mine[1], "%s", message);
}

int ts_ranks_sum_i64(const ts_ranks *ranks, int n, int64_t *x)
{
  if (ranks->comm != MPI_COMM_NULL) {
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_INT64_T, MPI_SUM, ranks->comm));
    return 0;
  }
  for (int h = 1; h < ranks->hosted; h++)
    for (int i = 0; i < n; i++)
      x[i] += x[(size_t)h * (size_t)n + (size_t)i];
  for (int h = 1; h < ranks->hosted; h++)
    memcpy(x + (size_t)h * (size_t)n, x, (size_t)n * sizeof *x);
  return 0;
}

int ts_ranks_max(const ts_ranks *ranks, int n, double *x)
{
  if (ranks->comm != MPI_COMM_NULL) {
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_MAX, ranks->comm));
    return 0;
  }
  for (int h = 1; h < ranks->hosted; h++)
    for (int i = 0; i < n; i++) {
      const double other = x[(size_t)h * (size_t)n + (size_t)i];
      x[i] = other > x[i] ? other : x[i];
    }
  for (int h = 1; h < ranks->hosted; h++)
    memcpy(x + (size_t)h * (size_t)n, x, (size_t)n * sizeof *x);
  return 0;
}
