/* SPDX-License-Identifier: MIT
 *
 * The second half of Level 1: each rank clips its atoms for every rank that may need some and sends
 * them; what arrives becomes the halo, already in the order of (rank, index). */
#include <stdlib.h>
#include <string.h>

#include "neighbor/level1_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

typedef struct atom_record {
  double x[3];
  ts_gidx gid;
  ts_lidx index;
  uint8_t tag, images; /* images that the asker may need */
  uint16_t spare;
} atom_record;

/* Parcels as they grow. */
typedef struct mail {
  ts_parcels p;
  int64_t parcels, parcel_room, records, record_room;
} mail;

static int grow(void **array, int64_t room, size_t size)
{
  void *moved = realloc(*array, (size_t)room * size);
  if (!moved)
    return tsi_fail(TS_ERR_MEMORY, "no memory for %lld atoms of other ranks", (long long)room);
  *array = moved;
  return 0;
}

static int add_record(mail *m, const atom_record *r)
{
  if (m->records == m->record_room) {
    m->record_room = 2 * m->record_room + 64;
    TS_TRY(grow((void **)&m->p.data, m->record_room, sizeof *r));
  }
  memcpy(m->p.data + (size_t)m->records++ * sizeof *r, r, sizeof *r);
  return 0;
}

/* End a parcel, unless nothing has been put into it. */
static int end_parcel(mail *m, int peer)
{
  if (m->records == m->p.start[m->parcels]) return 0;
  if (m->parcels == m->parcel_room) {
    m->parcel_room = 2 * m->parcel_room + 64;
    TS_TRY(grow((void **)&m->p.peer, m->parcel_room, sizeof *m->p.peer));
    TS_TRY(grow((void **)&m->p.start, m->parcel_room + 1, sizeof *m->p.start));
  }
  m->p.peer[m->parcels++] = peer;
  m->p.start[m->parcels] = m->records;
  return 0;
}

/* Whether an asker gets atoms, not only numbers. */
static bool is_sent(const tsi_level1 *l, int asker)
{
  return !l->counting || (l->wanted && l->wanted[asker]);
}

/* Add to what an asker would get of a source. */
static void count_answer(tsi_tally *t, ts_lidx n, const uint8_t *images)
{
  int64_t atoms = 0, sum = 0;
  for (ts_lidx i = 0; i < n; i++) {
    atoms += images[i] > 0;
    sum += images[i];
  }
  t->peers += atoms > 0;
  t->atoms += atoms;
  t->images += sum;
}

/* What a hosted rank has for one that asks with `row`. */
static int answer_one(tsi_level1 *l, int h, int asker, const char *row, mail *m)
{
  const ts_shard *s = &l->shard[h];
  const char *own = tsi_level1_row(l, h);
  const bool sent = is_sent(l, asker);
  if (!sent && !l->tally) return 0;
  if (!l->ops->asks(&l->space, l->params, row, own, NULL)) return 0;
  if (!sent && l->ops->whole) {
    l->tally[asker].peers++;
    l->tally[asker].atoms += s->n;
    l->tally[asker].images += s->n;
    return 0;
  }
  l->ops->clip(&l->space, l->params, row, own, s->n, (const double(*)[3])l->t, l->images);
  if (l->tally) count_answer(&l->tally[asker], s->n, l->images);
  if (!sent) {
    memset(l->images, 0, (size_t)s->n);
    return 0;
  }
  for (ts_lidx i = 0; i < s->n; i++) {
    if (!l->images[i]) continue;
    const atom_record r = {.x = {s->x[i][0], s->x[i][1], s->x[i][2]},
                           .gid = s->gid[i],
                           .index = i,
                           .tag = s->tag ? s->tag[i] : 0,
                           .images = l->images[i]};
    l->images[i] = 0;
    TS_TRY(add_record(m, &r));
  }
  return end_parcel(m, asker);
}

static int answer_all(tsi_level1 *l, mail *m)
{
  const ts_ranks *ranks = l->ranks;
  TS_TRY(TSI_NEW(m->p.first, (size_t)ranks->hosted + 1));
  TS_TRY(TSI_NEW(m->p.start, 1));
  for (int h = 0; h < ranks->hosted; h++) {
    const int64_t first = l->sources ? l->asked.first[h] : 0;
    const int64_t last = l->sources ? l->asked.first[h + 1] : ranks->size;
    const char *rows = l->sources ? l->asked.data : l->rows;
    tsi_level1_place(l, h);
    for (int64_t k = first; k < last; k++) {
      const int asker = l->sources ? l->asked.peer[k] : (int)k;
      if (asker == ranks->first + h) continue;
      TS_TRY(answer_one(l, h, asker, rows + (size_t)k * l->row, m));
    }
    m->p.first[h + 1] = m->parcels;
  }
  return 0;
}

static int reserve(ts_remote *r, ts_lidx n, int peers)
{
  r->n = n;
  r->peers = peers;
  TS_TRY(TSI_NEW(r->x, n));
  TS_TRY(TSI_NEW(r->gid, n));
  TS_TRY(TSI_NEW(r->tag, n));
  TS_TRY(TSI_NEW(r->rank, n));
  TS_TRY(TSI_NEW(r->index, n));
  TS_TRY(TSI_NEW(r->peer, peers));
  return TSI_NEW(r->first, (size_t)peers + 1);
}

void ts_remote_free(ts_remote *remote)
{
  free(remote->x);
  free(remote->gid);
  free(remote->tag);
  free(remote->rank);
  free(remote->index);
  free(remote->peer);
  free(remote->first);
  *remote = (ts_remote){0};
}

/* The parcels of a hosted rank become its halo; *images: how many images they stand for. */
static int sort_in(const ts_parcels *in, int h, ts_remote *out, int64_t *images)
{
  const int64_t first = in->first[h], last = in->first[h + 1];
  const int64_t start = first < last ? in->start[first] : 0;
  const int64_t n = first < last ? in->start[last] - start : 0;
  if (n > INT32_MAX)
    return tsi_fail(TS_ERR_UNSUPPORTED,
                    "%lld atoms of other ranks are within reach, at most %d can be", (long long)n,
                    INT32_MAX);
  TS_TRY(reserve(out, (ts_lidx)n, (int)(last - first)));
  for (int p = 0; p < out->peers; p++) {
    out->peer[p] = in->peer[first + p];
    out->first[p + 1] = (ts_lidx)(in->start[first + p + 1] - start);
    for (ts_lidx i = out->first[p]; i < out->first[p + 1]; i++) {
      atom_record r;
      memcpy(&r, in->data + (size_t)(start + i) * sizeof r, sizeof r);
      memcpy(out->x[i], r.x, sizeof r.x);
      out->gid[i] = r.gid;
      out->tag[i] = r.tag;
      out->rank[i] = out->peer[p];
      out->index[i] = r.index;
      *images += r.images;
    }
  }
  return 0;
}

/* The rest of a rank's statistics: *s has the images received. */
static void count(tsi_level1 *l, int h, ts_level1_stats *s)
{
  const char *own = tsi_level1_row(l, h);
  s->metadata = l->metadata[h];
  if (l->sources) s->sources = l->sources[h].n;
  for (int q = 0; q < l->ranks->size && !l->sources; q++)
    l->ops->asks(&l->space, l->params, own, l->rows + (size_t)q * l->row, s);
  if (!l->ops->asks(&l->space, l->params, own, own, NULL)) return;
  tsi_level1_place(l, h);
  l->ops->clip(&l->space, l->params, own, own, l->shard[h].n, (const double(*)[3])l->t, l->images);
  for (ts_lidx i = 0; i < l->shard[h].n; i++)
    s->pool += l->images[i];
  memset(l->images, 0, (size_t)l->shard[h].n);
}

static int receive(tsi_level1 *l, const ts_parcels *in, ts_remote *out, ts_level1_stats *stats)
{
  for (int h = 0; h < l->ranks->hosted; h++) {
    ts_level1_stats s = {0};
    if (is_sent(l, h)) {
      TS_TRY(sort_in(in, h, &out[h], &s.pool));
      s.peers = out[h].peers;
      s.atoms = out[h].n;
    }
    if (!stats) continue;
    if (l->tally) {
      s.peers = l->tally[h].peers;
      s.atoms = l->tally[h].atoms;
      s.pool = l->tally[h].images;
    }
    count(l, h, &s);
    stats[h] = s;
  }
  return 0;
}

int tsi_level1_answer(tsi_level1 *l, ts_remote *out, ts_level1_stats *stats)
{
  mail m = {.parcels = 0};
  ts_parcels received = {0};
  ts_ranks ranks = *l->ranks;
  if (l->counting) ranks.traffic = NULL;
  int status = tsi_ranks_agree(l->ranks, answer_all(l, &m));
  if (!status) status = ts_sparse_exchange(&ranks, sizeof(atom_record), &m.p, &received);
  ts_parcels_free(&m.p);
  if (!status) status = tsi_ranks_agree(l->ranks, receive(l, &received, out, stats));
  ts_parcels_free(&received);
  return status;
}
