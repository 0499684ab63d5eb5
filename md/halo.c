/* SPDX-License-Identifier: MIT
 *
 * From a plan in atoms to lists in tiles and buffers; see halo.h. */
#include "md/halo.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

/* The atoms in use, and the request for them. */
static int take_remote(tsi_halo *h, const ts_remote *remote, const bool *used, ts_lidx own,
                       int32_t **rank, ts_lidx **index)
{
  for (ts_lidx i = 0; i < remote->n; i++)
    h->n += used[i];
  TS_TRY(TSI_NEW(h->x, own + h->n));
  TS_TRY(TSI_NEW(h->gid, h->n));
  TS_TRY(TSI_NEW(h->z, h->n));
  TS_TRY(TSI_NEW(*rank, h->n));
  TS_TRY(TSI_NEW(*index, h->n));
  ts_lidx k = 0;
  for (ts_lidx i = 0; i < remote->n; i++) {
    if (!used[i]) continue;
    memcpy(h->x[own + k], remote->x[i], sizeof h->x[k]);
    h->gid[k] = remote->gid[i];
    h->z[k] = remote->tag[i];
    (*rank)[k] = remote->rank[i];
    (*index)[k++] = remote->index[i];
  }
  return 0;
}

static int compare_int32(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static int check_partners(int count, const char *what)
{
  if (count <= TS_SLOT_BLOCKS) return 0;
  return tsi_fail(TS_ERR_UNSUPPORTED, "%d %s, at most %d can be; use a larger tile_atoms", count,
                  what, TS_SLOT_BLOCKS);
}

/* The atoms of one target as rows of tiles.  mark, place [tiles] */
static int make_outbound(tsi_halo *h, int t, int rows, int32_t *mark, int32_t *place,
                         int32_t **pool)
{
  const ts_lidx first = h->plan.start[t];
  const int n = h->plan.start[t + 1] - first;
  int32_t *slot = *pool, *list = *pool + n;
  int count = 0;
  for (int i = 0; i < n; i++) {
    const int tile = h->plan.row[first + i] / rows;
    if (mark[tile] == t) continue;
    mark[tile] = t;
    list[count++] = tile;
    h->sends[tile] = true;
  }
  TS_TRY(check_partners(count, "tiles send to one rank"));
  qsort(list, (size_t)count, sizeof *list, compare_int32);
  for (int i = 0; i < count; i++)
    place[list[i]] = i;
  for (int i = 0; i < n; i++) {
    const ts_lidx atom = h->plan.row[first + i];
    slot[i] = TS_SLOT(place[atom / rows], atom % rows);
  }
  h->target[t].out = (ts_outbound){
      .n = n, .slot = slot, .atom = h->plan.row + first, .ntiles = count, .tile = list};
  *pool += n + count;
  return 0;
}

/* What comes back to each tile.  The targets are walked in order, so every tile's entries come out
 * by target and then by row. */
static int make_inbound(tsi_halo *h, int ntiles, int rows, int32_t **pool)
{
  const ts_plan *p = &h->plan;
  for (ts_lidx i = 0; i < p->start[p->targets]; i++)
    h->inbound[p->row[i] / rows].n++;
  for (int tile = 0; tile < ntiles; tile++) {
    ts_inbound *in = &h->inbound[tile];
    in->slot = *pool;
    in->row = *pool + in->n;
    in->peer = *pool + 2 * in->n; /* at most as many targets as entries */
    in->rows = *pool + 3 * in->n;
    *pool += 4 * in->n;
    in->n = 0;
  }
  for (int t = 0; t < p->targets; t++)
    for (ts_lidx i = p->start[t]; i < p->start[t + 1]; i++) {
      ts_inbound *in = &h->inbound[p->row[i] / rows];
      int32_t *slot = (int32_t *)(uintptr_t)in->slot, *row = (int32_t *)(uintptr_t)in->row;
      int32_t *peer = (int32_t *)(uintptr_t)in->peer, *size = (int32_t *)(uintptr_t)in->rows;
      if (in->npeers == 0 || peer[in->npeers - 1] != t) {
        peer[in->npeers] = t;
        size[in->npeers++] = p->start[t + 1] - p->start[t];
        TS_TRY(check_partners(in->npeers, "ranks need atoms of one tile"));
      }
      slot[in->n] = TS_SLOT(in->npeers - 1, i - p->start[t]);
      row[in->n++] = p->row[i] % rows;
    }
  return 0;
}

static int make_lists(tsi_halo *h, int ntiles, int rows)
{
  int32_t *mark = NULL, *place = NULL, *pool;
  const size_t sent = (size_t)h->plan.start[h->plan.targets];
  int status;
  TS_TRY_GOTO(status, TSI_NEW(h->source, h->plan.sources), done);
  TS_TRY_GOTO(status, TSI_NEW(h->target, h->plan.targets), done);
  TS_TRY_GOTO(status, TSI_NEW(h->inbound, ntiles), done);
  TS_TRY_GOTO(status, TSI_NEW(h->sends, ntiles), done);
  TS_TRY_GOTO(status, TSI_NEW(h->pool, 6 * sent), done);
  TS_TRY_GOTO(status, TSI_NEW(mark, ntiles), done);
  TS_TRY_GOTO(status, TSI_NEW(place, ntiles), done);
  if (ntiles > 0) memset(mark, -1, (size_t)ntiles * sizeof *mark);
  pool = h->pool;
  for (int s = 0; s < h->plan.sources; s++) {
    h->source[s].rank = h->plan.source[s];
    h->source[s].n = h->plan.first[s + 1] - h->plan.first[s];
  }
  for (int t = 0; t < h->plan.targets; t++) {
    h->target[t].rank = h->plan.target[t];
    TS_TRY_GOTO(status, make_outbound(h, t, rows, mark, place, &pool), done);
  }
  status = make_inbound(h, ntiles, rows, &pool);
done:
  free(mark);
  free(place);
  return status;
}

int tsi_halo_create(const ts_ranks *ranks, const ts_remote *remote, const bool *used, ts_lidx own,
                    int rows, int layers, tsi_halo **out)
{
  int32_t *rank = NULL;
  ts_lidx *index = NULL;
  tsi_halo *h = NULL;
  *out = NULL;
  int status = TSI_NEW(h, 1);
  if (!status) status = take_remote(h, remote, used, own, &rank, &index);
  status = tsi_ranks_agree(ranks, status);
  if (!status) {
    const ts_plan_need need = {.n = h->n, .rank = rank, .index = index};
    h->layers = layers;
    h->own = own;
    status = ts_plan_build(ranks, &need, &h->plan);
  }
  if (!status) status = tsi_ranks_agree(ranks, make_lists(h, (own + rows - 1) / rows, rows));
  free(rank);
  free(index);
  if (status) tsi_halo_destroy(&h);
  *out = h;
  return status;
}

/* Both ends of a message have to be of the same size. */
static void register_positions(void *at, int n, starpu_data_handle_t *handle)
{
  starpu_vector_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)at, (uint32_t)n,
                              3 * sizeof(double));
}

void tsi_halo_carve(tsi_halo *h, tsi_carver *c, const ts_shape *shape, size_t real_size, bool fixed)
{
  const size_t width = ts_kv_width(shape);
  const size_t back = width * (fixed ? sizeof(int64_t) : real_size);
  for (int s = 0; s < h->plan.sources; s++) {
    tsi_source *from = &h->source[s];
    const size_t n = (size_t)from->n;
    if (c->arena) register_positions(h->x + h->own + h->plan.first[s], from->n, &from->x);
    for (int l = 0; l < h->layers; l++)
      tsi_carve(c, n * width * real_size, &from->kv[l]);
    tsi_carve(c, n * back, &from->dkv);
    tsi_carve(c, n * 3 * sizeof(double), &from->feel);
  }
  for (int t = 0; t < h->plan.targets; t++) {
    tsi_target *to = &h->target[t];
    const size_t n = (size_t)to->out.n;
    void *places = tsi_carve(c, n * 3 * sizeof(double), NULL);
    if (places) register_positions(places, to->out.n, &to->places);
    tsi_carve(c, n * width * real_size, &to->block);
    tsi_carve(c, n * back, &to->dkv);
    tsi_carve(c, n * 3 * sizeof(double), &to->feel);
  }
}

void tsi_halo_destroy(tsi_halo **halo)
{
  tsi_halo *h = *halo;
  if (!h) return;
  for (int s = 0; s < h->plan.sources && h->source; s++) {
    tsi_drop(&h->source[s].x);
    for (int l = 0; l < h->layers; l++)
      tsi_drop(&h->source[s].kv[l]);
    tsi_drop(&h->source[s].dkv);
    tsi_drop(&h->source[s].feel);
  }
  for (int t = 0; t < h->plan.targets && h->target; t++) {
    tsi_drop(&h->target[t].places);
    tsi_drop(&h->target[t].block);
    tsi_drop(&h->target[t].dkv);
    tsi_drop(&h->target[t].feel);
  }
  ts_plan_free(&h->plan);
  free(h->x);
  free(h->gid);
  free(h->z);
  free(h->source);
  free(h->target);
  free(h->inbound);
  free(h->sends);
  free(h->pool);
  free(h);
  *halo = NULL;
}
