/* SPDX-License-Identifier: MIT
 *
 * The paper's figure 2: 8 x 8 cells of weight 1 + 0.1 exp(-((x-6)^2 + (y-5)^2)/8), cut into four
 * equal weights along a curve.  Morton: boxes of 16, 40, 20 and 16 cells, 1.4174 times what the
 * ranks own; the second rank is in two pieces, with 23 foreign cells in its box.  Hilbert: 16, 20,
 * 16, 16, and 1.0608.  (Hilbert's curve of the plane stands here; the program's is that of space.)
 */
#include "neighbor/curve.h"
#include "neighbor/partition.h"
#include "tests/neighbor_cases.h"

enum { SIDE = 8, CELLS = SIDE * SIDE, RANKS = 4 };

static uint64_t hilbert(int x, int y)
{
  uint64_t key = 0;
  for (int s = SIDE / 2; s > 0; s /= 2) {
    const int right = (x & s) != 0, up = (y & s) != 0;
    key += (uint64_t)(s * s * ((3 * right) ^ up));
    if (up) continue;
    const int old = right ? SIDE - 1 - x : x;
    x = right ? SIDE - 1 - y : y;
    y = old;
  }
  return key;
}

static uint64_t morton(int x, int y)
{
  return ts_curve_morton((const uint32_t[3]){(uint32_t)x, (uint32_t)y, 0}, 3);
}

/* owner [x][y] */
static void cut(uint64_t (*key_of)(int x, int y), int32_t owner[SIDE][SIDE])
{
  static uint64_t key[CELLS];
  static ts_gidx gid[CELLS];
  static double weight[CELLS];
  const ts_ranks ranks = ts_ranks_virtual(RANKS);
  const ts_partition_params params = {.slack = 1};
  ts_shard shard[RANKS] = {{.n = CELLS, .gid = gid}};
  const uint64_t *keys[RANKS] = {key};
  const double *weights[RANKS] = {weight};
  int32_t *owners[RANKS] = {owner[0]};
  for (int i = 0; i < CELLS; i++) {
    const int x = i / SIDE, y = i % SIDE;
    gid[i] = i;
    key[i] = key_of(x, y);
    weight[i] = 1e6 * (1 + 0.1 * exp(-((x - 6) * (x - 6) + (y - 5) * (y - 5)) / 8.0));
  }
  ASSERT_OK(ts_partition_cut(&ranks, &params, shard, keys, weights, owners));
}

/* Cells of a rank's box and of the rank. */
static void measure(int32_t owner[SIDE][SIDE], int rank, int *box, int *own)
{
  int low[2] = {SIDE, SIDE}, high[2] = {-1, -1};
  *own = 0;
  for (int x = 0; x < SIDE; x++)
    for (int y = 0; y < SIDE; y++) {
      if (owner[x][y] != rank) continue;
      ++*own;
      low[0] = x < low[0] ? x : low[0];
      low[1] = y < low[1] ? y : low[1];
      high[0] = x > high[0] ? x : high[0];
      high[1] = y > high[1] ? y : high[1];
    }
  *box = (high[0] - low[0] + 1) * (high[1] - low[1] + 1);
}

static void flood(int32_t owner[SIDE][SIDE], bool seen[SIDE][SIDE], int x, int y, int rank)
{
  if (x < 0 || y < 0 || x >= SIDE || y >= SIDE || seen[x][y] || owner[x][y] != rank) return;
  seen[x][y] = true;
  flood(owner, seen, x + 1, y, rank);
  flood(owner, seen, x - 1, y, rank);
  flood(owner, seen, x, y + 1, rank);
  flood(owner, seen, x, y - 1, rank);
}

static int pieces(int32_t owner[SIDE][SIDE], int rank)
{
  bool seen[SIDE][SIDE] = {{false}};
  int count = 0;
  for (int x = 0; x < SIDE; x++)
    for (int y = 0; y < SIDE; y++)
      if (owner[x][y] == rank && !seen[x][y]) {
        flood(owner, seen, x, y, rank);
        count++;
      }
  return count;
}

static void boxes_of_the_toy(void **state)
{
  (void)state;
  static const struct {
    uint64_t (*key)(int x, int y);
    int box[RANKS], pieces;
    double ratio;
  } known[] = {{morton, {16, 40, 20, 16}, 2, 1.4174}, {hilbert, {16, 20, 16, 16}, 1, 1.0608}};
  for (int c = 0; c < 2; c++) {
    int32_t owner[SIDE][SIDE];
    int box, own;
    double ratio = 0;
    cut(known[c].key, owner);
    for (int r = 0; r < RANKS; r++) {
      measure(owner, r, &box, &own);
      assert_int_equal(box, known[c].box[r]);
      ratio += (double)box / own / RANKS;
      if (c == 0 && r == 1) assert_int_equal(box - own, 23);
    }
    assert_float_equal(ratio, known[c].ratio, 5e-5);
    assert_int_equal(pieces(owner, 1), known[c].pieces);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_of_the_toy)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
