/* SPDX-License-Identifier: MIT
 *
 * The term exchange gives the same terms, key for key and bit for bit, on one rank and on all, and
 * with either routing; and linear routing sends one message pair for each shift, at most.  Run by
 * mpirun (test_route_ranks.sh) or alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"
#include "tests/terms.h"

enum { STEP = 9, START = 40, APPLIED = (TERM_GENERATORS + STEP - 1) / STEP };
static const double threshold = 0.001;

static ts_world *world;

static void propagate(const ts_ranks *ranks, ts_route_mode mode, terms **t)
{
  assert_int_equal(terms_create(ranks, mode, START, t), 0);
  for (int g = 0; g < TERM_GENERATORS; g += STEP)
    assert_int_equal(terms_apply(*t, g, threshold, NULL, NULL), 0);
}

static void same_terms(ts_route_mode mode, const terms *serial)
{
  ts_ranks ranks;
  ts_traffic traffic = {0};
  terms *t = NULL;
  ts_router *router = NULL;
  assert_int_equal(ts_ranks_of(ts_world_comm(world), &ranks), 0);
  if (mode == TS_ROUTE_LINEAR && (ranks.size & (ranks.size - 1))) return; /* refused elsewhere */
  ranks.traffic = &traffic;
  propagate(&ranks, mode, &t);
  for (int64_t i = 0; i < terms_count(t); i++) {
    const double *expected = terms_find(serial, terms_key(t, i));
    const double got = terms_value(t, i);
    assert_non_null(expected);
    assert_memory_equal(expected, &got, sizeof got);
  }
  int64_t sum = terms_count(t);
  assert_int_equal(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, ranks.comm), 0);
  assert_int_equal(sum, terms_count(serial));

  assert_int_equal(terms_router(mode, ranks.size, &router), 0);
  int away = 0; /* shifts that leave the rank */
  for (int g = 0; g < TERM_GENERATORS; g += STEP)
    away += ts_router_shift(router, terms_generator(g)) != 0;
  if (mode == TS_ROUTE_LINEAR) assert_true(traffic.messages <= 2 * away);
  if (ranks.size == 1) assert_int_equal(traffic.messages, 0);
  if (mode == TS_ROUTE_SPLITMIX) assert_true(traffic.messages >= APPLIED * (ranks.size - 1));
  ts_router_destroy(&router);
  terms_destroy(&t);
}

static void both_arms(void **state)
{
  (void)state;
  const ts_ranks alone = ts_ranks_virtual(1);
  terms *serial = NULL;
  propagate(&alone, TS_ROUTE_LINEAR, &serial);
  assert_in_range(terms_count(serial), 2 * START, 1000000);
  same_terms(TS_ROUTE_LINEAR, serial);
  same_terms(TS_ROUTE_SPLITMIX, serial);
  terms_destroy(&serial);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_arms)};
  ranks_watchdog(120);
  if (ts_world_create(&world)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
