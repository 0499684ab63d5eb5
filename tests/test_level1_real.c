/* SPDX-License-Identifier: MIT
 *
 * Real ranks find the halo that virtual ones do, count the same messages and bytes, and fail
 * together.  Run by mpirun (test_level1_ranks.sh) or alone. */
#include "tests/level1_cases.h"

#include "comm/world.h"
#include "tests/ranks_watchdog.h"

static ts_world *world;

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
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_as_virtual), cmocka_unit_test(refusals)};
  ranks_watchdog(120);
  if (ts_world_create(&world)) return 1;
  if (cmocka_run_group_tests(tests, NULL, NULL)) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
