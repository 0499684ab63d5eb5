/* SPDX-License-Identifier: MIT
 *
 * Cutting runs over the edges four times: count, list the partner tiles (a mark per tile, so the
 * lists come out without sorting all edges), and write.  Linear in edges plus tiles. */
#include "neighbor/tiles.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

static int compare_int32(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Partner tiles of tile t: as sender's (`to`) or receiver's (`from`) partners.  mark [count] holds
 * the last tile that listed each; list gets them ascending, place [count] their index. */
static int partners(const ts_edges *e, int rows, int t, const ts_tile *tile, bool senders,
                    int32_t *mark, int32_t *list, int32_t *place)
{
  const int64_t *offset = senders ? e->row : e->column;
  int count = 0;
  for (int64_t k = offset[tile->first]; k < offset[tile->first + tile->n]; k++) {
    const int partner = senders ? e->sender[k] / rows : e->receiver[e->column_edge[k]] / rows;
    if (mark[partner] == t) continue;
    mark[partner] = t;
    list[count++] = partner;
  }
  qsort(list, (size_t)count, sizeof *list, compare_int32);
  for (int i = 0; i < count; i++)
    place[list[i]] = i;
  return count;
}

/* Fill one tile's own edges and entries; its arrays and lists are there. */
static void fill_from(const ts_edges *e, int rows, ts_tile *tile, const int32_t *place)
{
  for (int a = 0; a <= tile->n; a++)
    tile->row[a] = (int32_t)(e->row[tile->first + a] - tile->first_edge);
  for (int k = 0; k < tile->edges; k++) {
    const ts_lidx j = e->sender[tile->first_edge + k];
    tile->sender[k] = place[j / rows] * rows + j % rows;
  }
}

static void fill_to(const ts_edges *e, int rows, const ts_tile *tiles, ts_tile *tile,
                    const int32_t *place)
{
  const int64_t base = e->column[tile->first];
  for (int a = 0; a <= tile->n; a++)
    tile->column[a] = (int32_t)(e->column[tile->first + a] - base);
  for (int k = 0; k < tile->column[tile->n]; k++) {
    const int64_t edge = e->column_edge[base + k];
    const ts_lidx i = e->receiver[edge];
    tile->to_tile[k] = place[i / rows];
    tile->to_row[k] = i % rows;
    tile->to_edge[k] = (int32_t)(edge - tiles[i / rows].first_edge);
  }
}

/* Extents of every tile, and the length of all its index arrays but the partner lists. */
static int measure(const ts_edges *e, ts_tiles *tiles, size_t *length)
{
  *length = 0;
  for (int t = 0; t < tiles->count; t++) {
    ts_tile *tile = &tiles->tile[t];
    tile->first = (ts_lidx)((int64_t)t * tiles->rows);
    tile->n = e->n - tile->first < tiles->rows ? e->n - tile->first : tiles->rows;
    tile->first_edge = e->row[tile->first];
    const int64_t in = e->row[tile->first + tile->n] - tile->first_edge;
    const int64_t out = e->column[tile->first + tile->n] - e->column[tile->first];
    if (in > INT_MAX || out > INT_MAX)
      return tsi_fail(TS_ERR_UNSUPPORTED,
                      "a tile of %d atoms has %lld edges, more than %d; use a smaller tile_atoms",
                      tiles->rows, (long long)(in > out ? in : out), INT_MAX);
    tile->edges = (int)in;
    if (tile->edges > tiles->largest_edges) tiles->largest_edges = tile->edges;
    for (int a = 0; a < tile->n; a++) {
      const int64_t degree = e->row[tile->first + a + 1] - e->row[tile->first + a];
      if (degree > tiles->largest_degree) tiles->largest_degree = (int)degree;
    }
    *length += 2 * ((size_t)tile->n + 1) + 2 * (size_t)in + 3 * (size_t)out;
  }
  return 0;
}

static int32_t *take(int32_t **pool, size_t count)
{
  int32_t *piece = *pool;
  *pool += count;
  return piece;
}

int ts_tiles_build(const ts_edges *edges, int rows, ts_tiles **out)
{
  *out = NULL;
  ts_tiles *tiles = NULL;
  int32_t *mark = NULL, *place = NULL, *list = NULL;
  size_t length, lists = 0;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(tiles, 1), fail);
  tiles->rows = rows;
  tiles->count = (int)(((int64_t)edges->n + rows - 1) / rows);
  TS_TRY_GOTO(status, TSI_NEW(tiles->tile, tiles->count), fail);
  TS_TRY_GOTO(status, TSI_NEW(mark, tiles->count), fail);
  TS_TRY_GOTO(status, TSI_NEW(place, tiles->count), fail);
  TS_TRY_GOTO(status, TSI_NEW(list, tiles->count), fail);
  TS_TRY_GOTO(status, measure(edges, tiles, &length), fail);
  for (int pass = 0; pass < 2; pass++) /* how long the lists are */
    for (int t = 0; t < tiles->count; t++) {
      if (t == 0) memset(mark, -1, (size_t)tiles->count * sizeof *mark);
      const int count = partners(edges, rows, t, &tiles->tile[t], pass == 0, mark, list, place);
      *(pass == 0 ? &tiles->tile[t].nfrom : &tiles->tile[t].nto) = count;
      lists += (size_t)count;
    }
  TS_TRY_GOTO(status, TSI_NEW(tiles->pool, length + lists), fail);
  int32_t *pool = tiles->pool;
  for (int pass = 0; pass < 2; pass++)
    for (int t = 0; t < tiles->count; t++) {
      ts_tile *tile = &tiles->tile[t];
      if (t == 0) memset(mark, -1, (size_t)tiles->count * sizeof *mark);
      if (pass == 0) {
        tile->row = take(&pool, (size_t)tile->n + 1);
        tile->sender = take(&pool, (size_t)tile->edges);
        tile->from = take(&pool, (size_t)tile->nfrom);
        partners(edges, rows, t, tile, true, mark, tile->from, place);
        fill_from(edges, rows, tile, place);
      } else {
        const size_t entries =
            (size_t)(edges->column[tile->first + tile->n] - edges->column[tile->first]);
        tile->column = take(&pool, (size_t)tile->n + 1);
        tile->to_tile = take(&pool, entries);
        tile->to_row = take(&pool, entries);
        tile->to_edge = take(&pool, entries);
        tile->to = take(&pool, (size_t)tile->nto);
        partners(edges, rows, t, tile, false, mark, tile->to, place);
        fill_to(edges, rows, tiles->tile, tile, place);
      }
    }
  *out = tiles;
  tiles = NULL;
fail:
  free(mark);
  free(place);
  free(list);
  ts_tiles_destroy(&tiles);
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
