/* SPDX-License-Identifier: MIT
 *
 * Up to 64 ranks: no scheme leaves out a rank, or an atom of it, that owns the sender of an edge.
 * Random systems of five shapes (uniform, in clumps, a slab, a thin cell, a skewed one) with shards
 * along either curve or of no order; the edges are those that one rank finds of the whole.  And
 * ts_level1_count() says of every rank what ts_level1_find() does.
 *
 * TS_LEVEL1_SYSTEMS (default 60) says how many systems. */
#include "tests/neighbor_cases.h"

#include "neighbor/curve.h"
#include "neighbor/level1.h"

enum { MOST_RANKS = 64, MOST = 2000, SHAPES = 5, SCHEMES = TS_LEVEL1_ROUTED + 1 };

static double x[MOST][3], raw[MOST][3];
static ts_gidx gid[MOST];
static ts_lidx order[MOST];
static int32_t owner[MOST];

typedef struct sample {
  ts_cell cell;
  int ranks;
  ts_lidx n;
  double reach;
  ts_lidx first[MOST_RANKS + 1];
  ts_shard shard[MOST_RANKS];
  ts_edges *edges; /* of the whole */
} sample;

static void make_cell(sample *s, int shape, uint64_t *seed)
{
  const double side = cbrt(s->n / 0.1) * (shape == 2 ? 1.5 : 1);
  bool periodic[3] = {true, true, true};
  double h[3][3] = {{side, 0, 0}, {0, side, 0}, {0, 0, side}};
  if (shape == 3) {
    h[0][0] = uniform(seed, 2, 12);
    h[1][1] = h[2][2] = sqrt(s->n / 0.1 / h[0][0]);
  }
  if (shape == 4)
    for (int k = 0; k < 3; k++)
      for (int m = 0; m < k; m++)
        h[k][m] = uniform(seed, -1, 1) * side;
  if (below(seed, 3) == 0)
    for (int k = 0; k < 3; k++)
      periodic[k] = below(seed, 2);
  ASSERT_OK(ts_cell_init(&s->cell, (const double(*)[3])h, periodic));
}

static void place(const sample *s, int shape, uint64_t *seed, double at[3])
{
  static double clump[8][3];
  double f[3];
  for (int k = 0; k < 3; k++)
    f[k] = uniform(seed, 0, 1);
  if (shape == 1) {
    const int c = below(seed, 8);
    if (below(seed, 50) == 0)
      for (int k = 0; k < 3; k++)
        clump[c][k] = f[k];
    for (int k = 0; k < 3; k++)
      f[k] = fmod(clump[c][k] + 0.2 * f[k] * f[k], 1);
  }
  if (shape == 2) f[2] = 0.4 + 0.3 * f[2];
  for (int m = 0; m < 3; m++)
    at[m] = f[0] * s->cell.h[0][m] + f[1] * s->cell.h[1][m] + f[2] * s->cell.h[2][m];
}

static void deal(sample *s, uint64_t *seed)
{
  const int kind = below(seed, 5); /* 0, 1: Hilbert; 2, 3: Morton; 4: as generated */
  const ts_curve curve = kind < 2 ? TS_CURVE_HILBERT : TS_CURVE_MORTON;
  for (ts_lidx i = 0; i < s->n; i++)
    order[i] = (ts_lidx)(gid[i] = i);
  if (kind < 4)
    ASSERT_OK(ts_curve_order(curve, TS_NORMALIZE_AXES, &s->cell, s->n, (const double(*)[3])raw, gid,
                             order));
  for (ts_lidx i = 0; i < s->n; i++) {
    memcpy(x[i], raw[order[i]], sizeof x[i]);
    gid[i] = order[i];
  }
  for (int r = 0; r <= s->ranks; r++)
    s->first[r] = (ts_lidx)((int64_t)s->n * r / s->ranks);
  for (int r = 0; r < s->ranks; r++) {
    const ts_lidx first = s->first[r];
    s->shard[r] = (ts_shard){
        .n = s->first[r + 1] - first, .x = (const double(*)[3])x + first, .gid = gid + first};
    for (ts_lidx i = first; i < s->first[r + 1]; i++)
      owner[i] = r;
  }
}

static void make(sample *s, int number, uint64_t *seed)
{
  static int32_t image[MOST][3];
  const int shape = number % SHAPES;
  ts_search_params p;
  *s = (sample){.ranks = 2 + below(seed, MOST_RANKS - 1)};
  s->n = s->ranks + below(seed, MOST - s->ranks);
  s->reach = uniform(seed, 2, 6);
  make_cell(s, shape, seed);
  for (ts_lidx i = 0; i < s->n; i++)
    place(s, shape, seed, raw[i]);
  ASSERT_OK(ts_cell_wrap(&s->cell, s->n, raw, image));
  deal(s, seed);
  ts_search_params_init(&p);
  p.cutoff = s->reach;
  ASSERT_OK(ts_edges_build(&s->cell, s->n, 0, (const double(*)[3])x, gid, &p, &s->edges));
}

/* Every sender of another rank is in its receiver's halo. */
static int64_t check_senders(const sample *s, const ts_remote *remote, const char *what)
{
  static int32_t has[MOST]; /* of the rank at hand */
  int64_t checked = 0;
  for (ts_lidx i = 0; i < s->n; i++)
    has[i] = -1;
  for (int r = 0; r < s->ranks; r++) {
    for (ts_lidx j = 0; j < remote[r].n; j++)
      has[s->first[remote[r].rank[j]] + remote[r].index[j]] = r;
    for (int64_t e = s->edges->row[s->first[r]]; e < s->edges->row[s->first[r + 1]]; e++) {
      const ts_lidx j = s->edges->sender[e];
      if (owner[j] == r) continue;
      checked++;
      if (has[j] != r)
        fail_msg("%s: rank %d of %d lacks atom %lld of rank %d", what, r, s->ranks,
                 (long long)gid[j], owner[j]);
    }
  }
  return checked;
}

static void check_counts(const sample *s, const ts_level1_params *p, const ts_remote *found,
                         const ts_level1_stats *stats, const char *what)
{
  static ts_level1_stats counted[MOST_RANKS];
  static ts_remote some[MOST_RANKS];
  bool wanted[MOST_RANKS];
  const ts_ranks ranks = ts_ranks_virtual(s->ranks);
  for (int r = 0; r < s->ranks; r++)
    wanted[r] = r % 3 == 1;
  ASSERT_OK(ts_level1_count(&ranks, p, &s->cell, s->reach, s->shard, wanted, some, counted));
  for (int r = 0; r < s->ranks; r++) {
    if (memcmp(&counted[r], &stats[r], sizeof *counted) != 0)
      fail_msg("%s: rank %d of %d is counted differently", what, r, s->ranks);
    assert_int_equal(some[r].n, wanted[r] ? found[r].n : 0);
    if (some[r].n)
      assert_memory_equal(some[r].index, found[r].index, (size_t)found[r].n * sizeof(ts_lidx));
    ts_remote_free(&some[r]);
  }
}

static void nobody_is_missing(void **state)
{
  (void)state;
  static ts_level1_stats stats[MOST_RANKS];
  static ts_remote remote[MOST_RANKS];
  static sample s;
  const char *given = getenv("TS_LEVEL1_SYSTEMS");
  const int systems = given ? atoi(given) : 60;
  int64_t checked = 0;
  uint64_t seed = 4711;
  for (int n = 0; n < systems; n++) {
    make(&s, n, &seed);
    const ts_ranks ranks = ts_ranks_virtual(s.ranks);
    for (int scheme = 0; scheme < SCHEMES; scheme++) {
      char what[64];
      ts_level1_params p;
      ts_level1_params_init(&p);
      p.scheme = (ts_level1_scheme)scheme;
      p.boxes = 1 + below(&seed, 16);
      snprintf(what, sizeof what, "system %d, scheme %d", n, scheme);
      ASSERT_OK(ts_level1_find(&ranks, &p, &s.cell, s.reach, s.shard, remote, stats));
      checked += check_senders(&s, remote, what);
      check_counts(&s, &p, remote, stats, what);
      for (int r = 0; r < s.ranks; r++)
        ts_remote_free(&remote[r]);
    }
    ts_edges_destroy(&s.edges);
  }
  assert_true(checked > 1000 * (int64_t)systems);
  print_message("%d systems, %lld senders of other ranks\n", systems, (long long)checked);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_is_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
