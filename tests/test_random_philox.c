/* SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 against the known-answer vectors that its authors publish (Random123,
 * tests/kat_vectors), and the arguments of a deviate all reaching the counter or the key. */
#include "md/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_known_answers(void **state)
{
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], expected[4];
  } kat[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
    uint32_t out[4];
    ts_philox4x32(kat[i].counter, kat[i].key, out);
    assert_memory_equal(out, kat[i].expected, sizeof out);
  }
}

/* Every argument, in its low and its high half, changes all three numbers. */
static void test_arguments_count(void **state)
{
  (void)state;
  static const struct {
    uint64_t seed;
    ts_purpose purpose;
    ts_gidx gid;
    int64_t step;
  } a[] = {
      {7, TS_PURPOSE_LANGEVIN, 5, 9},
      {8, TS_PURPOSE_LANGEVIN, 5, 9},
      {7 + (1ull << 32), TS_PURPOSE_LANGEVIN, 5, 9},
      {7, TS_PURPOSE_VELOCITIES, 5, 9},
      {7, TS_PURPOSE_LANGEVIN, 6, 9},
      {7, TS_PURPOSE_LANGEVIN, 5 + (1ll << 32), 9},
      {7, TS_PURPOSE_LANGEVIN, 5 + (1ll << 47), 9},
      {7, TS_PURPOSE_LANGEVIN, 5, 10},
      {7, TS_PURPOSE_LANGEVIN, 9, 5},
      {7, TS_PURPOSE_LANGEVIN, 5, 9 + (1ll << 32)},
      {7, TS_PURPOSE_LANGEVIN, 5, -9},
  };
  enum { COUNT = sizeof a / sizeof *a };
  double value[COUNT][3], again[3];
  for (int i = 0; i < COUNT; i++)
    ts_random_normal3(a[i].seed, a[i].purpose, a[i].gid, a[i].step, value[i]);
  for (int i = 0; i < 3 * COUNT; i++)
    for (int j = 0; j < i; j++)
      assert_true(value[i / 3][i % 3] != value[j / 3][j % 3]);
  ts_random_normal3(a[3].seed, a[3].purpose, a[3].gid, a[3].step, again);
  assert_memory_equal(again, value[3], sizeof again);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_arguments_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
