/* SPDX-License-Identifier: MIT
 *
 * The edge set against brute force on 1,080 random cells of nine kinds, with both back ends: the
 * same edges in the same order, valid, with equal fingerprints. */
#include "tests/neighbor_cases.h"

#include "neighbor/geometry.h"

static void run_kind(int kind, int cases)
{
  static search_case c;
  uint64_t seed = 1000 + (uint64_t)kind;
  int64_t edges = 0;
  for (int n = 0; n < cases; n++) {
    ts_edges *cells = NULL, *faiss = NULL;
    char what[64];
    case_make(&c, kind, &seed);
    snprintf(what, sizeof what, "%s case %d", case_name[kind], n);
    const ts_search_params *p = &c.params;
    brute_list list =
        brute_edges(&c.cell, c.n, c.x, c.gid, fmax(0, p->lower - p->skin), p->cutoff + p->skin);
    ASSERT_OK(ts_edges_build(&c.cell, c.n, 0, c.x, c.gid, p, &cells));
    assert_edges_are(cells, &list, what);
    if (!ts_edges_is_valid(cells, c.gid, true)) fail_msg("%s: %s", what, ts_error_message());
    c.params.backend = TS_SEARCH_FAISS;
    ASSERT_OK(ts_edges_build(&c.cell, c.n, 0, c.x, c.gid, p, &faiss));
    assert_edges_equal(cells, faiss);
    assert_true(ts_edges_hash(cells, NULL, c.gid, c.image) ==
                ts_edges_hash(faiss, NULL, c.gid, c.image));
    edges += list.count;
    free(list.edge);
    ts_edges_destroy(&cells);
    ts_edges_destroy(&faiss);
  }
  assert_true(edges > 0);
}

static void every_kind(void **state)
{
  (void)state;
  for (int kind = 0; kind < CASE_KINDS; kind++)
    run_kind(kind, 120);
}

/* Two cells whose vectors describe one lattice, one of them 400 periods askew. */
static void very_skewed(void **state)
{
  (void)state;
  static search_case c;
  uint64_t seed = 7;
  case_make(&c, 1, &seed);
  double h[3][3];
  memcpy(h, c.cell.h, sizeof h);
  for (int m = 0; m < 3; m++)
    h[1][m] += 400 * h[0][m];
  ASSERT_OK(ts_cell_init(&c.cell, (const double(*)[3])h, NULL));
  ASSERT_OK(ts_cell_wrap(&c.cell, c.n, c.x, c.image));
  brute_list list = brute_edges(&c.cell, c.n, c.x, c.gid, fmax(0, c.params.lower - c.params.skin),
                                c.params.cutoff + c.params.skin);
  ts_edges *e = NULL;
  ASSERT_OK(ts_edges_build(&c.cell, c.n, 0, c.x, c.gid, &c.params, &e));
  assert_edges_are(e, &list, "askew");
  assert_true(e->count > 0);
  free(list.edge);
  ts_edges_destroy(&e);
}

/* A cutoff that is the distance of a pair to the last bit finds it, one number less does not,
 * though floats, made coarse by other atoms far away, cannot tell.  (Enough atoms for FAISS to
 * expand squares.) */
static void limit_is_a_distance(void **state)
{
  (void)state;
  uint64_t seed = 17;
  enum { N = 30 };
  ts_gidx gid[N];
  ts_search_params p;
  ts_cell cell;
  ts_search_params_init(&p);
  ASSERT_OK(ts_cell_init(&cell, NULL, NULL));
  for (int n = 0; n < 1000; n++) {
    double x[N][3] = {{0}};
    for (int i = 0; i < N; i++) {
      gid[i] = N - i;
      for (int k = 0; k < 3; k++)
        x[i][k] = i < 2 ? uniform(&seed, 0, 5) : k == n % 3 ? 150.0 * i : 0;
    }
    const double dx = x[0][0] - x[1][0], dy = x[0][1] - x[1][1], dz = x[0][2] - x[1][2];
    const double r = sqrt(dx * dx + dy * dy + dz * dz);
    for (int k = 0; k < 4; k++) {
      ts_edges *e = NULL;
      p.cutoff = k & 1 ? nextafter(r, 0) : r;
      p.backend = k & 2 ? TS_SEARCH_FAISS : TS_SEARCH_CELLS;
      ASSERT_OK(ts_edges_build(&cell, N, 0, (const double(*)[3])x, gid, &p, &e));
      assert_int_equal(e->count, k & 1 ? 0 : 2);
      ts_edges_destroy(&e);
    }
    p.cutoff = 2 * r;
    for (int k = 0; k < 2; k++) { /* and the lower bound likewise */
      ts_edges *e = NULL;
      p.lower = k & 1 ? nextafter(r, 10) : r;
      ASSERT_OK(ts_edges_build(&cell, N, 0, (const double(*)[3])x, gid, &p, &e));
      assert_int_equal(e->count, k & 1 ? 0 : 2);
      ts_edges_destroy(&e);
    }
    p.lower = 0;
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind), cmocka_unit_test(very_skewed),
                                     cmocka_unit_test(limit_is_a_distance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
