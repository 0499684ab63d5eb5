/* SPDX-License-Identifier: MIT
 *
 * `routed` names every rank that owns an atom within reach: 200 random systems against all pairs of
 * atoms and images, shards of the curve and of no order at all, 1 to 16 virtual ranks; under mpirun
 * (test_route_ranks.sh) the real ranks must answer what the virtual ones do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/world.h"
#include "neighbor/curve.h"
#include "neighbor/level1_routed.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

enum { ATOMS = 120, SYSTEMS = 200, MAX_RANKS = 16 };

typedef struct system_of_atoms {
  ts_cell cell;
  double x[ATOMS][3], reach;
  ts_lidx n;
  ts_shard shard[MAX_RANKS];
  int owner[ATOMS];
} system_of_atoms;

static ts_world *world;
static uint64_t state;

static double draw(void) /* [0, 1) */
{
  return (double)(tsi_key_avalanche((ts_key){state++, 0}, 5) >> 11) * 0x1p-53;
}

/* Any triclinic cell, any periodic directions, dense or nearly empty, thin or wide. */
static void make_cell(system_of_atoms *s)
{
  double h[3][3];
  bool periodic[3];
  do
    for (int k = 0; k < 3; k++) {
      const double length = 2 + 38 * draw() * draw();
      for (int m = 0; m < 3; m++)
        h[k][m] = k == m ? length : length * (draw() - 0.5);
      periodic[k] = draw() < 0.75;
    }
  while (ts_cell_init(&s->cell, h, periodic) || s->cell.height[0] < 0.5 ||
         s->cell.height[1] < 0.5 || s->cell.height[2] < 0.5);
  s->reach = 0.5 + 5.5 * draw();
}

static void make_atoms(system_of_atoms *s, int ranks)
{
  static double raw[ATOMS][3];
  ts_gidx gid[ATOMS];
  ts_lidx order[ATOMS];
  int32_t image[ATOMS][3] = {{0}};
  s->n = (ts_lidx)(ATOMS * draw()) + 1;
  const bool lumps = draw() < 0.3;
  for (int i = 0; i < s->n; i++) {
    gid[i] = i;
    double f[3];
    for (int k = 0; k < 3; k++)
      f[k] = lumps ? floor(3 * draw()) / 3 + 0.02 * draw() : draw();
    for (int m = 0; m < 3; m++)
      raw[i][m] = f[0] * s->cell.h[0][m] + f[1] * s->cell.h[1][m] + f[2] * s->cell.h[2][m];
  }
  assert_int_equal(ts_cell_wrap(&s->cell, s->n, raw, image), 0);
  assert_int_equal(ts_curve_order(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, &s->cell, s->n,
                                  (const double(*)[3])raw, gid, order),
                   0);
  const bool scattered = draw() < 0.25;
  for (int i = 0; i < s->n; i++)
    memcpy(s->x[i], raw[scattered ? i : order[i]], sizeof s->x[i]);
  /* unequal shards, empty ones too */
  int cut[MAX_RANKS + 1] = {0};
  const bool equal = draw() < 0.7;
  for (int k = 1; k <= ranks; k++)
    cut[k] = equal ? s->n * k / ranks : cut[k - 1] + (int)((s->n - cut[k - 1]) * draw() * draw());
  cut[ranks] = s->n;
  for (int k = 0; k < ranks; k++) {
    s->shard[k] = (ts_shard){.n = cut[k + 1] - cut[k], .x = (const double(*)[3]) & s->x[cut[k]]};
    for (int i = cut[k]; i < cut[k + 1]; i++)
      s->owner[i] = k;
  }
}

static bool near(const system_of_atoms *s, int i, int j)
{
  int most[3];
  for (int k = 0; k < 3; k++)
    most[k] = s->cell.periodic[k] ? 1 + (int)ceil(s->reach / s->cell.height[k]) : 0;
  for (int a = -most[0]; a <= most[0]; a++)
    for (int b = -most[1]; b <= most[1]; b++)
      for (int c = -most[2]; c <= most[2]; c++) {
        double shift[3], r2 = 0;
        ts_cell_shift(&s->cell, (const int32_t[3]){a, b, c}, shift);
        for (int m = 0; m < 3; m++) {
          const double d = s->x[i][m] - s->x[j][m] - shift[m];
          r2 += d * d;
        }
        if (r2 <= s->reach * s->reach) return true;
      }
  return false;
}

static bool names(const ts_sources *s, int rank)
{
  for (int i = 0; i < s->n; i++)
    if (s->rank[i] == rank) return true;
  return false;
}

static void check_sources(const system_of_atoms *s, int ranks, const ts_sources *sources,
                          int64_t *needed, int64_t *named)
{
  bool need[MAX_RANKS][MAX_RANKS] = {{false}};
  for (int i = 0; i < s->n; i++)
    for (int j = 0; j < s->n; j++)
      if (!need[s->owner[i]][s->owner[j]]) need[s->owner[i]][s->owner[j]] = near(s, i, j);
  for (int p = 0; p < ranks; p++) {
    for (int i = 1; i < sources[p].n; i++)
      assert_true(sources[p].rank[i - 1] < sources[p].rank[i]);
    for (int q = 0; q < ranks; q++) {
      const bool named_q = names(&sources[p], q);
      if (need[p][q]) assert_true(named_q);
      assert_int_equal(named_q, names(&sources[q], p)); /* who needs whom is symmetric */
      if (s->shard[q].n == 0) assert_false(named_q);
      *needed += need[p][q];
      *named += named_q;
    }
  }
}

static void release(int ranks, ts_sources *sources)
{
  for (int p = 0; p < ranks; p++)
    free(sources[p].rank);
}

static void never_misses(void **unused)
{
  (void)unused;
  int64_t needed = 0, named = 0, all = 0;
  system_of_atoms s;
  for (int i = 0; i < SYSTEMS; i++) {
    state = 1000 * (uint64_t)i;
    const int count = 1 + i % MAX_RANKS;
    const ts_ranks ranks = ts_ranks_virtual(count);
    ts_sources sources[MAX_RANKS];
    ts_route_params p;
    ts_route_params_init(&p, 1);
    p.mode = i % 5 == 4 ? TS_ROUTE_SPLITMIX : TS_ROUTE_LINEAR;
    make_cell(&s);
    make_atoms(&s, count);
    const double width = i % 3 == 2 ? 2 * s.reach : 0;
    assert_int_equal(ts_level1_routed(&ranks, &p, &s.cell, s.reach, width, s.shard, sources, NULL),
                     0);
    check_sources(&s, count, sources, &needed, &named);
    all += count * count;
    release(count, sources);
  }
  /* it discards something: a filter that names everybody would pass everything above */
  assert_true(needed < named && named < all * 9 / 10);
}

static void real_as_virtual(void **unused)
{
  (void)unused;
  ts_ranks real;
  ts_traffic traffic = {0}, expected[MAX_RANKS] = {{0}};
  system_of_atoms s;
  assert_int_equal(ts_ranks_of(ts_world_comm(world), &real), 0);
  assert_in_range(real.size, 1, MAX_RANKS);
  real.traffic = &traffic;
  for (int i = 0; i < 5; i++) {
    ts_ranks virtual_ranks = ts_ranks_virtual(real.size);
    ts_sources sources[MAX_RANKS], own;
    ts_level1_grid grid[2];
    ts_route_params p;
    state = 1000 * (uint64_t)i + 500;
    virtual_ranks.traffic = expected;
    ts_route_params_init(&p, 1);
    p.mode = i % 5 == 4 ? TS_ROUTE_SPLITMIX : TS_ROUTE_LINEAR;
    make_cell(&s);
    make_atoms(&s, real.size);
    assert_int_equal(
        ts_level1_routed(&virtual_ranks, &p, &s.cell, s.reach, 0, s.shard, sources, &grid[0]), 0);
    assert_int_equal(
        ts_level1_routed(&real, &p, &s.cell, s.reach, 0, &s.shard[real.first], &own, &grid[1]), 0);
    assert_memory_equal(&grid[0], &grid[1], sizeof grid[0]);
    assert_int_equal(own.n, sources[real.first].n);
    for (int k = 0; k < own.n; k++)
      assert_int_equal(own.rank[k], sources[real.first].rank[k]);
    assert_int_equal(traffic.messages, expected[real.first].messages);
    assert_int_equal(traffic.bytes, expected[real.first].bytes);
    release(real.size, sources);
    free(own.rank);
  }
}

static void refused(void **unused)
{
  (void)unused;
  const ts_ranks ranks = ts_ranks_virtual(1);
  const double x[1][3] = {{0, NAN, 0}};
  const ts_shard shard = {.n = 1, .x = x};
  ts_sources sources;
  ts_cell cell;
  ts_route_params p;
  const double h[3][3] = {{9, 0, 0}, {0, 9, 0}, {0, 0, 9}};
  ts_route_params_init(&p, 1);
  assert_int_equal(ts_cell_init(&cell, h, NULL), 0);
  assert_int_equal(ts_level1_routed(&ranks, &p, &cell, 0, 0, &shard, &sources, NULL), TS_ERR_ARG);
  assert_int_equal(ts_level1_routed(&ranks, &p, &cell, NAN, 0, &shard, &sources, NULL), TS_ERR_ARG);
  assert_int_equal(ts_level1_routed(&ranks, &p, &cell, 2, 0, &shard, &sources, NULL),
                   TS_ERR_SIMULATION);
}

int main(void)
{
  const struct CMUnitTest alone[] = {cmocka_unit_test(never_misses),
                                     cmocka_unit_test(real_as_virtual), cmocka_unit_test(refused)};
  const struct CMUnitTest together[] = {cmocka_unit_test(real_as_virtual)};
  ranks_watchdog(240);
  if (ts_world_create(&world)) return 1;
  const int failed = ts_world_size(world) > 1 ? cmocka_run_group_tests(together, NULL, NULL)
                                              : cmocka_run_group_tests(alone, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
