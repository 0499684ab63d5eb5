/* SPDX-License-Identifier: MIT
 *
 * The curves: published codes, every cell once, Hilbert's steps of one face, and orders that are a
 * pure function of positions and ids. */
#include "tests/neighbor_cases.h"

#include "neighbor/curve.h"

static void known_codes(void **state)
{
  (void)state;
  static const struct {
    int bits;
    uint32_t c[3];
    uint64_t code;
  } known[] = {{3, {0, 0, 0}, 0},
               {3, {1, 0, 0}, 1},
               {3, {0, 1, 0}, 7},
               {3, {0, 0, 1}, 3},
               {3, {7, 0, 0}, 511},
               {3, {7, 7, 7}, 365},
               {3, {3, 5, 6}, 176},
               {16, {1, 2, 3}, 36},
               {16, {65535, 0, 0}, (1ULL << 48) - 1},
               {16, {12345, 54321, 33333}, 87863660903127}};
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
    assert_true(ts_curve_hilbert(known[k].c, known[k].bits) == known[k].code);
  const uint32_t c[3] = {1, 0, 0}, d[3] = {0, 3, 1}, last[3] = {0x1fffff, 0x1fffff, 0x1fffff};
  assert_true(ts_curve_morton(c, 21) == 4);
  assert_true(ts_curve_morton(d, 21) == 2 + 16 + 1);
  assert_true(ts_curve_morton(last, 21) == (1ULL << 63) - 1);
}

static void hilbert_walks_by_faces(void **state)
{
  (void)state;
  enum { BITS = 4, SIDE = 1 << BITS, CELLS = SIDE * SIDE * SIDE };
  static uint32_t at[CELLS][3];
  static bool seen[CELLS], seen_morton[CELLS];
  uint32_t c[3];
  for (c[0] = 0; c[0] < SIDE; c[0]++)
    for (c[1] = 0; c[1] < SIDE; c[1]++)
      for (c[2] = 0; c[2] < SIDE; c[2]++) {
        const uint64_t h = ts_curve_hilbert(c, BITS), m = ts_curve_morton(c, BITS);
        assert_true(h < CELLS && !seen[h] && m < CELLS && !seen_morton[m]);
        seen[h] = seen_morton[m] = true;
        memcpy(at[h], c, sizeof c);
      }
  for (int k = 1; k < CELLS; k++) {
    int steps = 0;
    for (int m = 0; m < 3; m++)
      steps += abs((int)at[k][m] - (int)at[k - 1][m]);
    assert_int_equal(steps, 1);
  }
}

enum { ATOMS = 500 };

static void order_is_pure(void **state)
{
  (void)state;
  uint64_t seed = 5;
  static double x[ATOMS][3], y[ATOMS][3];
  static ts_gidx gid[ATOMS], gid2[ATOMS];
  static ts_lidx order[ATOMS], order2[ATOMS];
  ts_cell cell;
  const double h[3][3] = {{9, 0, 0}, {2, 8, 0}, {-1, 3, 7}};
  const bool slab[3] = {true, false, true};
  ASSERT_OK(ts_cell_init(&cell, h, slab));
  for (int i = 0; i < ATOMS; i++) {
    gid[i] = 7 * i + 1;
    for (int k = 0; k < 3; k++)
      x[i][k] = i % 5 == 4 ? x[i - 1][k] : uniform(&seed, 0, 5); /* pairs in one place */
  }
  for (int i = 0; i < ATOMS; i++) {
    const int j = (i * 37 + 11) % ATOMS;
    memcpy(y[i], x[j], sizeof y[i]);
    gid2[i] = gid[j];
  }
  for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
    static uint64_t key[ATOMS];
    ASSERT_OK(ts_curve_order((ts_curve)curve, TS_NORMALIZE_AXES, &cell, ATOMS, x, gid, order));
    ASSERT_OK(ts_curve_order((ts_curve)curve, TS_NORMALIZE_AXES, &cell, ATOMS, y, gid2, order2));
    ts_curve_keys((ts_curve)curve, TS_NORMALIZE_AXES, &cell, ATOMS, x, key);
    for (int k = 0; k < ATOMS; k++) {
      assert_true(gid[order[k]] == gid2[order2[k]]);
      if (k == 0) continue;
      const ts_lidx a = order[k - 1], b = order[k];
      assert_true(key[a] < key[b] || (key[a] == key[b] && gid[a] < gid[b]));
    }
  }
}

/* By its longest axis, a flat cell has the keys of a cube that it is a part of. */
static void longest_is_a_cube(void **state)
{
  (void)state;
  uint64_t seed = 6;
  const double flat[3][3] = {{4, 0, 0}, {0, 16, 0}, {0, 0, 8}};
  const double cube[3][3] = {{16, 0, 0}, {0, 16, 0}, {0, 0, 16}};
  const bool periodic[3] = {true, true, true}, slab[3] = {true, true, false};
  static double x[ATOMS][3];
  static uint64_t in_flat[ATOMS], in_cube[ATOMS], within[ATOMS];
  ts_cell part, whole, open;
  ASSERT_OK(ts_cell_init(&part, flat, periodic));
  ASSERT_OK(ts_cell_init(&whole, cube, periodic));
  ASSERT_OK(ts_cell_init(&open, cube, slab));
  for (int i = 0; i < ATOMS; i++)
    for (int k = 0; k < 3; k++)
      x[i][k] = uniform(&seed, 0, flat[k][k]);
  for (int curve = TS_CURVE_HILBERT; curve <= TS_CURVE_MORTON; curve++) {
    const double low[3] = {0, 0, 0}, high[3] = {1, 1, 0.5};
    ts_curve_keys((ts_curve)curve, TS_NORMALIZE_LONGEST, &part, ATOMS, x, in_flat);
    ts_curve_keys((ts_curve)curve, TS_NORMALIZE_AXES, &whole, ATOMS, x, in_cube);
    assert_memory_equal(in_flat, in_cube, sizeof in_flat);
    ts_curve_keys_within((ts_curve)curve, TS_NORMALIZE_LONGEST, &open, low, high, ATOMS, x, within);
    assert_memory_equal(within, in_cube, sizeof within);
    ts_curve_keys((ts_curve)curve, TS_NORMALIZE_AXES, &part, ATOMS, x, in_cube);
    assert_memory_not_equal(in_flat, in_cube, sizeof in_flat);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_codes), cmocka_unit_test(hilbert_walks_by_faces),
      cmocka_unit_test(order_is_pure), cmocka_unit_test(longest_is_a_cube)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
