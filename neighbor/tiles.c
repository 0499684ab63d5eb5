/* SPDX-License-Identifier: MIT
 *
 * Cutting runs over the edges four times: count, list the partner blocks (a mark per block, so the
 * lists come out without sorting all edges), and write.  Linear in edges plus blocks. */
#include "neighbor/tiles.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

/* What the passes share. */
typedef struct cutting {
  const ts_edges *e;
  ts_tiles *tiles;
  int blocks;     /* tiles and halo blocks */
  int32_t *halo;  /* [nsenders - n] block of a halo sender */
  int32_t *mark;  /* [blocks] last block that listed each */
  int32_t *place; /* [blocks] index in the list */
  int32_t *list;  /* [blocks] */
} cutting;

static int compare_int32(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static int block_of(const cutting *c, ts_lidx sender)
{
  return sender < c->e->n ? sender / c->tiles->rows : c->halo[sender - c->e->n];
}

/* Partner blocks of block t, those that send to it or those that receive from it, ascending into
 * list, their index into place. */
static int partners(cutting *c, int t, bool senders, int32_t *list)
{
  const ts_edges *e = c->e;
  const ts_tile *tile = &c->tiles->tile[t];
  const int64_t *offset = senders ? e->row : e->column;
  int count = 0;
  for (int64_t k = offset[tile->first]; k < offset[tile->first + tile->n]; k++) {
    const int partner =
        senders ? block_of(c, e->sender[k]) : e->receiver[e->column_edge[k]] / c->tiles->rows;
    if (c->mark[partner] == t) continue;
    c->mark[partner] = t;
    list[count++] = partner;
  }
  qsort(list, (size_t)count, sizeof *list, compare_int32);
  for (int i = 0; i < count; i++)
    c->place[list[i]] = i;
  return count;
}

/* Fill one tile's own edges; its arrays and list are there. */
static void fill_from(const cutting *c, ts_tile *tile)
{
  const ts_edges *e = c->e;
  const ts_tiles *tiles = c->tiles;
  for (int i = 0; i < tile->nfrom; i++) {
    const bool own = tile->from[i] < tiles->count;
    tile->from_rows[i] = own ? tiles->rows : tiles->tile[tile->from[i]].n;
    tile->nlocal += own;
  }
  for (int a = 0; a <= tile->n; a++)
    tile->row[a] = (int32_t)(e->row[tile->first + a] - tile->first_edge);
  for (int k = 0; k < tile->edges; k++) {
    const ts_lidx j = e->sender[tile->first_edge + k];
    const int block = block_of(c, j);
    tile->sender[k] = TS_SLOT(c->place[block], j - tiles->tile[block].first);
  }
}

/* Fill one block's entries as sender. */
static void fill_to(const cutting *c, ts_tile *tile)
{
  const ts_edges *e = c->e;
  const int rows = c->tiles->rows;
  const int64_t base = e->column[tile->first];
  for (int a = 0; a <= tile->n; a++)
    tile->column[a] = (int32_t)(e->column[tile->first + a] - base);
  for (int k = 0; k < tile->column[tile->n]; k++) {
    const int64_t edge = e->column_edge[base + k];
    const ts_lidx i = e->receiver[edge];
    tile->to_tile[k] = c->place[i / rows];
    tile->to_row[k] = i % rows;
    tile->to_edge[k] = (int32_t)(edge - c->tiles->tile[i / rows].first_edge);
  }
}

static int64_t entries_of(const ts_edges *e, const ts_tile *tile)
{
  return e->column[tile->first + tile->n] - e->column[tile->first];
}

/* Extents of every block, and the length of all index arrays but the partner lists. */
static int measure(cutting *c, const ts_lidx *block, size_t *length)
{
  const ts_edges *e = c->e;
  ts_tiles *tiles = c->tiles;
  *length = 0;
  for (int t = 0; t < c->blocks; t++) {
    ts_tile *tile = &tiles->tile[t];
    if (t < tiles->count) {
      tile->first = (ts_lidx)((int64_t)t * tiles->rows);
      tile->n = e->n - tile->first < tiles->rows ? e->n - tile->first : tiles->rows;
      tile->first_edge = e->row[tile->first];
    } else {
      const int b = t - tiles->count;
      tile->first = e->n + block[b];
      tile->n = block[b + 1] - block[b];
      for (int k = 0; k < tile->n; k++)
        c->halo[block[b] + k] = t;
    }
    const int64_t in = t < tiles->count ? e->row[tile->first + tile->n] - tile->first_edge : 0;
    const int64_t out = entries_of(e, tile);
    if (in > INT_MAX || out > INT_MAX)
      return tsi_fail(TS_ERR_UNSUPPORTED,
                      "a tile of %d atoms has %lld edges, more than %d; use a smaller tile_atoms",
                      tile->n, (long long)(in > out ? in : out), INT_MAX);
    if (tile->n > TS_SLOT_ROWS)
      return tsi_fail(TS_ERR_UNSUPPORTED, "a rank needs %d atoms of one other, at most %d can be",
                      tile->n, TS_SLOT_ROWS);
    tile->edges = (int)in;
    if (tile->edges > tiles->largest_edges) tiles->largest_edges = tile->edges;
    for (int a = 0; a < tile->n && t < tiles->count; a++) {
      const int64_t degree = e->row[tile->first + a + 1] - e->row[tile->first + a];
      if (degree > tiles->largest_degree) tiles->largest_degree = (int)degree;
    }
    *length += 2 * ((size_t)tile->n + 1) + (size_t)in + 3 * (size_t)out;
  }
  return 0;
}

/* How long the partner lists are. */
static int count_partners(cutting *c, size_t *length)
{
  for (int pass = 0; pass < 2; pass++) {
    memset(c->mark, -1, (size_t)c->blocks * sizeof *c->mark);
    for (int t = 0; t < (pass == 0 ? c->tiles->count : c->blocks); t++) {
      ts_tile *tile = &c->tiles->tile[t];
      const int count = partners(c, t, pass == 0, c->list);
      if (count > TS_SLOT_BLOCKS)
        return tsi_fail(TS_ERR_UNSUPPORTED,
                        "a tile of %d atoms has %d partner tiles, at most %d can be; use a larger "
                        "tile_atoms",
                        tile->n, count, TS_SLOT_BLOCKS);
      *(pass == 0 ? &tile->nfrom : &tile->nto) = count;
      *length += (size_t)(pass == 0 ? 2 * count : count);
    }
  }
  return 0;
}

static int32_t *take(int32_t **pool, size_t count)
{
  int32_t *piece = *pool;
  *pool += count;
  return piece;
}

static void fill(cutting *c)
{
  int32_t *pool = c->tiles->pool;
  memset(c->mark, -1, (size_t)c->blocks * sizeof *c->mark);
  for (int t = 0; t < c->tiles->count; t++) {
    ts_tile *tile = &c->tiles->tile[t];
    tile->row = take(&pool, (size_t)tile->n + 1);
    tile->sender = take(&pool, (size_t)tile->edges);
    tile->from = take(&pool, (size_t)tile->nfrom);
    tile->from_rows = take(&pool, (size_t)tile->nfrom);
    partners(c, t, true, tile->from);
    fill_from(c, tile);
  }
  memset(c->mark, -1, (size_t)c->blocks * sizeof *c->mark);
  for (int t = 0; t < c->blocks; t++) {
    ts_tile *tile = &c->tiles->tile[t];
    const size_t entries = (size_t)entries_of(c->e, tile);
    tile->column = take(&pool, (size_t)tile->n + 1);
    tile->to_tile = take(&pool, entries);
    tile->to_row = take(&pool, entries);
    tile->to_edge = take(&pool, entries);
    tile->to = take(&pool, (size_t)tile->nto);
    partners(c, t, false, tile->to);
    fill_to(c, tile);
  }
}

static int cut(cutting *c, const ts_lidx *block)
{
  ts_tiles *tiles = c->tiles;
  size_t length;
  TS_TRY(TSI_NEW(tiles->tile, c->blocks));
  TS_TRY(TSI_NEW(c->halo, c->e->nsenders - c->e->n));
  TS_TRY(TSI_NEW(c->mark, c->blocks));
  TS_TRY(TSI_NEW(c->place, c->blocks));
  TS_TRY(TSI_NEW(c->list, c->blocks));
  TS_TRY(measure(c, block, &length));
  TS_TRY(count_partners(c, &length));
  TS_TRY(TSI_NEW(tiles->pool, length));
  fill(c);
  return 0;
}

int ts_tiles_build(const ts_edges *edges, int rows, int halos, const ts_lidx *block, ts_tiles **out)
{
  *out = NULL;
  cutting c = {.e = edges};
  TS_TRY(TSI_NEW(c.tiles, 1));
  c.tiles->rows = rows;
  c.tiles->count = (int)(((int64_t)edges->n + rows - 1) / rows);
  c.tiles->halos = halos;
  c.blocks = c.tiles->count + halos;
  const int status = cut(&c, block);
  free(c.halo);
  free(c.mark);
  free(c.place);
  free(c.list);
  if (status) ts_tiles_destroy(&c.tiles);
  *out = c.tiles;
  return status;
}

void ts_tiles_destroy(ts_tiles **tiles)
{
  if (!*tiles) return;
  free((*tiles)->tile);
  free((*tiles)->pool);
  free(*tiles);
  *tiles = NULL;
}
