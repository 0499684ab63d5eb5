/* SPDX-License-Identifier: MIT
 *
 * The halo that Level 1 finds is enough: 540 random systems of nine kinds on 1 to 16 virtual ranks,
 * with shards along the curve and of no order, unequal and empty ones, atoms a little outside the
 * cell.  With every scheme the edges of all ranks are those of one rank that holds everything. */
#include "tests/neighbor_cases.h"

#include "comm/world.h"
#include "neighbor/curve.h"
#include "neighbor/geometry.h"
#include "neighbor/level1.h"
#include "tests/ranks_watchdog.h"

enum { MAX_RANKS = 16, SYSTEMS = 540, SCHEMES = 5 };

typedef struct world_case {
  search_case c; /* atoms in the order of ranks */
  int ranks;
  ts_lidx cut[MAX_RANKS + 1];
  uint8_t tag[CASE_MAX_ATOMS];
  ts_shard shard[MAX_RANKS];
} world_case;

static ts_world *world;

static void reorder(search_case *c, const ts_lidx *order)
{
  static search_case old;
  old = *c;
  for (ts_lidx i = 0; i < c->n; i++) {
    memcpy(c->x[i], old.x[order[i]], sizeof c->x[i]);
    memcpy(c->image[i], old.image[order[i]], sizeof c->image[i]);
    c->gid[i] = old.gid[order[i]];
  }
}

static void make(world_case *w, int kind, int ranks, uint64_t *seed)
{
  search_case *c = &w->c;
  ts_lidx order[CASE_MAX_ATOMS];
  case_make(c, kind, seed);
  ASSERT_OK(ts_curve_order(TS_CURVE_HILBERT, &c->cell, c->n, c->x, c->gid, order));
  if (below(seed, 4)) reorder(c, order);
  if (kind != 8 && below(seed, 3) == 0) /* moved since they were wrapped */
    for (ts_lidx i = 0; i < c->n; i++)
      for (int k = 0; k < 3; k++)
        c->x[i][k] += uniform(seed, -0.5, 0.5);
  w->ranks = ranks;
  const bool equal = below(seed, 3);
  memset(w->cut, 0, sizeof w->cut);
  for (int k = 1; k <= ranks; k++)
    w->cut[k] = equal || k == ranks ? c->n * k / ranks
                                    : w->cut[k - 1] + below(seed, c->n - w->cut[k - 1] + 1);
  for (int k = 0; k < ranks; k++)
    w->shard[k] = (ts_shard){.n = w->cut[k + 1] - w->cut[k],
                             .x = (const double(*)[3])c->x + w->cut[k],
                             .gid = c->gid + w->cut[k],
                             .tag = w->tag + w->cut[k]};
  for (ts_lidx i = 0; i < c->n; i++)
    w->tag[i] = (uint8_t)(c->gid[i] * 7 + 1);
}

/* Right atoms, in order, none of the rank's own. */
static void check_remote(const world_case *w, int rank, const ts_remote *r)
{
  int peers = 0;
  for (ts_lidx i = 0; i < r->n; i++) {
    const ts_lidx whole = w->cut[r->rank[i]] + r->index[i];
    assert_true(r->rank[i] != rank && r->index[i] < w->shard[r->rank[i]].n);
    assert_memory_equal(r->x[i], w->c.x[whole], sizeof r->x[i]);
    assert_int_equal(r->gid[i], w->c.gid[whole]);
    assert_int_equal(r->tag[i], w->tag[whole]);
    if (i > 0 && r->rank[i] == r->rank[i - 1]) {
      assert_true(r->index[i] > r->index[i - 1]);
      continue;
    }
    assert_true(i == 0 || r->rank[i] > r->rank[i - 1]);
    assert_int_equal(r->first[peers], i);
    assert_int_equal(r->peer[peers++], r->rank[i]);
  }
  assert_int_equal(peers, r->peers);
  assert_int_equal(r->first[peers], r->n);
}

/* The edges of one rank, receivers and senders named by their index in the whole. */
static int64_t check_edges(const world_case *w, int rank, const ts_remote *r,
                           const brute_list *list, const char *what)
{
  double x[CASE_MAX_ATOMS][3];
  ts_gidx gid[CASE_MAX_ATOMS];
  ts_lidx whole[CASE_MAX_ATOMS];
  const ts_shard *s = &w->shard[rank];
  for (ts_lidx i = 0; i < s->n + r->n; i++) {
    const ts_lidx j = i - s->n;
    whole[i] = j < 0 ? w->cut[rank] + i : w->cut[r->rank[j]] + r->index[j];
    memcpy(x[i], j < 0 ? s->x[i] : r->x[j], sizeof x[i]);
    gid[i] = j < 0 ? s->gid[i] : r->gid[j];
  }
  ts_edges *e = NULL;
  ASSERT_OK(ts_edges_build(&w->c.cell, s->n, r->n, (const double(*)[3])x, gid, &w->c.params, &e));
  if (!ts_edges_is_valid(e, gid, true)) fail_msg("%s: %s", what, ts_error_message());
  int64_t k = 0;
  for (int64_t b = 0; b < list->count; b++) {
    const brute_edge *want = &list->edge[b];
    if (want->i < w->cut[rank] || want->i >= w->cut[rank + 1]) continue;
    if (k >= e->count) fail_msg("%s: rank %d of %d misses an edge", what, rank, w->ranks);
    const int16_t *image = e->shift_image[e->shift[k]];
    if (whole[e->receiver[k]] != want->i || whole[e->sender[k]] != want->j ||
        image[0] != want->image[0] || image[1] != want->image[1] || image[2] != want->image[2])
      fail_msg("%s: edge %lld of rank %d of %d is not that of one rank", what, (long long)k, rank,
               w->ranks);
    k++;
  }
  assert_int_equal(k, e->count);
  ts_edges_destroy(&e);
  return k;
}

static double reach_of(const world_case *w)
{
  return w->c.params.cutoff + w->c.params.skin;
}

static ts_level1_params params_of(int scheme, uint64_t *seed)
{
  ts_level1_params p;
  ts_level1_params_init(&p);
  p.scheme = (ts_level1_scheme)scheme;
  p.boxes = 1 + below(seed, 9);
  p.bin = below(seed, 2) ? 0 : uniform(seed, 0.5, 20);
  return p;
}

static void every_scheme_is_enough(void **state)
{
  (void)state;
  static world_case w;
  uint64_t seed = 99;
  int64_t atoms[SCHEMES] = {0};
  for (int n = 0; n < SYSTEMS; n++) {
    const int kind = n % CASE_KINDS;
    make(&w, kind, 1 + below(&seed, MAX_RANKS), &seed);
    const ts_ranks ranks = ts_ranks_virtual(w.ranks);
    brute_list list = brute_edges(&w.c.cell, w.c.n, (const double(*)[3])w.c.x, w.c.gid,
                                  fmax(0, w.c.params.lower - w.c.params.skin), reach_of(&w));
    for (int scheme = 0; scheme < SCHEMES; scheme++) {
      ts_remote remote[MAX_RANKS];
      ts_level1_stats stats[MAX_RANKS];
      char what[64];
      int64_t count = 0;
      const ts_level1_params p = params_of(scheme, &seed);
      snprintf(what, sizeof what, "%s case %d, scheme %d", case_name[kind], n, scheme);
      ASSERT_OK(ts_level1_find(&ranks, &p, &w.c.cell, reach_of(&w), w.shard, remote, stats));
      for (int r = 0; r < w.ranks; r++) {
        check_remote(&w, r, &remote[r]);
        count += check_edges(&w, r, &remote[r], &list, what);
        atoms[scheme] += remote[r].n;
        assert_true(remote[r].peers <= stats[r].sources);
        assert_true(stats[r].pool >= remote[r].n);
        ts_remote_free(&remote[r]);
      }
      assert_int_equal(count, list.count);
    }
    free(list.edge);
  }
  /* a filter that sends everything would pass all of the above */
  for (int scheme = TS_LEVEL1_BOX; scheme < SCHEMES; scheme++)
    assert_true(atoms[scheme] < atoms[TS_LEVEL1_ALL] * 9 / 10);
  assert_true(atoms[TS_LEVEL1_BOXES] < atoms[TS_LEVEL1_BOX]);
}

static void real_as_virtual(void **state)
{
  (void)state;
  static world_case w;
  ts_ranks real;
  uint64_t seed = 5;
  ASSERT_OK(ts_ranks_of(ts_world_comm(world), &real));
  assert_in_range(real.size, 1, MAX_RANKS);
  for (int n = 0; n < 3 * SCHEMES; n++) {
    ts_traffic traffic = {0}, expected[MAX_RANKS] = {{0}};
    ts_ranks virtual_ranks = ts_ranks_virtual(real.size);
    ts_remote own, all[MAX_RANKS];
    ts_level1_stats stats, expected_stats[MAX_RANKS];
    virtual_ranks.traffic = expected;
    real.traffic = &traffic;
    make(&w, n % 5, real.size, &seed);
    const ts_level1_params p = params_of(n % SCHEMES, &seed);
    const double reach = reach_of(&w);
    ASSERT_OK(ts_level1_find(&virtual_ranks, &p, &w.c.cell, reach, w.shard, all, expected_stats));
    ASSERT_OK(ts_level1_find(&real, &p, &w.c.cell, reach, &w.shard[real.first], &own, &stats));
    check_remote(&w, real.first, &own);
    assert_int_equal(own.n, all[real.first].n);
    for (ts_lidx i = 0; i < own.n; i++)
      assert_int_equal(own.gid[i], all[real.first].gid[i]);
    assert_memory_equal(&stats, &expected_stats[real.first], sizeof stats);
    assert_int_equal(traffic.messages, expected[real.first].messages);
    assert_int_equal(traffic.bytes, expected[real.first].bytes);
    ts_remote_free(&own);
    for (int r = 0; r < real.size; r++)
      ts_remote_free(&all[r]);
  }
}

/* What one rank cannot do, none does. */
static void refusals(void **state)
{
  (void)state;
  static world_case w;
  ts_ranks real;
  ts_remote own;
  ts_level1_params p;
  uint64_t seed = 1;
  ASSERT_OK(ts_ranks_of(ts_world_comm(world), &real));
  ts_level1_params_init(&p);
  do
    make(&w, 1, real.size, &seed);
  while (w.shard[real.size - 1].n == 0);
  const ts_shard *mine = &w.shard[real.first];
  assert_int_equal(ts_level1_find(&real, &p, &w.c.cell, 0, mine, &own, NULL), TS_ERR_ARG);
  p.boxes = 0;
  assert_int_equal(ts_level1_find(&real, &p, &w.c.cell, 4, mine, &own, NULL), TS_ERR_ARG);
  ts_level1_params_init(&p);
  w.c.x[w.c.n - 1][1] = NAN; /* of the last rank */
  assert_int_equal(ts_level1_find(&real, &p, &w.c.cell, 4, mine, &own, NULL), TS_ERR_SIMULATION);
  assert_int_equal(own.n, 0);
  if (real.first == real.size - 1) assert_non_null(strstr(ts_error_message(), "finite"));
}

int main(void)
{
  const struct CMUnitTest alone[] = {cmocka_unit_test(every_scheme_is_enough),
                                     cmocka_unit_test(real_as_virtual), cmocka_unit_test(refusals)};
  const struct CMUnitTest together[] = {cmocka_unit_test(real_as_virtual),
                                        cmocka_unit_test(refusals)};
  ranks_watchdog(240);
  if (ts_world_create(&world)) return 1;
  const int failed = ts_world_size(world) > 1 ? cmocka_run_group_tests(together, NULL, NULL)
                                              : cmocka_run_group_tests(alone, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
