/* SPDX-License-Identifier: MIT
 *
 * How much Level 1 asks for, on systems whose figures are known: a perfect lattice, where every
 * number is exact, and random atoms, whose degrees an independent program put into narrow ranges.
 * Always: exact need <= 32 boxes <= 8 boxes <= one box in ranks, pool <= trim <= full in atoms. */
#include "tests/neighbor_cases.h"

#include "neighbor/curve.h"
#include "neighbor/level1.h"

typedef struct shards {
  int ranks;
  ts_lidx n;
  ts_cell cell;
  double (*x)[3];
  ts_gidx *gid;
  ts_shard *shard;
} shards;

/* Sort along the curve and cut into equal counts. */
static void cut(shards *s, ts_curve curve, int ranks, ts_lidx n, double side,
                void (*place)(ts_lidx i, double side, double x[3], uint64_t *seed), uint64_t seed)
{
  const double h[3][3] = {{side, 0, 0}, {0, side, 0}, {0, 0, side}};
  ASSERT_OK(ts_cell_init(&s->cell, h, NULL));
  s->ranks = ranks;
  s->n = n;
  double(*raw)[3] = malloc((size_t)n * sizeof *raw);
  ts_lidx *order = malloc((size_t)n * sizeof *order);
  s->x = malloc((size_t)n * sizeof *s->x);
  s->gid = malloc((size_t)n * sizeof *s->gid);
  s->shard = malloc((size_t)ranks * sizeof *s->shard);
  assert_true(raw && order && s->x && s->gid && s->shard);
  for (ts_lidx i = 0; i < n; i++) {
    s->gid[i] = i;
    place(i, side, raw[i], &seed);
  }
  ASSERT_OK(ts_curve_order(curve, TS_NORMALIZE_AXES, &s->cell, n, (const double(*)[3])raw, s->gid,
                           order));
  for (ts_lidx i = 0; i < n; i++) {
    memcpy(s->x[i], raw[order[i]], sizeof raw[i]);
    s->gid[i] = order[i];
  }
  for (int r = 0; r < ranks; r++) {
    const ts_lidx first = (ts_lidx)((int64_t)n * r / ranks);
    s->shard[r] = (ts_shard){.n = (ts_lidx)((int64_t)n * (r + 1) / ranks) - first,
                             .x = (const double(*)[3])s->x + first,
                             .gid = s->gid + first};
  }
  free(raw);
  free(order);
}

static void drop(shards *s)
{
  free(s->x);
  free(s->gid);
  free(s->shard);
}

/* Ranks that own an atom within reach of one of `rank`'s, itself included. */
static int needed(const shards *s, int rank, const ts_remote *r, double reach)
{
  const ts_lidx n = s->shard[rank].n, total = n + r->n;
  double(*x)[3] = malloc((size_t)total * sizeof *x);
  ts_gidx *gid = malloc((size_t)total * sizeof *gid);
  bool *used = calloc((size_t)total, 1);
  ts_search_params p;
  ts_edges *e = NULL;
  assert_true(x && gid && used);
  memcpy(x, s->shard[rank].x, (size_t)n * sizeof *x);
  memcpy(gid, s->shard[rank].gid, (size_t)n * sizeof *gid);
  if (r->n) memcpy(x + n, r->x, (size_t)r->n * sizeof *x);
  if (r->n) memcpy(gid + n, r->gid, (size_t)r->n * sizeof *gid);
  ts_search_params_init(&p);
  p.cutoff = reach;
  ASSERT_OK(ts_edges_build(&s->cell, n, r->n, (const double(*)[3])x, gid, &p, &e));
  ts_edges_used(e, used);
  int count = 1;
  for (int k = 0; k < r->peers; k++) {
    bool some = false;
    for (ts_lidx i = r->first[k]; i < r->first[k + 1]; i++)
      some |= used[n + i];
    count += some;
  }
  ts_edges_destroy(&e);
  free(x);
  free(gid);
  free(used);
  return count;
}

/* Statistics of every rank, and if `need` is given the exact need. */
static void ask(const shards *s, ts_level1_scheme scheme, int boxes, double reach,
                ts_level1_stats *stats, int *need)
{
  const ts_ranks ranks = ts_ranks_virtual(s->ranks);
  ts_level1_params p;
  ts_remote *remote = calloc((size_t)s->ranks, sizeof *remote);
  assert_non_null(remote);
  ts_level1_params_init(&p);
  p.scheme = scheme;
  p.boxes = boxes;
  ASSERT_OK(ts_level1_find(&ranks, &p, &s->cell, reach, s->shard, remote, stats));
  for (int r = 0; r < s->ranks; r++) {
    if (need) need[r] = needed(s, r, &remote[r], reach);
    ts_remote_free(&remote[r]);
  }
  free(remote);
}

static void on_lattice(ts_lidx i, double side, double x[3], uint64_t *seed)
{
  (void)seed;
  const double a = side / 16;
  x[0] = (i / 256 + 0.5) * a;
  x[1] = (i / 16 % 16 + 0.5) * a;
  x[2] = (i % 16 + 0.5) * a;
}

static void lattice(void **state)
{
  (void)state;
  enum { K = 64 };
  static const double reach[3] = {1.2, 1.5, 1.8};
  static const int exact[3] = {7, 19, 27};
  ts_level1_stats one[K], four[K];
  int need[K];
  for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
    shards s;
    cut(&s, (ts_curve)curve, K, 16 * 16 * 16, 16, on_lattice, 0);
    for (int c = 0; c < 3; c++) {
      ask(&s, TS_LEVEL1_BOX, 1, reach[c], one, need);
      ask(&s, TS_LEVEL1_BOXES, 4, reach[c], four, NULL);
      for (int r = 0; r < K; r++) {
        assert_int_equal(one[r].sources, 27);
        assert_int_equal(four[r].sources, 27);
        assert_int_equal(need[r], exact[c]);
        assert_int_equal(one[r].full, 1728);
        assert_int_equal(one[r].pool, 216);
        assert_int_equal(one[r].metadata, 1792);
        assert_int_equal(four[r].metadata, 4 * 1792);
      }
    }
    drop(&s);
  }
}

static void anywhere(ts_lidx i, double side, double x[3], uint64_t *seed)
{
  (void)i;
  for (int k = 0; k < 3; k++)
    x[k] = uniform(seed, 0, side);
}

static int most(const ts_level1_stats *stats, int ranks)
{
  int largest = 0;
  for (int r = 0; r < ranks; r++)
    if (stats[r].sources > largest) largest = stats[r].sources;
  return largest;
}

static void random_degrees(void **state)
{
  (void)state;
  static const struct {
    int ranks, each, low[2], high[2]; /* Hilbert, Morton */
  } known[] = {{64, 1000, {29, 59}, {38, 64}}, {512, 500, {43, 206}, {48, 209}}};
  static ts_level1_stats stats[512];
  for (int k = 0; k < 2; k++)
    for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
      shards s;
      const ts_lidx n = known[k].ranks * known[k].each;
      cut(&s, (ts_curve)curve, known[k].ranks, n, cbrt(n / 0.1), anywhere, 3);
      ask(&s, TS_LEVEL1_BOX, 1, 5, stats, NULL);
      assert_in_range(most(stats, s.ranks), known[k].low[curve], known[k].high[curve]);
      drop(&s);
    }
}

static void tighter_and_tighter(void **state)
{
  (void)state;
  enum { K = 64 };
  ts_level1_stats one[K], eight[K], many[K], bins[K], routed[K];
  int need[K];
  int64_t pool[3] = {0};
  for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
    shards s;
    const ts_lidx n = K * 200;
    cut(&s, (ts_curve)curve, K, n, cbrt(n / 0.1), anywhere, 17);
    ask(&s, TS_LEVEL1_BOX, 1, 5, one, need);
    ask(&s, TS_LEVEL1_BOXES, 8, 5, eight, NULL);
    ask(&s, TS_LEVEL1_BOXES, 32, 5, many, NULL);
    ask(&s, TS_LEVEL1_BINS, 1, 5, bins, NULL);
    ask(&s, TS_LEVEL1_ROUTED, 1, 5, routed, NULL);
    for (int r = 0; r < K; r++) {
      assert_true(need[r] <= many[r].sources && many[r].sources <= eight[r].sources);
      assert_true(eight[r].sources <= one[r].sources && one[r].sources <= K);
      assert_true(need[r] <= bins[r].sources && need[r] <= routed[r].sources);
      assert_true(one[r].pool <= one[r].trim && one[r].trim <= one[r].full);
      assert_true(eight[r].pool <= eight[r].trim && eight[r].trim <= eight[r].full);
      assert_true(eight[r].pool <= one[r].pool && many[r].pool <= eight[r].pool);
      assert_true(routed[r].pool <= one[r].pool);
      pool[0] += one[r].pool;
      pool[1] += eight[r].pool;
      pool[2] += many[r].pool;
    }
    drop(&s);
  }
  assert_true(pool[2] < pool[1] && pool[1] < pool[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(lattice), cmocka_unit_test(random_degrees),
                                     cmocka_unit_test(tighter_and_tighter)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
