/* SPDX-License-Identifier: MIT
 *
 * The allowed cores follow this process's mask, and workers follow the cores. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/topology.h"

static void counts_are_consistent(void **state)
{
  (void)state;
  ts_topology t;
  cpu_set_t mask;
  assert_int_equal(ts_topology_read(&t), 0);
  assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
  assert_int_equal(t.threads, CPU_COUNT(&mask));
  assert_true(t.cores >= 1 && t.cores <= t.threads && t.cores <= t.machine_cores);
  assert_true(t.packages >= 1 && t.packages <= t.cores);
  assert_true(t.numa_nodes >= 1);
  assert_true(t.l3_sharers <= t.cores);
  assert_true(t.memory_bytes > (uint64_t)64 << 20);
  for (int i = 1; i < t.cores; i++)
    assert_true(t.thread_of_core[i] > t.thread_of_core[i - 1]);
}

static void mask_of_one_thread_is_one_core(void **state)
{
  (void)state;
  ts_topology t;
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(ts_topology_read(&t), 0);
    assert_int_equal(t.cores, 1);
    assert_int_equal(t.threads, 1);
    assert_int_equal(ts_topology_workers(&t, 1), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  }
}

static void workers_are_a_share(void **state)
{
  (void)state;
  const ts_topology t = {.cores = 16};
  assert_int_equal(ts_topology_workers(&t, 1), 16);
  assert_int_equal(ts_topology_workers(&t, 4), 4);
  assert_int_equal(ts_topology_workers(&t, 3), 5);
  assert_int_equal(ts_topology_workers(&t, 40), 1);
  const ts_topology limited = {.cores = 16, .cpu_quota = 2.5};
  assert_int_equal(ts_topology_workers(&limited, 1), 2);
  const ts_topology starved = {.cores = 16, .cpu_quota = 0.3};
  assert_int_equal(ts_topology_workers(&starved, 1), 1);
}

static void description_fits(void **state)
{
  (void)state;
  ts_topology t;
  char text[512], cut[16];
  assert_int_equal(ts_topology_read(&t), 0);
  assert_true(ts_topology_describe(&t, text, sizeof text) < (int)sizeof text);
  assert_non_null(strstr(text, "cores"));
  ts_topology_describe(&t, cut, sizeof cut);
  assert_int_equal(strlen(cut), sizeof cut - 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_are_consistent),
      cmocka_unit_test(mask_of_one_thread_is_one_core),
      cmocka_unit_test(workers_are_a_share),
      cmocka_unit_test(description_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
