/* SPDX-License-Identifier: MIT
 *
 * The same arrays, bit for bit, for every chunk size, back end and instruction set; and what a
 * build refuses. */
#include "tests/neighbor_cases.h"

#include "neighbor/scan.h"

enum { N = 1500 };
static double x[N][3];
static ts_gidx gid[N];
static ts_cell cell;
static ts_search_params params;

static int make_liquid(void **state)
{
  (void)state;
  uint64_t seed = 1;
  const double h[3][3] = {{25, 0, 0}, {9, 24, 0}, {-7, 4, 25}};
  if (ts_cell_init(&cell, h, NULL)) return -1;
  for (int i = 0; i < N; i++) {
    gid[i] = (i * 1237LL) % N + 5;
    double f[3];
    for (int k = 0; k < 3; k++)
      f[k] = uniform(&seed, 0, 1);
    for (int m = 0; m < 3; m++)
      x[i][m] = f[0] * h[0][m] + f[1] * h[1][m] + f[2] * h[2][m];
  }
  ts_search_params_init(&params);
  params.cutoff = 5;
  params.skin = 0.5;
  return 0;
}

static ts_edges *build(void)
{
  ts_edges *e = NULL;
  ASSERT_OK(ts_edges_build(&cell, N, 0, (const double(*)[3])x, gid, &params, &e));
  return e;
}

static void any_chunk_any_backend(void **state)
{
  (void)state;
  static const int chunk[] = {1, 19, 20, 21, 64, 512, 4096};
  params.chunk = 512;
  ts_edges *first = build();
  brute_list list = brute_edges(&cell, N, (const double(*)[3])x, gid, 0, 5.5);
  assert_edges_are(first, &list, "liquid");
  if (!ts_edges_is_valid(first, gid, true)) fail_msg("%s", ts_error_message());
  free(list.edge);
  for (int b = 0; b < 2; b++)
    for (int k = 0; k < 7; k++) {
      params.backend = b ? TS_SEARCH_FAISS : TS_SEARCH_CELLS;
      params.chunk = chunk[k];
      ts_edges *e = build();
      assert_edges_equal(first, e);
      assert_true(e->stats.chunks >= (N + chunk[k] - 1) / chunk[k]);
      ts_edges_destroy(&e);
    }
  ts_edges_destroy(&first);
  make_liquid(NULL);
}

static void excluded_senders(void **state)
{
  (void)state;
  static bool excluded[N];
  ts_edges *all = build();
  for (int i = 0; i < N; i++)
    excluded[i] = i % 3 == 1;
  params.excluded_sender = excluded;
  ts_edges *some = build();
  if (!ts_edges_is_valid(some, gid, false)) fail_msg("%s", ts_error_message());
  assert_false(ts_edges_is_valid(some, gid, true));
  int64_t k = 0;
  for (int64_t e = 0; e < all->count; e++) {
    if (excluded[all->sender[e]]) continue;
    assert_true(k < some->count);
    assert_int_equal(some->receiver[k], all->receiver[e]);
    assert_int_equal(some->sender[k], all->sender[e]);
    assert_memory_equal(some->shift_vector[some->shift[k]], all->shift_vector[all->shift[e]], 24);
    k++;
  }
  assert_int_equal(k, some->count);
  for (int i = 0; i < N; i++)
    if (excluded[i]) assert_int_equal(some->column[i + 1], some->column[i]);
  memset(excluded, 0, sizeof excluded);
  ts_edges *none = build();
  assert_edges_equal(none, all);
  memset(excluded, 1, sizeof excluded);
  ts_edges *empty = build();
  assert_int_equal(empty->count, 0);
  ts_edges_destroy(&all);
  ts_edges_destroy(&some);
  ts_edges_destroy(&none);
  ts_edges_destroy(&empty);
  make_liquid(NULL);
}

/* Each instruction set against plain arithmetic, on lists of every length around a vector. */
static void instruction_sets(void **state)
{
  (void)state;
  enum { MOST = 70 };
  int count;
  const tsi_scan *const *scan = tsi_scan_list(&count);
  uint64_t seed = 9;
  const tsi_bounds bounds = {4.0f, 0.25f, 3.5f};
  const tsi_box box = {{-0.5f, -0.25f, 0}, {0.5f, 0.75f, 0.125f}};
  const float p[3] = {0.25f, 0, -0.125f};
  for (int n = 0; n <= MOST; n++) {
    tsi_points in = {0}, out = {0};
    ASSERT_OK(tsi_points_reserve(&in, n));
    ASSERT_OK(tsi_points_reserve(&out, n));
    in.n = n;
    for (int k = 0; k < n; k++) { /* eighths: squares are exact in float */
      in.x[k] = 0.125f * (float)(below(&seed, 41) - 20);
      in.y[k] = 0.125f * (float)(below(&seed, 41) - 20);
      in.z[k] = 0.125f * (float)(below(&seed, 41) - 20);
      in.id[k] = 1000 + k;
    }
    tsi_points_pad(&in);
    for (int s = 0; s < count; s++) {
      int32_t hit[MOST + TSI_LANES], unsure[MOST + TSI_LANES], nunsure, h = 0, u = 0;
      const int32_t nh = scan[s]->near(&in, p, &bounds, hit, unsure, &nunsure);
      scan[s]->keep(&in, &box, bounds.far, &out);
      int32_t kept = 0;
      for (int k = 0; k < n; k++) {
        const float q[3] = {in.x[k], in.y[k], in.z[k]};
        float r2 = 0, gap2 = 0;
        for (int m = 0; m < 3; m++) {
          const float gap = fmaxf(0, fmaxf(box.low[m] - q[m], q[m] - box.high[m]));
          r2 += (q[m] - p[m]) * (q[m] - p[m]);
          gap2 += gap * gap;
        }
        if (gap2 <= bounds.far) {
          assert_true(kept < out.n && out.id[kept] == in.id[k] && out.x[kept] == q[0]);
          assert_true(out.y[kept] == q[1] && out.z[kept] == q[2]);
          kept++;
        }
        if (r2 > bounds.far) continue;
        if (r2 < bounds.sure_low || r2 > bounds.sure_high) {
          assert_true(u < nunsure && unsure[u] == h);
          u++;
        }
        assert_true(h < nh && hit[h] == in.id[k]);
        h++;
      }
      assert_int_equal(h, nh);
      assert_int_equal(u, nunsure);
      assert_int_equal(kept, out.n);
    }
    tsi_points_free(&in);
    tsi_points_free(&out);
  }
}

static void swap_edges(ts_edges *e, int64_t a, int64_t b)
{
  const ts_lidx sender = e->sender[a];
  const int32_t shift = e->shift[a];
  e->sender[a] = e->sender[b];
  e->shift[a] = e->shift[b];
  e->sender[b] = sender;
  e->shift[b] = shift;
}

/* Each kind of damage is seen, and undoing it satisfies the validator again. */
static void validator_sees_damage(void **state)
{
  (void)state;
  ts_edges *e = build();
  const int64_t k = e->row[N / 2]; /* the first of its row; more follow */
  assert_true(e->row[N / 2 + 1] > k + 1);
  for (int damage = 0; damage < 8; damage++)
    for (int undo = 0; undo < 2; undo++) {
      const int step = undo ? -1 : 1;
      if (damage == 0) e->row[N / 2] += step;
      if (damage == 1) e->receiver[k] += step;
      if (damage == 2) e->sender[k] += step * N;
      if (damage == 3) e->shift[k] += step * e->nshift;
      if (damage == 4) swap_edges(e, k, k + 1);
      if (damage == 5) e->column[N / 2] += step;
      if (damage == 6) e->column_edge[k] += step;
      if (damage == 7) e->shift_image[0][1] = (int16_t)(1 - undo);
      assert_int_equal(ts_edges_is_valid(e, gid, true), undo);
    }
  for (int64_t c = e->row[N / 2]; c < e->row[N / 2 + 1]; c++) { /* one edge without its reverse */
    const int32_t shift = e->shift[c];
    if (e->nshift < 2) break;
    e->shift[c] = shift == 1 ? 2 : 1;
    assert_false(ts_edges_is_valid(e, gid, true));
    e->shift[c] = shift;
  }
  assert_true(ts_edges_is_valid(e, gid, true));
  ts_edges_destroy(&e);
  ts_edges_destroy(&e); /* NULL is accepted */
}

static void refuse(int status, const char *word)
{
  ts_edges *e = (ts_edges *)(void *)x;
  assert_int_equal(ts_edges_build(&cell, N, 0, (const double(*)[3])x, gid, &params, &e), status);
  assert_null(e);
  if (!strstr(ts_error_message(), word)) fail_msg("no '%s' in: %s", word, ts_error_message());
  make_liquid(NULL);
}

static void refusals(void **state)
{
  (void)state;
  params.cutoff = 0;
  refuse(TS_ERR_ARG, "cutoff");
  params.cutoff = NAN;
  refuse(TS_ERR_ARG, "cutoff");
  params.skin = -1;
  refuse(TS_ERR_ARG, "skin");
  params.lower = 6;
  refuse(TS_ERR_ARG, "lower");
  params.chunk = 0;
  refuse(TS_ERR_ARG, "chunk");
  gid[7] = gid[9];
  refuse(TS_ERR_ARG, "two atoms");
  gid[7] = -3;
  refuse(TS_ERR_ARG, "negative");
  x[8][1] = NAN;
  refuse(TS_ERR_SIMULATION, "finite");
  x[8][1] = 1e9;
  refuse(TS_ERR_SIMULATION, "wrap");
  const double thin[3][3] = {{1e-4, 0, 0}, {0, 30, 0}, {0, 0, 30}};
  ASSERT_OK(ts_cell_init(&cell, thin, NULL));
  ts_edges *e = NULL;
  const double lone[1][3] = {{0, 0, 0}};
  assert_int_equal(ts_edges_build(&cell, 1, 0, lone, gid, &params, &e), TS_ERR_UNSUPPORTED);
  make_liquid(NULL);
  params.recycle = build();
  params.cutoff = -1;
  refuse(TS_ERR_ARG, "cutoff"); /* and the recycled one is released */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_chunk_any_backend), cmocka_unit_test(excluded_senders),
      cmocka_unit_test(instruction_sets), cmocka_unit_test(validator_sees_damage),
      cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, make_liquid, NULL);
}
