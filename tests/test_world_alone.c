/* SPDX-License-Identifier: MIT
 *
 * MPI starts and stops for one rank, and its errors become codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "comm/world.h"
#include "runtime/error.h"

static int send_to(const ts_world *world, int rank)
{
  const int value = 1;
  TS_TRY_MPI(MPI_Send(&value, 1, MPI_INT, rank, 0, ts_world_comm(world)));
  return 0;
}

static void one_rank(void **state)
{
  (void)state;
  ts_world *world = NULL;
  ts_topology topology;
  int sharers = 0, share = -1, finalized = 0;
  assert_int_equal(ts_world_create(&world), 0);
  assert_int_equal(ts_world_rank(world), 0);
  assert_int_equal(ts_world_size(world), 1);
  assert_int_equal(ts_world_local_rank(world), 0);
  assert_int_equal(ts_world_local_size(world), 1);
  assert_int_equal(ts_topology_read(&topology), 0);
  assert_int_equal(ts_world_share(world, &topology, &sharers, &share), 0);
  assert_int_equal(sharers, 1);
  assert_int_equal(share, 0);

  assert_int_equal(send_to(world, 7), TS_ERR_MPI); /* there is no rank 7 */
  assert_non_null(strstr(ts_error_message(), "MPI_Send"));
  assert_non_null(strstr(ts_error_message(), "invalid rank"));

  ts_world_destroy(&world);
  assert_null(world);
  MPI_Finalized(&finalized);
  assert_true(finalized);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
