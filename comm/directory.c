/* SPDX-License-Identifier: MIT
 *
 * Batches travel to their homes and answers back by ts_delivery: log2(K) messages each way under
 * linear routing, everybody with everybody under splitmix. */
#include "comm/directory.h"

#include <stdlib.h>
#include <string.h>

#include "comm/peers_deliver.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

typedef struct request { /* followed by the value where there is one */
  int32_t dest, source;
  int64_t index;
  ts_key key;
} request;

typedef struct answer { /* followed by the value */
  int32_t dest, found;
  int64_t index;
} answer;

struct ts_directory {
  MPI_Comm comm;
  ts_ranks ranks;
  ts_router *router;
  ts_delivery *delivery;
  tsi_table *table;
  size_t value_size;
  int64_t batch; /* puts so far: entries remember theirs */
};

static int agree_on_size(MPI_Comm comm, size_t value_size)
{
  uint64_t ends[2] = {value_size, ~(uint64_t)value_size};
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UINT64_T, MPI_MIN, comm));
  if (ends[0] == ~ends[1]) return 0;
  return tsi_fail(TS_ERR_INPUT, "directory: values take %llu bytes on one rank and %llu on another",
                  (unsigned long long)ends[0], (unsigned long long)~ends[1]);
}

static int create(ts_directory *d, MPI_Comm comm, const ts_route_params *params)
{
  ts_key bit[63]; /* of ids: the low ones first, so that few ids spread over all homes */
  for (int i = 0; i < 63; i++)
    bit[i] = ts_key_bit(i);
  TS_TRY_MPI(MPI_Comm_dup(comm, &d->comm));
  TS_TRY_MPI(MPI_Comm_set_errhandler(d->comm, MPI_ERRORS_RETURN));
  TS_TRY(ts_ranks_of(d->comm, &d->ranks));
  ts_route_params own = *params;
  own.ranks = tsi_power_of_two_below(d->ranks.size);
  own.nshift = 63;
  own.shift = bit;
  TS_TRY(ts_router_create(&own, &d->router));
  TS_TRY(ts_router_agree(d->router, d->comm));
  TS_TRY(agree_on_size(d->comm, d->value_size));
  TS_TRY(ts_delivery_create(&d->ranks, own.mode, &d->delivery));
  return tsi_table_create(d->value_size, &d->table);
}

int ts_directory_create(MPI_Comm comm, const ts_route_params *params, size_t value_size,
                        ts_directory **out)
{
  *out = NULL;
  TS_TRY(TSI_NEW(*out, 1));
  (*out)->comm = MPI_COMM_NULL;
  (*out)->value_size = value_size;
  const int status = create(*out, comm, params);
  if (status) ts_directory_destroy(out);
  return status;
}

void ts_directory_destroy(ts_directory **directory)
{
  ts_directory *d = *directory;
  if (!d) return;
  tsi_table_destroy(&d->table);
  ts_delivery_destroy(&d->delivery);
  ts_router_destroy(&d->router);
  if (d->comm != MPI_COMM_NULL) MPI_Comm_free(&d->comm);
  free(d);
  *directory = NULL;
}

int64_t ts_directory_count(const ts_directory *directory)
{
  return tsi_table_count(directory->table);
}

/* The box, and room for one record, filled and emptied record by record. */
typedef struct batch {
  ts_box box;
  char *record;
  size_t size;
} batch;

static int open_batch(batch *b, size_t head, size_t value_size)
{
  *b = (batch){.size = head + value_size};
  return tsi_alloc(b->size, 1, (void **)&b->record);
}

static void close_batch(batch *b)
{
  free(b->box.data);
  free(b->record);
}

static int add(batch *b, size_t head, const void *record, size_t value_size, const void *value)
{
  memcpy(b->record, record, head);
  if (value && value_size) memcpy(b->record + head, value, value_size);
  return ts_box_add(&b->box, b->size, 1, b->record);
}

/* Send requests with `value_size` bytes of value each; `b` is open and then holds those to serve.
 */
static int send_requests(ts_directory *d, int64_t n, const ts_key *key, const char *value,
                         size_t value_size, batch *b)
{
  for (int64_t i = 0; i < n; i++) {
    const request r = {ts_router_rank(d->router, key[i]), d->ranks.first, i, key[i]};
    const char *own = value ? value + (size_t)i * value_size : NULL;
    TS_TRY(add(b, sizeof r, &r, value_size, own));
  }
  return ts_delivery_run(d->delivery, b->size, &b->box);
}

static request request_at(const batch *b, int64_t i)
{
  request r;
  memcpy(&r, b->box.data + (size_t)i * b->size, sizeof r);
  return r;
}

static int serve_puts(ts_directory *d, const batch *b)
{
  d->batch++;
  for (int64_t i = 0; i < b->box.n; i++) {
    const request r = request_at(b, i);
    const char *value = b->box.data + (size_t)i * b->size + sizeof r;
    TS_TRY(tsi_table_put(d->table, r.key, value, d->batch, r.source, r.index));
  }
  return 0;
}

int ts_directory_put(ts_directory *directory, int64_t n, const ts_key *key, const void *value)
{
  batch b;
  int status = open_batch(&b, sizeof(request), directory->value_size);
  if (!status) status = send_requests(directory, n, key, value, directory->value_size, &b);
  if (!status) status = serve_puts(directory, &b);
  close_batch(&b);
  return status;
}

int ts_directory_remove(ts_directory *directory, int64_t n, const ts_key *key)
{
  batch b;
  int status = open_batch(&b, sizeof(request), 0);
  if (!status) status = send_requests(directory, n, key, NULL, 0, &b);
  for (int64_t i = 0; !status && i < b.box.n; i++)
    tsi_table_remove(directory->table, request_at(&b, i).key);
  close_batch(&b);
  return status;
}

static int answer_all(ts_directory *d, const batch *questions, batch *answers)
{
  for (int64_t i = 0; i < questions->box.n; i++) {
    const request r = request_at(questions, i);
    const void *value = tsi_table_find(d->table, r.key);
    const answer a = {r.source, value != NULL, r.index};
    TS_TRY(add(answers, sizeof a, &a, d->value_size, value));
  }
  return ts_delivery_run(d->delivery, answers->size, &answers->box);
}

static void read_answers(const ts_directory *d, const batch *answers, char *value, bool *found)
{
  for (int64_t i = 0; i < answers->box.n; i++) {
    const char *record = answers->box.data + (size_t)i * answers->size;
    answer a;
    memcpy(&a, record, sizeof a);
    found[a.index] = a.found;
    if (a.found && d->value_size)
      memcpy(value + (size_t)a.index * d->value_size, record + sizeof a, d->value_size);
  }
}

int ts_directory_find(ts_directory *directory, int64_t n, const ts_key *key, void *value,
                      bool *found)
{
  batch questions = {0}, answers = {0};
  int status = open_batch(&questions, sizeof(request), 0);
  if (!status) status = open_batch(&answers, sizeof(answer), directory->value_size);
  if (!status) status = send_requests(directory, n, key, NULL, 0, &questions);
  if (!status) status = answer_all(directory, &questions, &answers);
  if (!status) read_answers(directory, &answers, value, found);
  close_batch(&questions);
  close_batch(&answers);
  return status;
}

/* Keys of ids, and one rank for each. */
static int atom_keys(const ts_directory *d, int64_t n, const ts_gidx *gid, ts_key **key)
{
  *key = NULL;
  if (d->value_size != sizeof(int32_t))
    return tsi_fail(TS_ERR_ARG, "a directory of owners has values of %zu bytes, not %zu",
                    sizeof(int32_t), d->value_size);
  TS_TRY(TSI_NEW(*key, n));
  for (int64_t i = 0; i < n; i++)
    (*key)[i] = ts_key_of_id(gid[i]);
  return 0;
}

int ts_directory_put_atoms(ts_directory *directory, int64_t n, const ts_gidx *gid)
{
  ts_key *key = NULL;
  int32_t *owner = NULL;
  int status = atom_keys(directory, n, gid, &key);
  if (!status) status = TSI_NEW(owner, n);
  for (int64_t i = 0; !status && i < n; i++)
    owner[i] = directory->ranks.first;
  if (!status) status = ts_directory_put(directory, n, key, owner);
  free(key);
  free(owner);
  return status;
}

int ts_directory_find_atoms(ts_directory *directory, int64_t n, const ts_gidx *gid, int32_t *owner)
{
  ts_key *key = NULL;
  bool *found = NULL;
  int status = atom_keys(directory, n, gid, &key);
  if (!status) status = TSI_NEW(found, n);
  for (int64_t i = 0; !status && i < n; i++)
    owner[i] = -1;
  if (!status) status = ts_directory_find(directory, n, key, owner, found);
  free(key);
  free(found);
  return status;
}
