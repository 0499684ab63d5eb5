/* SPDX-License-Identifier: MIT
 *
 * The directory against a plain table that every rank keeps: random batches put, looked up and
 * removed, any number of ranks, both routings.  Run by mpirun (test_route_ranks.sh) or alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/directory.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

enum { UNIVERSE = 700, BATCH = 150, ROUNDS = 6 };

typedef struct value {
  int64_t round;
  int32_t rank, index;
} value;

static ts_world *world;
static int me, size;

static uint64_t draw(int rank, int round, int i)
{
  return tsi_key_avalanche((ts_key){(uint64_t)i, (uint64_t)round}, (uint64_t)rank);
}

static ts_key key_of(int k)
{
  return (ts_key){(uint64_t)k * 3, (uint64_t)(k % 5)};
}

/* What a rank names in a round; repetitions happen. */
static int chosen(int rank, int round, int i)
{
  return (int)(draw(rank, round, i) % UNIVERSE);
}

static int batch_size(int rank, int round)
{
  return (int)(draw(rank, round, -1) % BATCH); /* some are small, they differ */
}

static void model_round(value *model, bool *there, int round)
{
  for (int rank = 0; rank < size; rank++)
    for (int i = 0; i < batch_size(rank, round); i++) {
      const int k = chosen(rank, round, i);
      there[k] = round % 3 != 2;
      if (there[k]) model[k] = (value){round, rank, i};
    }
}

static void do_round(ts_directory *d, int round)
{
  ts_key key[BATCH];
  value own[BATCH];
  const int n = batch_size(me, round);
  for (int i = 0; i < n; i++) {
    key[i] = key_of(chosen(me, round, i));
    own[i] = (value){round, me, i};
  }
  assert_int_equal(
      round % 3 == 2 ? ts_directory_remove(d, n, key) : ts_directory_put(d, n, key, own), 0);
}

static void check_all(ts_directory *d, const value *model, const bool *there)
{
  static ts_key key[UNIVERSE];
  static value got[UNIVERSE];
  static bool found[UNIVERSE];
  const int n = me % 3 == 1 ? 0 : UNIVERSE; /* some ask nothing */
  int64_t entries = ts_directory_count(d), expected = 0;
  for (int k = 0; k < UNIVERSE; k++) {
    key[k] = key_of(k);
    got[k] = (value){-7, -7, -7};
    expected += there[k];
  }
  assert_int_equal(ts_directory_find(d, n, key, got, found), 0);
  for (int k = 0; k < n; k++) {
    assert_int_equal(found[k], there[k]);
    assert_int_equal(got[k].round, there[k] ? model[k].round : -7);
    assert_int_equal(got[k].rank, there[k] ? model[k].rank : -7);
    assert_int_equal(got[k].index, there[k] ? model[k].index : -7);
  }
  assert_int_equal(
      MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_INT64_T, MPI_SUM, ts_world_comm(world)), 0);
  assert_int_equal(entries, expected);
}

static void batches(void **state)
{
  (void)state;
  for (int mode = 0; mode < 2; mode++) {
    static value model[UNIVERSE];
    static bool there[UNIVERSE];
    ts_directory *d = NULL;
    ts_route_params p;
    memset(there, 0, sizeof there);
    ts_route_params_init(&p, 1);
    p.mode = (ts_route_mode)mode;
    assert_int_equal(ts_directory_create(ts_world_comm(world), &p, sizeof(value), &d), 0);
    check_all(d, model, there);
    for (int round = 0; round < ROUNDS; round++) {
      do_round(d, round);
      model_round(model, there, round);
      check_all(d, model, there);
    }
    if (me >= tsi_power_of_two_below(size)) assert_int_equal(ts_directory_count(d), 0);
    ts_directory_destroy(&d);
    assert_null(d);
  }
}

/* Atoms dealt out unevenly; later some move. */
static void owners(void **state)
{
  (void)state;
  enum { ATOMS = 4096 };
  static ts_gidx mine[ATOMS], asked[ATOMS + 2];
  static int32_t owner[ATOMS + 2];
  ts_directory *d = NULL;
  ts_route_params p;
  ts_route_params_init(&p, 1);
  assert_int_equal(ts_directory_create(ts_world_comm(world), &p, sizeof(int32_t), &d), 0);
  for (int turn = 0; turn < 2; turn++) {
    int64_t n = 0;
    for (ts_gidx gid = 0; gid < ATOMS; gid++)
      if ((int)(draw(turn, 0, (int)gid) % (uint64_t)size) == me) mine[n++] = gid;
    assert_int_equal(ts_directory_put_atoms(d, n, mine), 0);
    for (int i = 0; i < ATOMS; i++)
      asked[i] = ATOMS - 1 - i;
    asked[ATOMS] = ATOMS; /* nobody has these */
    asked[ATOMS + 1] = INT64_MAX;
    assert_int_equal(ts_directory_find_atoms(d, ATOMS + 2, asked, owner), 0);
    for (int i = 0; i < ATOMS; i++)
      assert_int_equal(owner[i], draw(turn, 0, (int)asked[i]) % (uint64_t)size);
    assert_int_equal(owner[ATOMS], -1);
    assert_int_equal(owner[ATOMS + 1], -1);
  }
  const int homes = tsi_power_of_two_below(size); /* low bits of ids were fitted: equal shares */
  assert_int_equal(ts_directory_count(d), me < homes ? ATOMS / homes : 0);
  ts_directory_destroy(&d);
}

static void refused_together(void **state)
{
  (void)state;
  ts_directory *d = NULL;
  ts_route_params p;
  ts_gidx gid = 0;
  ts_route_params_init(&p, 1);
  assert_int_equal(ts_directory_create(ts_world_comm(world), &p, 16, &d), 0);
  assert_int_equal(ts_directory_put_atoms(d, 1, &gid), TS_ERR_ARG);
  ts_directory_destroy(&d);
  if (size == 1) return;
  p.seed = me == size - 1 ? 5 : 6;
  assert_int_equal(ts_directory_create(ts_world_comm(world), &p, 8, &d), TS_ERR_INPUT);
  assert_null(d);
  p.seed = 1;
  assert_int_equal(ts_directory_create(ts_world_comm(world), &p, me ? 8 : 4, &d), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "4 bytes on one rank and 8"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches), cmocka_unit_test(owners),
                                     cmocka_unit_test(refused_together)};
  ranks_watchdog(120);
  if (ts_world_create(&world)) return 1;
  me = ts_world_rank(world);
  size = ts_world_size(world);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
