/* SPDX-License-Identifier: MIT
 *
 * The halo that Level 1 finds is enough: 540 random systems of nine kinds on 1 to 16 virtual ranks,
 * with shards along the curve and of no order, unequal and empty ones, atoms a little outside the
 * cell.  With every scheme the edges of all ranks are those of one rank that holds everything. */
#include "tests/level1_cases.h"

enum { SYSTEMS = 540 };

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

/* Every scheme on every rank; atoms [SCHEMES] gets what they sent. */
static void check_schemes(const world_case *w, uint64_t *seed, const char *name, int64_t *atoms)
{
  const ts_ranks ranks = ts_ranks_virtual(w->ranks);
  brute_list list = brute_edges(&w->c.cell, w->c.n, (const double(*)[3])w->c.x, w->c.gid,
                                fmax(0, w->c.params.lower - w->c.params.skin), reach_of(w));
  for (int scheme = 0; scheme < SCHEMES; scheme++) {
    ts_remote remote[MAX_RANKS];
    ts_level1_stats stats[MAX_RANKS];
    char what[96];
    int64_t count = 0;
    const ts_level1_params p = params_of(scheme, seed);
    snprintf(what, sizeof what, "%s, scheme %d", name, scheme);
    ASSERT_OK(ts_level1_find(&ranks, &p, &w->c.cell, reach_of(w), w->shard, remote, stats));
    for (int r = 0; r < w->ranks; r++) {
      check_remote(w, r, &remote[r]);
      count += check_edges(w, r, &remote[r], &list, what);
      atoms[scheme] += remote[r].n;
      assert_true(remote[r].peers <= stats[r].sources);
      assert_true(stats[r].pool >= remote[r].n);
      ts_remote_free(&remote[r]);
    }
    assert_int_equal(count, list.count);
  }
  free(list.edge);
}

static void every_scheme_is_enough(void **state)
{
  (void)state;
  static world_case w;
  uint64_t seed = 99;
  int64_t atoms[SCHEMES] = {0};
  for (int n = 0; n < SYSTEMS; n++) {
    char what[64];
    const int kind = n % CASE_KINDS;
    make(&w, kind, 1 + below(&seed, MAX_RANKS), &seed);
    snprintf(what, sizeof what, "%s case %d", case_name[kind], n);
    check_schemes(&w, &seed, what, atoms);
  }
  /* a filter that sends everything would pass all of the above */
  for (int scheme = TS_LEVEL1_BOX; scheme < SCHEMES; scheme++)
    assert_true(atoms[scheme] < atoms[TS_LEVEL1_ALL] * 9 / 10);
  assert_true(atoms[TS_LEVEL1_BOXES] < atoms[TS_LEVEL1_BOX]);
}

/* Systems that broke other programs: a small molecule, a slab across the cell's face, two atoms in
 * a cell smaller than the cutoff, a drop; on more ranks than some of them have atoms. */
static void reported_systems(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int n;
    double side[3], low[3], high[3]; /* cell and where the atoms are [Å] */
  } known[] = {{"molecule", 21, {60, 60, 60}, {25, 25, 25}, {33, 30, 29}},
               {"slab", 60, {12, 12, 150}, {0, 0, -4}, {12, 12, 4}},
               {"two atoms", 2, {3, 3, 3}, {0, 0, 0}, {3, 3, 3}},
               {"drop", 64, {90, 90, 90}, {-5, -5, -5}, {5, 5, 5}}};
  static world_case w;
  uint64_t seed = 7;
  int64_t atoms[SCHEMES] = {0};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    for (int ranks = 1; ranks <= 8; ranks++) {
      search_case *c = &w.c;
      double h[3][3] = {{0}};
      memset(c, 0, sizeof *c);
      for (int m = 0; m < 3; m++)
        h[m][m] = known[k].side[m];
      ASSERT_OK(ts_cell_init(&c->cell, (const double(*)[3])h, NULL));
      c->n = known[k].n;
      for (ts_lidx i = 0; i < c->n; i++) {
        c->gid[i] = i;
        for (int m = 0; m < 3; m++)
          c->x[i][m] = uniform(&seed, known[k].low[m], known[k].high[m]);
      }
      ASSERT_OK(ts_cell_wrap(&c->cell, c->n, c->x, c->image));
      ts_search_params_init(&c->params);
      c->params.cutoff = 5;
      c->params.skin = 0.5;
      distribute(&w, ranks, true, true, &seed);
      check_schemes(&w, &seed, known[k].name, atoms);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_scheme_is_enough),
                                     cmocka_unit_test(reported_systems)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
