/* SPDX-License-Identifier: MIT
 *
 * Publish, join along three axes, answer.  Every phase works on lists of (cell, rank), sorted and
 * without repetition, so the order in which messages arrive does not matter. */
#include "neighbor/level1_routed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/peers_deliver.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { MAX_AXIS_BITS = 20 };

/* What travels: in the list of a cell, `rank` may own an atom in reach of it. */
typedef struct entry {
  int32_t dest, rank;
  uint64_t cell;
} entry;

typedef struct coarse_grid {
  const ts_cell *cell;
  double low[3], scale[3]; /* coordinate = floor((fraction - low) * scale) */
  int bits[3], offset[3];  /* of an axis within a key */
} coarse_grid;

typedef struct joining {
  ts_ranks ranks;
  coarse_grid grid;
  ts_router *router;
  ts_delivery *delivery;
  ts_box *owners; /* [hosted] entries at their cell's home: who occupies it */
  ts_box *list;   /* [hosted] who may matter to it */
} joining;

/* ---- the grid ---- */

/* Lowest and highest fraction, where a direction has no period: over all atoms of all ranks. */
static int bound(const ts_ranks *ranks, const ts_cell *cell, const ts_shard *shard, double low[3],
                 double high[3])
{
  double ends[6] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
  for (int h = 0; h < ranks->hosted; h++)
    for (ts_lidx i = 0; i < shard[h].n; i++) {
      double f[3];
      ts_cell_fraction(cell, shard[h].x[i], f);
      for (int k = 0; k < 3; k++) {
        ends[k] = fmin(ends[k], f[k]);
        ends[3 + k] = fmin(ends[3 + k], -f[k]);
      }
    }
  const bool bounded = cell->periodic[0] && cell->periodic[1] && cell->periodic[2];
  if (!bounded && ranks->comm != MPI_COMM_NULL)
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, ends, 6, MPI_DOUBLE, MPI_MIN, ranks->comm));
  for (int k = 0; k < 3; k++) {
    low[k] = cell->periodic[k] ? 0 : ends[k];
    high[k] = cell->periodic[k] ? 1 : -ends[3 + k];
  }
  return 0;
}

/* The finest grid of powers of two with cells no thinner than `width` [Å] between their faces. */
static int make_grid(const ts_ranks *ranks, const ts_cell *cell, double width,
                     const ts_shard *shard, coarse_grid *g)
{
  double high[3];
  *g = (coarse_grid){.cell = cell};
  TS_TRY(bound(ranks, cell, shard, g->low, high));
  width *= 1 + 1e-9; /* far above the rounding of a fraction, far below what matters */
  for (int k = 0, offset = 0; k < 3; k++) {
    const double extent = high[k] - g->low[k];
    while (g->bits[k] < MAX_AXIS_BITS && extent * cell->height[k] >= width * (2 << g->bits[k]))
      g->bits[k]++;
    g->scale[k] = extent > 0 && extent < INFINITY ? (1 << g->bits[k]) / extent : 0;
    g->offset[k] = offset;
    offset += g->bits[k];
  }
  return 0;
}

static uint64_t gray(uint64_t c)
{
  return c ^ (c >> 1);
}

static uint64_t gray_inverse(uint64_t code)
{
  for (int shift = 1; shift < 32; shift *= 2)
    code ^= code >> shift;
  return code;
}

static int cell_of(const coarse_grid *g, const double x[3], uint64_t *key)
{
  double f[3];
  ts_cell_fraction(g->cell, x, f);
  *key = 0;
  for (int k = 0; k < 3; k++) {
    if (!isfinite(f[k])) return tsi_fail(TS_ERR_SIMULATION, "an atom's position is not finite");
    if (g->cell->periodic[k]) f[k] -= floor(f[k]);
    const double last = (1 << g->bits[k]) - 1;
    const double c = fmin(fmax(floor((f[k] - g->low[k]) * g->scale[k]), 0), last);
    *key |= gray((uint64_t)c) << g->offset[k];
  }
  return 0;
}

/* ---- lists ---- */

static int by_cell_rank(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  if (x->cell != y->cell) return x->cell < y->cell ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_dest_rank(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  if (x->dest != y->dest) return x->dest < y->dest ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static entry *entries(const ts_box *box)
{
  return (entry *)(void *)box->data; /* tsi_alloc aligns */
}

static void sort_distinct(ts_box *box, int (*order)(const void *, const void *))
{
  entry *e = entries(box);
  int64_t kept = 0;
  if (box->n) qsort(e, (size_t)box->n, sizeof *e, order);
  for (int64_t i = 0; i < box->n; i++)
    if (kept == 0 || order(&e[kept - 1], &e[i]) != 0) e[kept++] = e[i];
  box->n = kept;
}

static int add(ts_box *box, entry e)
{
  return ts_box_add(box, sizeof e, 1, &e);
}

static void drop(ts_box *box, int n)
{
  for (int h = 0; box && h < n; h++)
    free(box[h].data);
  free(box);
}

static ts_key key_of(uint64_t cell)
{
  return (ts_key){cell, 0};
}

/* ---- publish ---- */

static int occupied(const joining *j, int h, const ts_shard *shard, ts_box *box)
{
  for (ts_lidx i = 0; i < shard->n; i++) {
    entry e = {.rank = j->ranks.first + h};
    TS_TRY(cell_of(&j->grid, shard->x[i], &e.cell));
    const bool repeated = box->n && entries(box)[box->n - 1].cell == e.cell;
    if (!repeated) TS_TRY(add(box, e));
  }
  sort_distinct(box, by_cell_rank);
  for (int64_t i = 0; i < box->n; i++)
    entries(box)[i].dest = ts_router_rank(j->router, key_of(entries(box)[i].cell));
  return 0;
}

static int publish(joining *j, const ts_shard *shard)
{
  for (int h = 0; h < j->ranks.hosted; h++)
    TS_TRY(occupied(j, h, &shard[h], &j->owners[h]));
  TS_TRY(ts_delivery_run(j->delivery, sizeof(entry), j->owners));
  for (int h = 0; h < j->ranks.hosted; h++) {
    sort_distinct(&j->owners[h], by_cell_rank);
    TS_TRY(ts_box_add(&j->list[h], sizeof(entry), j->owners[h].n, j->owners[h].data));
  }
  return 0;
}

/* ---- join along one axis ---- */

typedef struct axis_step {
  const joining *join;
  int axis, slots;
  ts_peers *peers;
  ts_box *going;  /* [hosted, slots] */
  int64_t *count; /* [hosted, slots] */
} axis_step;

/* The key of the next cell up or down the axis; false where the grid ends.  *bit: what differs. */
static bool next_cell(const coarse_grid *g, int axis, bool up, uint64_t key, uint64_t *next,
                      int *bit)
{
  const uint64_t mask = (UINT64_C(1) << g->bits[axis]) - 1;
  const uint64_t code = key >> g->offset[axis] & mask, c = gray_inverse(code);
  if (!g->cell->periodic[axis] && c == (up ? mask : 0)) return false;
  const uint64_t flipped = code ^ gray((up ? c + 1 : c - 1) & mask);
  *bit = __builtin_ctzll(flipped);
  *next = key ^ flipped << g->offset[axis];
  return true;
}

static int pass_on(axis_step *s, int h, entry e)
{
  const coarse_grid *g = &s->join->grid;
  const int ways = g->bits[s->axis] == 1 && g->cell->periodic[s->axis] ? 1 : 2;
  for (int up = 0; up < ways; up++) { /* two cells around a period: up and down are the same */
    entry moved = e;
    int bit = 0;
    if (!next_cell(g, s->axis, up, e.cell, &moved.cell, &bit)) continue;
    const int slot = ts_peers_slot(s->peers, key_of(moved.cell), bit);
    TS_TRY(add(&s->going[h * s->slots + slot], moved));
    s->count[h * s->slots + slot]++;
  }
  return 0;
}

static void pack(void *context, int host, int slot, void *out)
{
  const axis_step *s = context;
  const ts_box *box = &s->going[host * s->slots + slot];
  if (box->n) memcpy(out, box->data, (size_t)box->n * sizeof(entry));
}

static int exchange_axis(axis_step *s, ts_box *list, ts_exchange *x)
{
  const ts_ranks *ranks = &s->join->ranks;
  for (int h = 0; h < ranks->hosted; h++)
    for (int64_t i = 0; i < list[h].n; i++)
      TS_TRY(pass_on(s, h, entries(&list[h])[i]));
  TS_TRY(ts_peers_exchange(s->peers, sizeof(entry), s->count, pack, s, x));
  for (int h = 0; h < ranks->hosted; h++) {
    const int64_t from = x->first[h * s->slots], to = x->first[(h + 1) * s->slots];
    TS_TRY(ts_box_add(&list[h], sizeof(entry), to - from, x->data + (size_t)from * sizeof(entry)));
    sort_distinct(&list[h], by_cell_rank);
  }
  return 0;
}

static int join_axis(joining *j, int axis)
{
  axis_step s = {.join = j, .axis = axis};
  ts_exchange x = {0};
  ts_key shift[MAX_AXIS_BITS];
  const int bits = j->grid.bits[axis], hosted = j->ranks.hosted;
  int status = 0;
  for (int b = 0; b < bits; b++)
    shift[b] = ts_key_bit(j->grid.offset[axis] + b);
  TS_TRY_GOTO(status, ts_peers_create(&j->ranks, j->router, bits, shift, &s.peers), done);
  s.slots = ts_peers_slots(s.peers);
  TS_TRY_GOTO(status, ts_exchange_create(s.peers, &x), done);
  TS_TRY_GOTO(status, TSI_NEW(s.going, (int64_t)hosted * s.slots), done);
  TS_TRY_GOTO(status, TSI_NEW(s.count, (int64_t)hosted * s.slots), done);
  status = exchange_axis(&s, j->list, &x);
done:
  drop(s.going, hosted * s.slots);
  free(s.count);
  ts_exchange_destroy(&x);
  ts_peers_destroy(&s.peers);
  return status;
}

/* ---- answer ---- */

static int64_t end_of_cell(const ts_box *box, int64_t i)
{
  const uint64_t cell = entries(box)[i].cell;
  while (i < box->n && entries(box)[i].cell == cell)
    i++;
  return i;
}

/* To each owner of each cell, the list of the cell. */
static int answers_of(const ts_box *owners, const ts_box *list, ts_box *out)
{
  for (int64_t i = 0, l = 0; i < owners->n;) {
    const int64_t next = end_of_cell(owners, i);
    while (entries(list)[l].cell < entries(owners)[i].cell)
      l++; /* it contains the owners */
    const int64_t end = end_of_cell(list, l);
    for (; i < next; i++)
      for (int64_t k = l; k < end; k++)
        TS_TRY(add(out, (entry){entries(owners)[i].rank, entries(list)[k].rank, 0}));
    l = end;
  }
  sort_distinct(out, by_dest_rank);
  return 0;
}

static int answer(joining *j, ts_sources *sources)
{
  for (int h = 0; h < j->ranks.hosted; h++) {
    ts_box out = {0};
    const int status = answers_of(&j->owners[h], &j->list[h], &out);
    free(j->list[h].data);
    j->list[h] = out;
    TS_TRY(status);
  }
  TS_TRY(ts_delivery_run(j->delivery, sizeof(entry), j->list));
  for (int h = 0; h < j->ranks.hosted; h++) {
    const ts_box *box = &j->list[h];
    sort_distinct(&j->list[h], by_dest_rank);
    TS_TRY(TSI_NEW(sources[h].rank, box->n));
    sources[h].n = (int)box->n;
    for (int64_t i = 0; i < box->n; i++)
      sources[h].rank[i] = entries(box)[i].rank;
  }
  return 0;
}

/* ---- all of it ---- */

/* The shifts in use: a step along any axis, the coarse bits of all axes first. */
static int route(joining *j, const ts_route_params *params, ts_level1_grid *grid)
{
  const int *bits = j->grid.bits;
  ts_route_params own = *params;
  ts_key shift[3 * MAX_AXIS_BITS];
  own.ranks = tsi_power_of_two_below(j->ranks.size);
  own.nshift = 0;
  own.shift = shift;
  for (int down = 1; down <= MAX_AXIS_BITS; down++)
    for (int k = 0; k < 3; k++)
      if (down <= bits[k]) shift[own.nshift++] = ts_key_bit(j->grid.offset[k] + bits[k] - down);
  TS_TRY(ts_router_create(&own, &j->router));
  if (grid) {
    memcpy(grid->bits, bits, sizeof grid->bits);
    grid->unreached = own.nshift ? ts_router_unreached(j->router, NULL) : own.ranks - 1;
  }
  return ts_delivery_create(&j->ranks, params->mode, &j->delivery);
}

int ts_level1_routed(const ts_ranks *ranks, const ts_route_params *params, const ts_cell *cell,
                     double reach, double width, const ts_shard *shard, ts_sources *sources,
                     ts_level1_grid *grid)
{
  joining j = {.ranks = *ranks};
  int status = 0;
  if (!(reach > 0 && reach < INFINITY && width >= 0))
    return tsi_fail(TS_ERR_ARG, "routed: reach %g and width %g: expected above 0, and 0 or more",
                    reach, width);
  memset(sources, 0, (size_t)ranks->hosted * sizeof *sources);
  TS_TRY_GOTO(status, make_grid(ranks, cell, fmax(reach, width), shard, &j.grid), done);
  TS_TRY_GOTO(status, route(&j, params, grid), done);
  TS_TRY_GOTO(status, TSI_NEW(j.owners, ranks->hosted), done);
  TS_TRY_GOTO(status, TSI_NEW(j.list, ranks->hosted), done);
  TS_TRY_GOTO(status, publish(&j, shard), done);
  for (int k = 0; k < 3; k++)
    if (j.grid.bits[k]) TS_TRY_GOTO(status, join_axis(&j, k), done);
  TS_TRY_GOTO(status, answer(&j, sources), done);
done:
  for (int h = 0; status && h < ranks->hosted; h++) {
    free(sources[h].rank);
    sources[h] = (ts_sources){0};
  }
  drop(j.owners, ranks->hosted);
  drop(j.list, ranks->hosted);
  ts_delivery_destroy(&j.delivery);
  ts_router_destroy(&j.router);
  return status;
}
