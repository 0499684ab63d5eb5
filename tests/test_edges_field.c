/* SPDX-License-Identifier: MIT
 *
 * Faults that users of other programs reported, each as a small case: perfect lattices in tilted
 * boxes, sparse triclinic cells, an atom's own images, cells thinner than the cutoff, shrinking
 * cells, atoms far away, a lone atom, a pair at the cutoff, crowds. */
#include "tests/neighbor_cases.h"

#include "neighbor/geometry.h"

static ts_edges *build(const ts_cell *cell, ts_lidx n, const double (*x)[3], const ts_gidx *gid,
                       double cutoff, double skin, ts_search_backend backend)
{
  ts_search_params p;
  ts_edges *e = NULL;
  ts_search_params_init(&p);
  p.cutoff = cutoff;
  p.skin = skin;
  p.backend = backend;
  ASSERT_OK(ts_edges_build(cell, n, 0, x, gid, &p, &e));
  if (!ts_edges_is_valid(e, gid, true)) fail_msg("%s", ts_error_message());
  return e;
}

/* Both back ends against brute force; returns the edges of `cells`. */
static ts_edges *build_checked(const ts_cell *cell, ts_lidx n, const double (*x)[3],
                               const ts_gidx *gid, double cutoff, const char *what)
{
  brute_list list = brute_edges(cell, n, x, gid, 0, cutoff);
  ts_edges *cells = build(cell, n, x, gid, cutoff, 0, TS_SEARCH_CELLS);
  ts_edges *faiss = build(cell, n, x, gid, cutoff, 0, TS_SEARCH_FAISS);
  assert_edges_are(cells, &list, what);
  assert_edges_equal(cells, faiss);
  ts_edges_destroy(&faiss);
  free(list.edge);
  return cells;
}

static int own_images(const ts_edges *e, ts_lidx i)
{
  int count = 0;
  for (int64_t k = e->row[i]; k < e->row[i + 1]; k++)
    count += e->sender[k] == i;
  return count;
}

/* FCC in a box with tilts of exactly half an edge, and the same with every number off by 1e-15. */
static void tilted_lattice(void **state)
{
  (void)state;
  enum { SIDE = 8, N = SIDE * SIDE * SIDE };
  static double x[N][3];
  static int32_t image[N][3];
  static ts_gidx gid[N];
  const double a = 2.55;
  const double p[3][3] = {
      {a, 0, 0}, {a / 2, a * sqrt(0.75), 0}, {a / 2, a * sqrt(1.0 / 12), a * sqrt(2.0 / 3)}};
  for (int variant = 0; variant < 4; variant++) {
    double h[3][3];
    const double off = variant & 1 ? 1 + 1e-15 : 1, extra = variant & 2 ? 1 : 0;
    for (int k = 0; k < 3; k++)
      for (int m = 0; m < 3; m++)
        h[k][m] = p[k][m] * SIDE * off;
    ts_cell cell;
    ASSERT_OK(ts_cell_init(&cell, (const double(*)[3])h, NULL));
    for (int i = 0; i < N; i++) {
      gid[i] = i;
      for (int m = 0; m < 3; m++)
        x[i][m] = (i % SIDE + extra * SIDE) * p[0][m] + (i / SIDE % SIDE) * p[1][m] +
                  (i / SIDE / SIDE) * p[2][m];
    }
    ASSERT_OK(ts_cell_wrap(&cell, N, x, image));
    for (int s = 0; s < 2; s++) {
      ts_edges *e = build(&cell, N, x, gid, s ? 1.5 * a : 1.2 * a, 0, TS_SEARCH_CELLS);
      for (ts_lidx i = 0; i < N; i++)
        assert_int_equal(e->row[i + 1] - e->row[i], s ? 18 : 12);
      ts_edges_destroy(&e);
    }
  }
}

static void sparse_triclinic(void **state)
{
  (void)state;
  for (uint64_t start = 0; start < 1000; start++) {
    uint64_t seed = start;
    static double x[30][3];
    static int32_t image[30][3];
    ts_gidx gid[30];
    double h[3][3];
    for (int k = 0; k < 3; k++)
      for (int m = 0; m < 3; m++)
        h[k][m] = k == m ? uniform(&seed, 20, 30) : m < k ? uniform(&seed, -12, 12) : 0;
    const int n = 8 + below(&seed, 23);
    for (int i = 0; i < n; i++) {
      gid[i] = i;
      for (int m = 0; m < 3; m++)
        x[i][m] = uniform(&seed, 0, 30);
    }
    ts_cell cell;
    ASSERT_OK(ts_cell_init(&cell, (const double(*)[3])h, NULL));
    ASSERT_OK(ts_cell_wrap(&cell, n, x, image));
    ts_edges *e = build_checked(&cell, n, (const double(*)[3])x, gid, 6, "sparse");
    ts_edges_destroy(&e);
  }
}

static void diamond_primitive_cell(void **state)
{
  (void)state;
  const double half = 5.43 / 2, q = 5.43 / 4;
  const double h[3][3] = {{0, half, half}, {half, 0, half}, {half, half, 0}};
  const double x[2][3] = {{0, 0, 0}, {q, q, q}};
  const ts_gidx gid[2] = {0, 1};
  static const struct {
    double cutoff;
    int all, own;
  } want[] = {{6.0, 46, 18}, {5.0, 28, 12}, {4.0, 16, 12}};
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, h, NULL));
  for (int k = 0; k < 3; k++) {
    ts_edges *e = build_checked(&cell, 2, x, gid, want[k].cutoff, "diamond");
    assert_int_equal(e->count, 2 * want[k].all);
    for (ts_lidx i = 0; i < 2; i++) {
      assert_int_equal(e->row[i + 1] - e->row[i], want[k].all);
      assert_int_equal(own_images(e, i), want[k].own);
    }
    ts_edges_destroy(&e);
  }
}

static void one_atom_cubic(void **state)
{
  (void)state;
  const double h[3][3] = {{4, 0, 0}, {0, 4, 0}, {0, 0, 4}}, x[1][3] = {{1, 2, 3}};
  const ts_gidx gid[1] = {0};
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, h, NULL));
  for (int k = 0; k < 2; k++) {
    ts_edges *e = build_checked(&cell, 1, x, gid, k ? 9 : 6, "simple cubic");
    assert_int_equal(e->count, k ? 56 : 18);
    ts_edges_destroy(&e);
  }
}

static void shrinking_cell(void **state)
{
  (void)state;
  uint64_t seed = 11;
  enum { N = 40 };
  double f[N][3];
  ts_gidx gid[N];
  for (int i = 0; i < N; i++) {
    gid[i] = i;
    for (int k = 0; k < 3; k++)
      f[i][k] = uniform(&seed, 0, 1);
  }
  for (double side = 13; side >= 3; side -= 0.5) {
    const double h[3][3] = {{side, 0, 0}, {0, side, 0}, {0, 0, side}};
    double x[N][3];
    ts_cell cell;
    ASSERT_OK(ts_cell_init(&cell, h, NULL));
    for (int i = 0; i < N; i++)
      for (int k = 0; k < 3; k++)
        x[i][k] = f[i][k] * side;
    ts_edges *e =
        build_checked(&cell, side < 8 ? 10 : N, (const double(*)[3])x, gid, 6, "shrinking");
    ts_edges_destroy(&e);
  }
}

/* A dense cell, one atom, the dense cell again, each in the memory of the one before. */
static void capacity_is_not_learned(void **state)
{
  (void)state;
  static search_case c;
  uint64_t seed = 21;
  do
    case_make(&c, 1, &seed);
  while (c.n < 30);
  ts_edges *first = NULL, *again = NULL;
  ASSERT_OK(ts_edges_build(&c.cell, c.n, 0, c.x, c.gid, &c.params, &first));
  const double lone[1][3] = {{1, 1, 1}};
  const double h[3][3] = {{100, 0, 0}, {0, 100, 0}, {0, 0, 100}};
  ts_cell large;
  ASSERT_OK(ts_cell_init(&large, h, NULL));
  for (int round = 0; round < 3; round++) {
    c.params.recycle = again;
    ASSERT_OK(ts_edges_build(&large, 1, 0, lone, c.gid, &c.params, &again));
    assert_int_equal(again->count, 0);
    c.params.recycle = again;
    ASSERT_OK(ts_edges_build(&c.cell, c.n, 0, c.x, c.gid, &c.params, &again));
    assert_edges_equal(first, again);
  }
  ts_edges_destroy(&first);
  ts_edges_destroy(&again);
}

/* A copy far from the origin has the same edges (distances there are coarser, so none is near a
 * limit). */
static void far_from_origin(void **state)
{
  (void)state;
  enum { N = 60 };
  static const double offset[] = {0, 100, 300, 1000, 1e4, -1e6};
  uint64_t seed = 31;
  double x[N][3], y[N][3];
  ts_gidx gid[N];
  for (int i = 0; i < N; i++) {
    gid[i] = i;
    for (int k = 0; k < 3; k++)
      x[i][k] = uniform(&seed, 0, 12);
  }
  const double h[3][3] = {{21, 0, 0}, {0, 22, 0}, {0, 0, 23}};
  for (int open = 0; open < 2; open++) {
    ts_cell cell;
    ASSERT_OK(ts_cell_init(&cell, open ? NULL : h, NULL));
    uint64_t hash = 0;
    for (int k = 0; k < 6; k++) {
      int32_t image[N][3] = {{0}};
      for (int i = 0; i < N; i++)
        for (int m = 0; m < 3; m++)
          y[i][m] = x[i][m] + offset[k];
      ASSERT_OK(ts_cell_wrap(&cell, N, y, image));
      ts_edges *e = build_checked(&cell, N, (const double(*)[3])y, gid, 5, "far away");
      const uint64_t now = ts_edges_hash(e, NULL, gid, (const int32_t(*)[3])image);
      if (k == 0) hash = now;
      assert_true(now == hash);
      ts_edges_destroy(&e);
    }
  }
}

static void lone_atom_and_pair(void **state)
{
  (void)state;
  const double h[3][3] = {{100, 0, 0}, {0, 100, 0}, {0, 0, 100}};
  const ts_gidx gid[2] = {0, 1};
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, h, NULL));
  double x[2][3] = {{99.9, 50, 50}, {0, 50, 50}};
  ts_edges *e = build_checked(&cell, 1, (const double(*)[3])x, gid, 6, "lone");
  assert_int_equal(e->count, 0);
  ts_edges_destroy(&e);
  e = build_checked(&cell, 0, (const double(*)[3])x, gid, 6, "nothing");
  assert_int_equal(e->count, 0);
  ts_edges_destroy(&e);
  for (int k = 0; k <= 200; k++) {
    x[0][0] = 94.1 - 0.001 * k; /* 5.9 to 6.1 through the face */
    const double r = fabs(x[0][0] - 0.0 - 100);
    e = build_checked(&cell, 2, (const double(*)[3])x, gid, 6, "pair");
    assert_int_equal(e->count, r <= 6 ? 2 : 0);
    ts_edges_destroy(&e);
  }
}

/* What is active does not depend on how far the list reaches. */
static void skin_adds_nothing(void **state)
{
  (void)state;
  static const double skin[] = {0, 0.5, 2};
  static search_case c;
  uint64_t seed = 41;
  case_make(&c, 1, &seed);
  uint64_t hash = 0;
  for (int k = 0; k < 3; k++) {
    ts_edges *e = build(&c.cell, c.n, c.x, c.gid, 5, skin[k], TS_SEARCH_CELLS);
    double *geometry = malloc((size_t)e->count * 4 * sizeof *geometry);
    uint8_t *active = malloc((size_t)e->count);
    ts_edges_measure(e, c.x, 0, c.n, 0, 5, geometry, active, NULL, NULL);
    const uint64_t now = ts_edges_hash(e, active, c.gid, c.image);
    if (k == 0) hash = now;
    assert_true(now == hash && e->count > 0);
    free(geometry);
    free(active);
    ts_edges_destroy(&e);
  }
}

/* A water box with one molecule a hundred boxes away. */
static void distant_molecule(void **state)
{
  (void)state;
  enum { N = 3 * 216 };
  static double x[N][3], y[N][3];
  static int32_t image[N][3], moved[N][3];
  static ts_gidx gid[N];
  const double side = 18.6, h[3][3] = {{side, 0, 0}, {0, side, 0}, {0, 0, side}};
  uint64_t seed = 51;
  for (int i = 0; i < N; i++) {
    gid[i] = i;
    for (int k = 0; k < 3; k++) {
      const int cell = k == 0 ? i / 3 % 6 : k == 1 ? i / 18 % 6 : i / 108;
      x[i][k] = y[i][k] = 0.125 * floor((cell * 3.1 + uniform(&seed, 0, 2)) * 8);
      if (i >= 300 && i < 303) y[i][k] += 100 * side * (k - 1);
    }
  }
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, h, NULL));
  ASSERT_OK(ts_cell_wrap(&cell, N, x, image));
  ASSERT_OK(ts_cell_wrap(&cell, N, y, moved));
  assert_int_equal(moved[301][0], image[301][0] - 100);
  assert_int_equal(moved[301][2], image[301][2] + 100);
  ts_edges *a = build(&cell, N, (const double(*)[3])x, gid, 5.01, 0, TS_SEARCH_CELLS);
  ts_edges *b = build(&cell, N, (const double(*)[3])y, gid, 5.01, 0, TS_SEARCH_CELLS);
  assert_edges_equal(a, b);
  ts_edges_destroy(&a);
  ts_edges_destroy(&b);
}

/* More than 2048 atoms within reach of each: nothing is truncated. */
static void crowd(void **state)
{
  (void)state;
  enum { N = 2300 };
  static double x[N][3];
  static ts_gidx gid[N];
  uint64_t seed = 61;
  for (int i = 0; i < N; i++) {
    gid[i] = N - i;
    for (int k = 0; k < 3; k++)
      x[i][k] = uniform(&seed, 0, 3);
  }
  ts_cell cell;
  ASSERT_OK(ts_cell_init(&cell, NULL, NULL));
  ts_edges *a = build(&cell, N, (const double(*)[3])x, gid, 6, 0, TS_SEARCH_CELLS);
  ts_edges *b = build(&cell, N, (const double(*)[3])x, gid, 6, 0, TS_SEARCH_FAISS);
  assert_int_equal(a->count, (int64_t)N * (N - 1));
  assert_edges_equal(a, b);
  ts_edges_destroy(&a);
  ts_edges_destroy(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(tilted_lattice),
                                     cmocka_unit_test(sparse_triclinic),
                                     cmocka_unit_test(diamond_primitive_cell),
                                     cmocka_unit_test(one_atom_cubic),
                                     cmocka_unit_test(shrinking_cell),
                                     cmocka_unit_test(capacity_is_not_learned),
                                     cmocka_unit_test(far_from_origin),
                                     cmocka_unit_test(lone_atom_and_pair),
                                     cmocka_unit_test(skin_adds_nothing),
                                     cmocka_unit_test(distant_molecule),
                                     cmocka_unit_test(crowd)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
