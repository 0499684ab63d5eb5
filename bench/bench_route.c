/* SPDX-License-Identifier: MIT
 *
 * Messages and bytes of routing.  Alone: the term exchange of tests/terms.c counted for 1 to 4,096
 * virtual ranks, both routings, and Level 1 metadata of `routed` beside all-gathered boxes.  Under
 * mpirun: the term exchange for real, whose counts equal the virtual ones.
 *
 *   bench_route [most virtual ranks [atoms per rank]]
 *   mpirun -n 4 bench_route */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "neighbor/curve.h"
#include "neighbor/level1_routed.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "tests/terms.h"

enum { START = 100, MAX_SIZES = 16, BOX_SET = 1792 };
static const double threshold = 0.01;

/* ---- the term exchange, counted ---- */

typedef struct counter {
  ts_route_mode mode;
  int ranks;
  ts_router *router;
  int64_t payloads, terms; /* pairs of ranks that talk, terms that leave */
  uint64_t *seen;          /* [ranks, ranks] bits, cleared for each generator */
  int64_t *mine;           /* [ranks] payload messages of each */
} counter;

typedef struct counters {
  int n;
  counter c[2 * MAX_SIZES];
} counters;

static void watch(void *context, int generator, ts_key key, ts_key shifted)
{
  counters *all = context;
  (void)generator;
  for (int i = 0; i < all->n; i++) {
    counter *c = &all->c[i];
    const int from = ts_router_rank(c->router, key), to = ts_router_rank(c->router, shifted);
    if (from == to) continue;
    const int64_t bit = (int64_t)from * c->ranks + to;
    c->terms++;
    if (c->seen[bit / 64] >> bit % 64 & 1) continue;
    c->seen[bit / 64] |= UINT64_C(1) << bit % 64;
    c->payloads++;
    c->mine[from]++;
  }
}

static void forget(counters *all)
{
  for (int i = 0; i < all->n; i++)
    memset(all->c[i].seen, 0,
           ((size_t)all->c[i].ranks * (size_t)all->c[i].ranks / 64 + 1) * sizeof(uint64_t));
}

/* Count messages of a rank and layer: every slot of the window, empty or not. */
static int64_t count_messages(const counter *c)
{
  if (c->mode == TS_ROUTE_SPLITMIX) return (int64_t)TERM_GENERATORS * (c->ranks - 1);
  int64_t n = 0;
  for (int g = 0; g < TERM_GENERATORS; g++)
    n += ts_router_shift(c->router, terms_generator(g)) != 0;
  return n;
}

static void print_terms(const char *kind, const char *mode, int ranks, int64_t held,
                        double messages, double most, double bytes)
{
  printf("%-8s %-9s %6d %8lld %14.1f %14.1f %14.0f\n", kind, mode, ranks, (long long)held, messages,
         most, bytes);
  fflush(stdout);
}

static void print_counter(const counter *c, int64_t held)
{
  const double counts = (double)count_messages(c);
  int64_t most = 0;
  for (int k = 0; k < c->ranks; k++)
    if (c->mine[k] > most) most = c->mine[k];
  const double bytes =
      counts * sizeof(int64_t) + (double)c->terms * sizeof(term_message) / c->ranks;
  print_terms("virtual", ts_route_mode_name(c->mode), c->ranks, held,
              counts + (double)c->payloads / c->ranks, counts + (double)most, bytes);
}

static int count_virtual(int most)
{
  counters all = {0};
  const ts_ranks alone = ts_ranks_virtual(1);
  terms *t = NULL;
  for (int ranks = 1; ranks <= most; ranks *= 2)
    for (int mode = 0; mode < 2; mode++) {
      counter *c = &all.c[all.n++];
      *c = (counter){.mode = (ts_route_mode)mode, .ranks = ranks};
      TS_TRY(terms_router(c->mode, ranks, &c->router));
      TS_TRY(TSI_NEW(c->seen, (int64_t)ranks * ranks / 64 + 1));
      TS_TRY(TSI_NEW(c->mine, ranks));
    }
  TS_TRY(terms_create(&alone, TS_ROUTE_LINEAR, START, &t));
  for (int g = 0; g < TERM_GENERATORS; g++) {
    TS_TRY(terms_apply(t, g, threshold, watch, &all));
    forget(&all);
  }
  for (int i = 0; i < all.n; i++) {
    print_counter(&all.c[i], terms_count(t));
    ts_router_destroy(&all.c[i].router);
    free(all.c[i].seen);
    free(all.c[i].mine);
  }
  terms_destroy(&t);
  return 0;
}

/* ---- the term exchange, done ---- */

static int exchange_real(ts_world *world, ts_route_mode mode)
{
  ts_ranks ranks;
  ts_traffic traffic = {0};
  terms *t = NULL;
  TS_TRY(ts_ranks_of(ts_world_comm(world), &ranks));
  if (mode == TS_ROUTE_LINEAR && (ranks.size & (ranks.size - 1))) return 0;
  ranks.traffic = &traffic;
  TS_TRY(terms_create(&ranks, mode, START, &t));
  for (int g = 0; g < TERM_GENERATORS; g++)
    TS_TRY(terms_apply(t, g, threshold, NULL, NULL));
  int64_t sum[3] = {terms_count(t), traffic.messages, traffic.bytes}, most = traffic.messages;
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_INT64_T, MPI_SUM, ranks.comm));
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, ranks.comm));
  if (ranks.first == 0)
    print_terms("real", ts_route_mode_name(mode), ranks.size, sum[0], (double)sum[1] / ranks.size,
                (double)most, (double)sum[2] / ranks.size);
  terms_destroy(&t);
  return 0;
}

/* ---- Level 1 metadata ---- */

/* Random atoms at 0.1 per cubic Angstrom in a cube, along the Hilbert curve. */
static int make_atoms(ts_lidx n, ts_cell *cell, double (**out)[3])
{
  const double length = cbrt((double)n / 0.1);
  const double h[3][3] = {{length, 0, 0}, {0, length, 0}, {0, 0, length}};
  double(*raw)[3] = NULL;
  ts_gidx *gid = NULL;
  ts_lidx *order = NULL;
  TS_TRY(ts_cell_init(cell, h, NULL));
  TS_TRY(TSI_NEW(raw, n));
  TS_TRY(TSI_NEW(*out, n));
  TS_TRY(TSI_NEW(gid, n));
  TS_TRY(TSI_NEW(order, n));
  for (ts_lidx i = 0; i < n; i++) {
    gid[i] = i;
    for (uint64_t k = 0; k < 3; k++)
      raw[i][k] =
          length * 0x1p-53 * (double)(tsi_key_avalanche((ts_key){(uint64_t)i, k}, 11) >> 11);
  }
  TS_TRY(ts_curve_order(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, cell, n, (const double(*)[3])raw, gid,
                        order));
  for (ts_lidx i = 0; i < n; i++)
    memcpy((*out)[i], raw[order[i]], sizeof raw[i]);
  free(raw);
  free(gid);
  free(order);
  return 0;
}

static int level1(int size, ts_lidx each, double reach, double width)
{
  ts_ranks ranks = ts_ranks_virtual(size);
  ts_shard *shard = NULL;
  ts_sources *sources = NULL;
  ts_cell cell;
  double(*x)[3] = NULL;
  ts_route_params p;
  ts_level1_grid grid;
  ts_route_params_init(&p, size);
  TS_TRY(make_atoms(size * each, &cell, &x));
  TS_TRY(TSI_NEW(ranks.traffic, size));
  TS_TRY(TSI_NEW(shard, size));
  TS_TRY(TSI_NEW(sources, size));
  for (int k = 0; k < size; k++)
    shard[k] = (ts_shard){.n = each, .x = (const double(*)[3]) & x[(int64_t)k * each]};
  TS_TRY(ts_level1_routed(&ranks, &p, &cell, reach, width, shard, sources, &grid));
  int64_t messages = 0, bytes = 0, peers = 0, most = 0;
  for (int k = 0; k < size; k++) {
    messages += ranks.traffic[k].messages;
    bytes += ranks.traffic[k].bytes;
    peers += sources[k].n;
    if (sources[k].n > most) most = sources[k].n;
    free(sources[k].rank);
  }
  printf("%6d %6.1f %2d %2d %2d %6d %10.1f %10.0f %7.1f %6lld %12d\n", size, width, grid.bits[0],
         grid.bits[1], grid.bits[2], grid.unreached, (double)messages / size, (double)bytes / size,
         (double)peers / size, (long long)most, BOX_SET * (size - 1));
  fflush(stdout);
  free(ranks.traffic);
  free(shard);
  free(sources);
  free(x);
  return 0;
}

static int run(ts_world *world, int most, ts_lidx each)
{
  if (ts_world_rank(world) == 0)
    printf("%-8s %-9s %6s %8s %14s %14s %14s\n", "ranks", "mode", "K", "terms", "messages", "most",
           "bytes");
  if (ts_world_size(world) > 1) {
    TS_TRY(exchange_real(world, TS_ROUTE_LINEAR));
    return exchange_real(world, TS_ROUTE_SPLITMIX);
  }
  TS_TRY(count_virtual(most < 4096 ? most : 4096));
  const double edge = cbrt(each / 0.1);
  printf("\nLevel 1, %d atoms per rank, reach %.1f; per rank; boxes all-gathered: received\n", each,
         edge / 4);
  printf("%6s %6s %8s %6s %10s %10s %7s %6s %12s\n", "K", "width", "bits", "unused", "messages",
         "bytes", "sources", "most", "boxes bytes");
  for (int size = 64; size <= most; size *= 4) {
    TS_TRY(level1(size, each, edge / 4, 0));
    TS_TRY(level1(size, each, edge / 4, edge / 2));
  }
  return 0;
}

int main(int argc, char **argv)
{
  ts_world *world = NULL;
  const int most = argc > 1 ? atoi(argv[1]) : 16384, each = argc > 2 ? atoi(argv[2]) : 100;
  int status = ts_world_create(&world);
  if (!status) status = run(world, most, each);
  if (status) fprintf(stderr, "bench_route: %s\n", ts_error_message());
  if (status && world) ts_world_abort(world, status);
  ts_world_destroy(&world);
  return status ? 1 : 0;
}
