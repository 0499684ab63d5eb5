/* SPDX-License-Identifier: MIT
 *
 * Both directions use one list of places on either side: where a record stands at its holder, and
 * where in its block.  The exchange keeps the order of records within a parcel, so nothing but the
 * rows themselves travels. */
#include "comm/blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* One side: parcels (their data NULL between two moves), and the place of each record in the array
 * of its hosted rank. */
typedef struct side {
  ts_parcels parcels;
  ts_lidx *place;
} side;

struct ts_blocks {
  ts_ranks ranks;
  ts_gidx rows;
  side holder, block;
};

ts_gidx ts_block_first(ts_gidx rows, int ranks, int rank)
{
  return rows / ranks * rank + rows % ranks * rank / ranks;
}

int ts_block_rank(ts_gidx rows, int ranks, ts_gidx id)
{
  return (int)(((id + 1) * ranks - 1) / rows);
}

static int64_t records(const ts_blocks *b, const side *s)
{
  return s->parcels.start[s->parcels.first[b->ranks.hosted]];
}

/* ---- finding the way ---- */

static int check_ids(const ts_blocks *b, const ts_lidx *n, const ts_gidx *const *id)
{
  for (int h = 0; h < b->ranks.hosted; h++)
    for (ts_lidx i = 0; i < n[h]; i++)
      if (id[h][i] < 0 || id[h][i] >= b->rows)
        return tsi_fail(TS_ERR_SIMULATION,
                        "rank %d has an atom %" PRId64 "; expected 1 to %" PRId64,
                        b->ranks.first + h, id[h][i] + 1, b->rows);
  return 0;
}

/* Append the parcels of a hosted rank: its ids by block, in their order.
 * count [ranks+1] is zero and stays so. */
static void sort_ids(ts_blocks *b, int h, ts_lidx n, const ts_gidx *id, int64_t *count)
{
  side *s = &b->holder;
  const int ranks = b->ranks.size;
  int64_t parcel = s->parcels.first[h], at = s->parcels.start[parcel];
  for (ts_lidx i = 0; i < n; i++)
    count[ts_block_rank(b->rows, ranks, id[i])]++;
  for (int r = 0; r < ranks; r++) {
    if (!count[r]) continue;
    const int64_t size = count[r];
    s->parcels.peer[parcel] = r;
    count[r] = at;
    at += size;
    s->parcels.start[++parcel] = at;
  }
  s->parcels.first[h + 1] = parcel;
  for (ts_lidx i = 0; i < n; i++) {
    const int64_t record = count[ts_block_rank(b->rows, ranks, id[i])]++;
    s->place[record] = i;
    memcpy(s->parcels.data + (size_t)record * sizeof *id, &id[i], sizeof *id);
  }
  memset(count, 0, (size_t)ranks * sizeof *count);
}

static int sort_all(ts_blocks *b, const ts_lidx *n, const ts_gidx *const *id)
{
  side *s = &b->holder;
  int64_t total = 0, parcels = 0, *count = NULL;
  int status;
  for (int h = 0; h < b->ranks.hosted; h++) {
    total += n[h];
    parcels += n[h] < b->ranks.size ? n[h] : b->ranks.size;
  }
  TS_TRY_GOTO(status, check_ids(b, n, id), done);
  TS_TRY_GOTO(status, TSI_NEW(s->place, total), done);
  TS_TRY_GOTO(status, ts_parcels_create(&b->ranks, parcels, total, sizeof **id, &s->parcels), done);
  TS_TRY_GOTO(status, TSI_NEW(count, b->ranks.size), done);
  for (int h = 0; h < b->ranks.hosted; h++)
    sort_ids(b, h, n[h], id[h], count);
done:
  free(count);
  return status;
}

/* Where each record of a block belongs; every row must come once. */
static int find_places(ts_blocks *b, int h, bool *seen)
{
  side *s = &b->block;
  const int rank = b->ranks.first + h;
  const ts_gidx first = ts_block_first(b->rows, b->ranks.size, rank),
                end = ts_block_first(b->rows, b->ranks.size, rank + 1);
  const int64_t begin = s->parcels.start[s->parcels.first[h]],
                stop = s->parcels.start[s->parcels.first[h + 1]];
  for (int64_t i = begin; i < stop; i++) {
    ts_gidx id;
    memcpy(&id, s->parcels.data + (size_t)i * sizeof id, sizeof id);
    if (seen[id - first])
      return tsi_fail(TS_ERR_SIMULATION, "the atom %" PRId64 " is there twice", id + 1);
    seen[id - first] = true;
    s->place[i] = (ts_lidx)(id - first);
  }
  for (ts_gidx k = 0; k < end - first; k++) {
    if (!seen[k])
      return tsi_fail(TS_ERR_SIMULATION, "the atom %" PRId64 " is lost: no rank has it",
                      first + k + 1);
    seen[k] = false;
  }
  return 0;
}

static int find_all_places(ts_blocks *b)
{
  bool *seen = NULL;
  int status = 0;
  TS_TRY_GOTO(status, TSI_NEW(b->block.place, records(b, &b->block)), done);
  TS_TRY_GOTO(status, TSI_NEW(seen, b->rows / b->ranks.size + 1), done);
  for (int h = 0; h < b->ranks.hosted; h++)
    TS_TRY_GOTO(status, find_places(b, h, seen), done);
done:
  free(seen);
  return status;
}

static void drop_data(side *s)
{
  free(s->parcels.data);
  s->parcels.data = NULL;
}

int ts_blocks_create(const ts_ranks *ranks, ts_gidx rows, const ts_lidx *n,
                     const ts_gidx *const *id, ts_blocks **out)
{
  *out = NULL;
  ts_blocks *b = NULL;
  int status = TSI_NEW(b, 1);
  if (!status) {
    b->ranks = *ranks;
    b->rows = rows;
    status = sort_all(b, n, id);
  }
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, status), fail);
  TS_TRY_GOTO(status, ts_sparse_exchange(ranks, sizeof **id, &b->holder.parcels, &b->block.parcels),
              fail);
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, find_all_places(b)), fail);
  drop_data(&b->holder);
  drop_data(&b->block);
  *out = b;
  return 0;
fail:
  ts_blocks_destroy(&b);
  return status;
}

void ts_blocks_destroy(ts_blocks **blocks)
{
  ts_blocks *b = *blocks;
  if (!b) return;
  ts_parcels_free(&b->holder.parcels);
  ts_parcels_free(&b->block.parcels);
  free(b->holder.place);
  free(b->block.place);
  free(b);
  *blocks = NULL;
}

/* ---- moving rows ---- */

/* Between the arrays of the hosted ranks and the records of a side. */
static void copy_rows(const ts_blocks *b, const side *s, size_t size, const void *const *get,
                      void *const *put, char *data)
{
  for (int h = 0; h < b->ranks.hosted; h++) {
    const int64_t end = s->parcels.start[s->parcels.first[h + 1]];
    for (int64_t i = s->parcels.start[s->parcels.first[h]]; i < end; i++) {
      const size_t at = (size_t)s->place[i] * size;
      if (get)
        memcpy(data + (size_t)i * size, (const char *)get[h] + at, size);
      else
        memcpy((char *)put[h] + at, data + (size_t)i * size, size);
    }
  }
}

static int move(const ts_blocks *b, size_t size, const side *from, const void *const *get,
                const side *to, void *const *put)
{
  ts_parcels send = from->parcels, received = {0};
  int status = tsi_alloc((size_t)records(b, from), size, (void **)&send.data);
  TS_TRY_GOTO(status, tsi_ranks_agree(&b->ranks, status), done);
  copy_rows(b, from, size, get, NULL, send.data);
  TS_TRY_GOTO(status, ts_sparse_exchange(&b->ranks, size, &send, &received), done);
  copy_rows(b, to, size, NULL, put, received.data);
done:
  ts_parcels_free(&received);
  free(send.data);
  return status;
}

int ts_blocks_collect(const ts_blocks *blocks, size_t size, const void *const *held,
                      void *const *block)
{
  return move(blocks, size, &blocks->holder, held, &blocks->block, block);
}

int ts_blocks_return(const ts_blocks *blocks, size_t size, const void *const *block,
                     void *const *held)
{
  return move(blocks, size, &blocks->block, block, &blocks->holder, held);
}
