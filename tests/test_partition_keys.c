/* SPDX-License-Identifier: MIT
 *
 * Keys over virtual ranks are those of one rank that holds all atoms: slabs and droplets whose
 * extent no rank sees whole, atoms on faces and corners, ranks without atoms, a single atom. */
#include "neighbor/partition.h"
#include "tests/neighbor_cases.h"

enum { ATOMS = 900, RANKS = 13 };

static double place[ATOMS][3];
static ts_gidx gid[ATOMS];
static uint64_t key[ATOMS], expected[ATOMS];
static int32_t owner[ATOMS];

/* Atoms dealt in uneven slices, some empty. */
static void deal(uint64_t *state, int n, ts_shard *shard, uint64_t **keys, int32_t **owners)
{
  for (int r = 0, at = 0; r < RANKS; r++) {
    const int left = n - at, take = r == RANKS - 1 ? left : below(state, 3) * left / 4;
    shard[r] = (ts_shard){.n = take, .x = (const double(*)[3])(place + at), .gid = gid + at};
    keys[r] = key + at;
    owners[r] = owner + at;
    at += take;
  }
}

static void compare(uint64_t *state, const ts_cell *cell, int n)
{
  const ts_ranks ranks = ts_ranks_virtual(RANKS);
  ts_shard shard[RANKS];
  uint64_t *keys[RANKS];
  int32_t *owners[RANKS];
  for (int curve = 0; curve < 2; curve++) {
    const ts_partition_params params = {.curve = curve ? TS_CURVE_MORTON : TS_CURVE_HILBERT};
    static ts_lidx order[ATOMS];
    deal(state, n, shard, keys, owners);
    ts_curve_keys(params.curve, TS_NORMALIZE_AXES, cell, n, (const double(*)[3])place, expected);
    memset(key, 0xff, sizeof key);
    ASSERT_OK(ts_partition_keys(&ranks, &params, cell, shard, keys));
    assert_memory_equal(key, expected, (size_t)n * sizeof *key);
    if (n < RANKS) continue;
    ASSERT_OK(ts_curve_order(params.curve, TS_NORMALIZE_AXES, cell, n, (const double(*)[3])place,
                             gid, order));
    ASSERT_OK(
        ts_partition_cut(&ranks, &params, shard, (const uint64_t *const *)keys, NULL, owners));
    for (int r = 0; r < RANKS; r++) /* each atom once, in intervals of one rank's order */
      for (int k = n * r / RANKS; k < n * (r + 1) / RANKS; k++)
        assert_int_equal(owner[order[k]], r);
  }
}

static void same_as_one_rank(void **state)
{
  (void)state;
  const double h[3][3] = {{20, 0, 0}, {-10, 17.3, 0}, {3, 2, 31}};
  const double corners[] = {0.0, -0.0, 1e-300, 1 - 0x1p-53, 0.1 / 20, 1 - 0.1 / 20};
  uint64_t seed = 23;
  for (int t = 0; t < 200; t++) {
    const bool periodic[3] = {t & 1, t & 2, t & 4};
    const double size = t % 3 ? 1 : 1e-3;
    const int n = t % 10 == 0 ? 1 : 1 + below(&seed, ATOMS);
    ts_cell cell;
    ASSERT_OK(ts_cell_init(&cell, h, periodic));
    for (int i = 0; i < n; i++) {
      double f[3];
      for (int k = 0; k < 3; k++)
        f[k] = t % 5 ? size * uniform(&seed, 0, 1) : corners[below(&seed, 6)];
      for (int k = 0; k < 3; k++)
        place[i][k] = f[0] * h[0][k] + f[1] * h[1][k] + f[2] * h[2][k];
      gid[i] = n - 1 - i;
    }
    compare(&seed, &cell, n);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_one_rank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
