/* SPDX-License-Identifier: MIT
 *
 * Level 1 on virtual ranks: uniform random atoms at 0.1 per cubic Ångström in a cubic periodic
 * cell, sorted along each curve and cut into equal counts.  Per scheme: ranks asked (largest,
 * mean, the rank itself included), pools of a rank (largest: atoms of all images asked for, those
 * near the cell, those sent), bytes published, and processor time per rank [ms].
 *
 *   bench/bench_level1 [ranks [atoms of a rank [reach [seed]]]]     64 25000 8 1 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "neighbor/curve.h"
#include "neighbor/level1.h"
#include "runtime/error.h"
#include "runtime/memory.h"

static void check(int status)
{
  if (!status) return;
  fprintf(stderr, "%s\n", ts_error_message());
  exit(1);
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return ldexp((double)((z ^ z >> 31) >> 11), -53);
}

typedef struct bench {
  int ranks;
  ts_lidx each, n;
  double reach;
  ts_cell cell;
  double (*raw)[3], (*x)[3];
  ts_gidx *gid;
  ts_lidx *order;
  ts_shard *shard;
  ts_remote *remote;
  ts_level1_stats *stats;
} bench;

static void make_atoms(bench *b, uint64_t seed)
{
  b->n = b->ranks * b->each;
  const double side = cbrt(b->n / 0.1);
  const double h[3][3] = {{side, 0, 0}, {0, side, 0}, {0, 0, side}};
  check(ts_cell_init(&b->cell, h, NULL));
  check(TSI_NEW(b->raw, b->n));
  check(TSI_NEW(b->x, b->n));
  check(TSI_NEW(b->gid, b->n));
  check(TSI_NEW(b->order, b->n));
  check(TSI_NEW(b->shard, b->ranks));
  check(TSI_NEW(b->remote, b->ranks));
  check(TSI_NEW(b->stats, b->ranks));
  for (ts_lidx i = 0; i < b->n; i++)
    for (int k = 0; k < 3; k++)
      b->raw[i][k] = uniform(&seed) * side;
}

static void cut(bench *b, ts_curve curve)
{
  for (ts_lidx i = 0; i < b->n; i++)
    b->gid[i] = i;
  check(ts_curve_order(curve, TS_NORMALIZE_AXES, &b->cell, b->n, (const double(*)[3])b->raw, b->gid,
                       b->order));
  for (ts_lidx i = 0; i < b->n; i++) {
    memcpy(b->x[i], b->raw[b->order[i]], sizeof b->x[i]);
    b->gid[i] = b->order[i];
  }
  for (int r = 0; r < b->ranks; r++)
    b->shard[r] = (ts_shard){.n = b->each,
                             .x = (const double(*)[3])b->x + (size_t)r * (size_t)b->each,
                             .gid = b->gid + (size_t)r * (size_t)b->each};
}

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static void ask(bench *b, const char *curve, const char *name, const ts_level1_params *params)
{
  const ts_ranks ranks = ts_ranks_virtual(b->ranks);
  ts_level1_stats most = {0};
  double mean = 0, start = seconds();
  check(ts_level1_find(&ranks, params, &b->cell, b->reach, b->shard, b->remote, b->stats));
  const double passed = seconds() - start;
  for (int r = 0; r < b->ranks; r++) {
    const ts_level1_stats *s = &b->stats[r];
    mean += (double)s->sources / b->ranks;
    most.sources = (int)larger(most.sources, s->sources);
    most.full = larger(most.full, s->full);
    most.trim = larger(most.trim, s->trim);
    most.pool = larger(most.pool, s->pool);
    most.metadata = larger(most.metadata, s->metadata);
    ts_remote_free(&b->remote[r]);
  }
  printf("%5d %-8s %-10s %5d %6.1f %10lld %10lld %10lld %9lld %8.2f\n", b->ranks, curve, name,
         most.sources, mean, (long long)most.full, (long long)most.trim, (long long)most.pool,
         (long long)most.metadata, 1e3 * passed / b->ranks);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    ts_level1_scheme scheme;
    int boxes;
    double bin;
  } variant[] = {{"box", TS_LEVEL1_BOX, 1, 0},         {"8 boxes", TS_LEVEL1_BOXES, 8, 0},
                 {"32 boxes", TS_LEVEL1_BOXES, 32, 0}, {"bins", TS_LEVEL1_BINS, 1, 0},
                 {"bins 16 Å", TS_LEVEL1_BINS, 1, 16}, {"routed", TS_LEVEL1_ROUTED, 1, 0}};
  bench b = {.ranks = argc > 1 ? atoi(argv[1]) : 64,
             .each = argc > 2 ? atoi(argv[2]) : 25000,
             .reach = argc > 3 ? atof(argv[3]) : 8};
  if (b.ranks < 1 || b.each < 1 || (double)b.ranks * b.each > INT32_MAX || !(b.reach > 0)) {
    fprintf(stderr, "usage: bench_level1 [ranks [atoms of a rank [reach [seed]]]]\n");
    return 1;
  }
  make_atoms(&b, argc > 4 ? (uint64_t)atoll(argv[4]) : 1);
  printf("%5s %-8s %-10s %5s %6s %10s %10s %10s %9s %8s\n", "ranks", "curve", "scheme", "most",
         "mean", "full", "trim", "sent", "bytes", "ms/rank");
  for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
    cut(&b, (ts_curve)curve);
    for (size_t v = 0; v < sizeof variant / sizeof *variant; v++) {
      ts_level1_params params;
      ts_level1_params_init(&params);
      params.scheme = variant[v].scheme;
      params.boxes = variant[v].boxes;
      params.bin = variant[v].bin;
      ask(&b, curve == TS_CURVE_MORTON ? "Morton" : "Hilbert", variant[v].name, &params);
    }
  }
  return 0; /* and the system takes the memory */
}
