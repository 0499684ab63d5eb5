/* SPDX-License-Identifier: MIT
 *
 * The checksum against published values, and put together from parts in any order. */
#include "runtime/crc64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t sum_of(const void *text, size_t size)
{
  static tsi_crc64 crc;
  tsi_crc64_begin(&crc);
  tsi_crc64_add(&crc, text, size);
  return tsi_crc64_value(&crc);
}

static uint64_t part_of(const char *text, size_t from, size_t to, size_t size)
{
  static tsi_crc64 crc;
  tsi_crc64_begin_part(&crc);
  tsi_crc64_add(&crc, text + from, to - from);
  return tsi_crc64_part(&crc, size - to);
}

static void published(void **state)
{
  (void)state;
  assert_true(sum_of("123456789", 9) == UINT64_C(0x995dc9bbdf1939fa));
  assert_true(sum_of("", 0) == 0);
}

static void parts(void **state)
{
  (void)state;
  enum { SIZE = 10000 };
  static char text[SIZE];
  srand(5);
  for (int i = 0; i < SIZE; ++i)
    text[i] = (char)rand();
  for (int round = 0; round < 200; ++round) {
    const size_t size = (size_t)(rand() % (SIZE + 1));
    size_t at = 0;
    uint64_t all = 0;
    while (at < size) {
      size_t next = at + (size_t)(rand() % (round + 2));
      if (next > size) next = size;
      all ^= part_of(text, at, next, size);
      at = next;
    }
    assert_true(tsi_crc64_join(all, size) == sum_of(text, size));
  }
  /* zeros contribute nothing, a flipped bit changes the sum */
  static char zeros[SIZE];
  assert_true(part_of(zeros, 0, SIZE, SIZE) == 0);
  assert_true(tsi_crc64_join(0, SIZE) == sum_of(zeros, SIZE));
  zeros[77] = 1;
  assert_true(tsi_crc64_join(part_of(zeros, 50, 100, SIZE), SIZE) == sum_of(zeros, SIZE));
  assert_true(part_of(zeros, 50, 100, SIZE) != 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
