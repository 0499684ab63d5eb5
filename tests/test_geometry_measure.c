/* SPDX-License-Identifier: MIT
 *
 * Lengths, directions and the active mask against plain arithmetic; the closest edge; the
 * fingerprint under everything that must not change it and a few things that must; displacement. */
#include "tests/neighbor_cases.h"

#include "neighbor/geometry.h"

static ts_edges *build_case(const search_case *c)
{
  ts_edges *e = NULL;
  ASSERT_OK(ts_edges_build(&c->cell, c->n, 0, c->x, c->gid, &c->params, &e));
  return e;
}

static void lengths_and_mask(void **state)
{
  (void)state;
  static search_case c;
  uint64_t seed = 1;
  for (int n = 0; n < 200; n++) {
    case_make(&c, n % CASE_KINDS, &seed);
    ts_edges *e = build_case(&c);
    const double lower = c.params.lower, cutoff = c.params.cutoff;
    double *g = malloc(((size_t)e->count + 1) * 4 * sizeof *g),
           *part = malloc(((size_t)e->count + 1) * 4 * sizeof *part);
    uint8_t *active = malloc((size_t)e->count + 1), *part_active = malloc((size_t)e->count + 1);
    double closest, least = INFINITY;
    int64_t closest_edge, count = 0;
    ts_edges_measure(e, c.x, 0, c.n, lower, cutoff, g, active, &closest, &closest_edge);
    brute_list exact = brute_edges(&c.cell, c.n, c.x, c.gid, lower, cutoff);
    for (int64_t k = 0; k < e->count; k++) {
      double d[3], r2 = 0;
      for (int m = 0; m < 3; m++) {
        d[m] = c.x[e->receiver[k]][m] - c.x[e->sender[k]][m] - e->shift_vector[e->shift[k]][m];
        r2 += d[m] * d[m];
      }
      const double r = sqrt(r2);
      assert_true(g[4 * k + 3] == r);
      for (int m = 0; m < 3 && r > 0; m++)
        assert_true(fabs(g[4 * k + m] * r - d[m]) <= 4e-16 * r);
      least = fmin(least, r);
      count += active[k];
      if (active[k]) assert_true(r >= lower && r <= cutoff);
    }
    int64_t coincident = 0; /* edges of length zero have no direction: never active */
    for (int64_t k = 0; k < exact.count; k++)
      coincident += exact.edge[k].r == 0;
    assert_int_equal(count, exact.count - coincident);
    assert_true(closest == least);
    if (e->count > 0) assert_true(g[4 * closest_edge + 3] == least);
    for (ts_lidx i = 0; i < c.n; i += 7) { /* any rows give the same numbers */
      const ts_lidx last = i + 7 < c.n ? i + 7 : c.n;
      const size_t first = (size_t)e->row[i], size = (size_t)e->row[last] - first;
      ts_edges_measure(e, c.x, i, last, lower, cutoff, part, part_active, NULL, NULL);
      if (size == 0) continue;
      assert_memory_equal(part, g + 4 * first, size * 4 * sizeof *g);
      assert_memory_equal(part_active, active + first, size);
    }
    free(g);
    free(part);
    free(active);
    free(part_active);
    free(exact.edge);
    ts_edges_destroy(&e);
  }
}

static void overlapping_atoms(void **state)
{
  (void)state;
  const double x[3][3] = {{1, 2, 3}, {1, 2, 3}, {4, 2, 3}};
  const ts_gidx gid[3] = {0, 1, 2};
  ts_cell cell;
  ts_search_params p;
  ts_edges *e = NULL;
  double g[4 * 6], closest;
  uint8_t active[6];
  int64_t edge;
  ASSERT_OK(ts_cell_init(&cell, NULL, NULL));
  ts_search_params_init(&p);
  p.cutoff = 5;
  ASSERT_OK(ts_edges_build(&cell, 3, 0, x, gid, &p, &e));
  assert_int_equal(e->count, 6);
  ts_edges_measure(e, x, 0, 3, 0, 5, g, active, &closest, &edge);
  assert_true(closest == 0 && edge == 0 && e->receiver[0] == 0 && e->sender[0] == 1);
  assert_true(g[0] == 0 && g[1] == 0 && g[2] == 0 && g[3] == 0 && !active[0] && active[1]);
  ts_edges_measure(e, x, 2, 2, 0, 5, g, active, &closest, &edge);
  assert_true(closest == INFINITY && edge == -1);
  ts_edges_destroy(&e);
}

static uint64_t hash_of(const search_case *c)
{
  ts_edges *e = build_case(c);
  const uint64_t h = ts_edges_hash(e, NULL, c->gid, c->image);
  ts_edges_destroy(&e);
  return h;
}

/* Positions on a fine grid, so that whole translations are exact and no distance is near a limit.
 */
static void to_grid(search_case *c)
{
  for (ts_lidx i = 0; i < c->n; i++)
    for (int k = 0; k < 3; k++)
      c->x[i][k] = ldexp(rint(ldexp(c->x[i][k], 10)), -10);
  for (int k = 0; k < 3; k++)
    for (int m = 0; m < 3; m++)
      c->cell.h[k][m] = ldexp(rint(ldexp(c->cell.h[k][m], 10)), -10);
  double h[3][3];
  memcpy(h, c->cell.h, sizeof h);
  bool periodic[3];
  memcpy(periodic, c->cell.periodic, sizeof periodic);
  ASSERT_OK(ts_cell_init(&c->cell, (const double(*)[3])h, periodic));
}

static void hash_invariance(void **state)
{
  (void)state;
  static search_case c, d;
  uint64_t seed = 2;
  for (int n = 0; n < 300; n++) {
    case_make(&c, n % 8, &seed);
    to_grid(&c);
    const uint64_t want = hash_of(&c);
    d = c; /* move each atom by its own lattice vector: another description of the same place */
    for (ts_lidx i = 0; i < d.n; i++)
      for (int k = 0; k < 3; k++) {
        const int q = d.cell.periodic[k] ? below(&seed, 5) - 2 : 0;
        d.image[i][k] -= q;
        for (int m = 0; m < 3; m++)
          d.x[i][m] += q * d.cell.h[k][m];
      }
    assert_true(hash_of(&d) == want);
    ASSERT_OK(ts_cell_wrap(&d.cell, d.n, d.x, d.image));
    assert_true(hash_of(&d) == want);
    d = c; /* all by one vector, then wrapped */
    for (ts_lidx i = 0; i < d.n; i++)
      for (int m = 0; m < 3; m++)
        d.x[i][m] += 3.25 - 7.5 * m;
    ASSERT_OK(ts_cell_wrap(&d.cell, d.n, d.x, d.image));
    assert_true(hash_of(&d) == want);
    d = c; /* another order in memory */
    for (ts_lidx i = 0; i < d.n; i++) {
      const ts_lidx j = d.n - 1 - i;
      memcpy(d.x[i], c.x[j], sizeof d.x[i]);
      memcpy(d.image[i], c.image[j], sizeof d.image[i]);
      d.gid[i] = c.gid[j];
    }
    assert_true(hash_of(&d) == want);
  }
}

static void hash_sees_changes(void **state)
{
  (void)state;
  static search_case c;
  uint64_t seed = 3;
  case_make(&c, 1, &seed);
  ts_edges *e = build_case(&c);
  const uint64_t all = ts_edges_hash(e, NULL, c.gid, c.image);
  uint8_t *active = malloc((size_t)e->count);
  memset(active, 1, (size_t)e->count);
  assert_true(e->count > 2 && ts_edges_hash(e, active, c.gid, c.image) == all);
  uint64_t sum = 0;
  for (int64_t k = 0; k < e->count; k++) {
    active[k] = 0;
    const uint64_t without = ts_edges_hash(e, active, c.gid, c.image);
    assert_true(without != all);
    sum += all - without;
    active[k] = 1;
  }
  assert_true(sum == all); /* a sum over edges */
  c.gid[0] += 1000;
  assert_true(ts_edges_hash(e, NULL, c.gid, c.image) != all);
  c.gid[0] -= 1000;
  c.image[0][1]++;
  assert_true(ts_edges_hash(e, NULL, c.gid, c.image) != all);
  free(active);
  ts_edges_destroy(&e);
}

static void displacement(void **state)
{
  (void)state;
  double x[3][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, y[3][3];
  ts_lidx atom = 7;
  memcpy(y, x, sizeof x);
  assert_true(ts_displacement_max(0, x, y, &atom) == 0 && atom == -1);
  assert_true(ts_displacement_max(3, x, y, &atom) == 0 && atom == 0);
  y[1][0] += 3;
  y[1][2] -= 4;
  y[2][0] += 1;
  assert_true(ts_displacement_max(3, x, y, &atom) == 5 && atom == 1);
  y[2][1] = NAN;
  assert_true(ts_displacement_max(3, x, y, &atom) == INFINITY && atom == 2);
  assert_true(ts_displacement_max(3, x, y, NULL) == INFINITY);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lengths_and_mask), cmocka_unit_test(overlapping_atoms),
      cmocka_unit_test(hash_invariance), cmocka_unit_test(hash_sees_changes),
      cmocka_unit_test(displacement)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
