/* SPDX-License-Identifier: MIT
 *
 * Aligned, zeroed arrays; sizes that overflow; pieces of an arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/error.h"
#include "runtime/memory.h"

static void arrays_are_aligned_and_zeroed(void **state)
{
  (void)state;
  for (size_t n = 1; n < 300; n += 7) {
    double *p = NULL;
    assert_int_equal(TSI_NEW(p, n), 0);
    assert_int_equal((uintptr_t)p % TS_ALIGN, 0);
    for (size_t i = 0; i < n; i++)
      assert_true(p[i] == 0);
    memset(p, 0xff, n * sizeof *p); /* what the next one may get back */
    free(p);
  }
}

static void nothing_is_null(void **state)
{
  (void)state;
  void *p = &p;
  assert_int_equal(tsi_alloc(0, 8, &p), 0);
  assert_null(p);
}

static void overflow_is_refused(void **state)
{
  (void)state;
  static const size_t sizes[][2] = {{SIZE_MAX, 2},
                                    {SIZE_MAX / 8 + 2, 8},
                                    {1, SIZE_MAX},
                                    {1, SIZE_MAX - 3},
                                    {SIZE_MAX / 2 + 2, 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *p = &p;
    assert_int_equal(tsi_alloc(sizes[i][0], sizes[i][1], &p), TS_ERR_MEMORY);
    assert_null(p);
    assert_non_null(strstr(ts_error_message(), "bytes"));
  }
}

static void arena_gives_apart_pieces(void **state)
{
  (void)state;
  ts_arena *arena = NULL;
  assert_int_equal(ts_arena_create(1000, &arena), 0);
  assert_int_equal(ts_arena_size(arena), 1024);
  char *a = ts_arena_take(arena, 1), *b = ts_arena_take(arena, 64), *c = ts_arena_take(arena, 65);
  assert_int_equal((uintptr_t)a % TS_ALIGN, 0);
  assert_ptr_equal(b, a + 64);
  assert_ptr_equal(c, b + 64);
  assert_int_equal(ts_arena_used(arena), 256);
  assert_null(ts_arena_take(arena, 1024 - 256 + 1));
  assert_null(ts_arena_take(arena, SIZE_MAX));
  assert_int_equal(ts_arena_used(arena), 256);
  assert_non_null(ts_arena_take(arena, 1024 - 256));
  assert_null(ts_arena_take(arena, 1));
  ts_arena_reset(arena);
  assert_ptr_equal(ts_arena_take(arena, 1024), a);
  ts_arena_destroy(&arena);
  assert_null(arena);
  ts_arena_destroy(&arena);
}

static void empty_arena(void **state)
{
  (void)state;
  ts_arena *arena = NULL;
  assert_int_equal(ts_arena_create(0, &arena), 0);
  assert_null(ts_arena_take(arena, 1));
  ts_arena_destroy(&arena);
  assert_int_equal(ts_arena_create(SIZE_MAX - 5, &arena), TS_ERR_MEMORY);
  assert_null(arena);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_are_aligned_and_zeroed),
      cmocka_unit_test(nothing_is_null),
      cmocka_unit_test(overflow_is_refused),
      cmocka_unit_test(arena_gives_apart_pieces),
      cmocka_unit_test(empty_arena),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
