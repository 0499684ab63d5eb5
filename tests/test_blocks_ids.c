/* SPDX-License-Identifier: MIT
 *
 * Rows travel to the blocks of their ids and back, whoever holds them in whatever order, on real
 * ranks (by mpirun, test_files_ranks.sh) and on virtual ones; a lost or doubled id is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/blocks.h"
#include "comm/route.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

enum { WIDE = 24 };

static ts_world *world;
static ts_ranks real;

/* What a process holds: the ids that fall to its ranks, in an odd order. */
typedef struct holding {
  ts_lidx *n;
  ts_gidx **id;
  char **held, **block;
} holding;

static int owner_of(ts_gidx id, const ts_ranks *ranks, int deal)
{
  if (deal == 0) return 0;                                    /* one has all */
  if (deal == 1) return ts_block_rank(1000, ranks->size, id); /* nothing moves */
  return (int)(tsi_key_avalanche((ts_key){(uint64_t)id, 0}, 5) % (uint64_t)ranks->size);
}

/* Byte k of an id's row. */
static char value(ts_gidx id, size_t k)
{
  return (char)(id * 31 + (ts_gidx)k * 7 + 1);
}

static holding deal_out(const ts_ranks *ranks, ts_gidx rows, int deal)
{
  const size_t hosts = (size_t)ranks->hosted, room = (size_t)rows + 1;
  holding a = {calloc(hosts, sizeof *a.n), calloc(hosts, sizeof *a.id),
               calloc(hosts, sizeof *a.held), calloc(hosts, sizeof *a.block)};
  for (size_t h = 0; h < hosts; h++) {
    a.id[h] = calloc(room, sizeof **a.id);
    a.held[h] = calloc(room, WIDE);
    a.block[h] = calloc(room, WIDE);
  }
  for (ts_gidx i = 0; i < rows; i++) {
    const ts_gidx id = rows % 7 ? (i * 7 + 3) % rows : i;
    const int h = owner_of(id, ranks, deal) - ranks->first;
    if (h >= 0 && h < ranks->hosted) a.id[h][a.n[h]++] = id;
  }
  return a;
}

static void throw_away(holding *a, int hosts)
{
  for (int h = 0; h < hosts; h++) {
    free(a->id[h]);
    free(a->held[h]);
    free(a->block[h]);
  }
  free(a->n);
  free(a->id);
  free(a->held);
  free(a->block);
}

static const void *const *reading(char **rows)
{
  return (const void *const *)(void *)rows;
}

static void move_size(const ts_ranks *ranks, ts_gidx rows, holding *a, const ts_blocks *blocks,
                      size_t size)
{
  for (int h = 0; h < ranks->hosted; h++)
    for (size_t i = 0; i < (size_t)a->n[h]; i++)
      for (size_t k = 0; k < size; k++)
        a->held[h][i * size + k] = value(a->id[h][i], k);
  assert_int_equal(
      ts_blocks_collect(blocks, size, reading(a->held), (void *const *)(void *)a->block), 0);
  for (int h = 0; h < ranks->hosted; h++) {
    const int rank = ranks->first + h;
    const ts_gidx first = ts_block_first(rows, ranks->size, rank);
    for (ts_gidx id = first; id < ts_block_first(rows, ranks->size, rank + 1); id++)
      for (size_t k = 0; k < size; k++)
        assert_int_equal(a->block[h][(size_t)(id - first) * size + k], value(id, k));
    memset(a->held[h], 0, (size_t)rows * size);
  }
  assert_int_equal(
      ts_blocks_return(blocks, size, reading(a->block), (void *const *)(void *)a->held), 0);
  for (int h = 0; h < ranks->hosted; h++)
    for (size_t i = 0; i < (size_t)a->n[h]; i++)
      for (size_t k = 0; k < size; k++)
        assert_int_equal(a->held[h][i * size + k], value(a->id[h][i], k));
}

static void move_rows(const ts_ranks *ranks, ts_gidx rows)
{
  static const size_t sizes[] = {1, 8, WIDE};
  for (int deal = 0; deal < 3; deal++) {
    holding a = deal_out(ranks, rows, deal);
    ts_blocks *blocks = NULL;
    if (ts_blocks_create(ranks, rows, a.n, (const ts_gidx *const *)a.id, &blocks))
      fail_msg("%s", ts_error_message());
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
      move_size(ranks, rows, &a, blocks, sizes[k]);
    ts_blocks_destroy(&blocks);
    throw_away(&a, ranks->hosted);
  }
}

static const ts_gidx counts[] = {1, 2, 3, 8, 100, 1000};

static void on_real_ranks(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
    move_rows(&real, counts[k]);
}

static void on_virtual_ranks(void **state)
{
  (void)state;
  static const int sizes[] = {1, 2, 3, 7, 64, 300};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const ts_ranks ranks = ts_ranks_virtual(sizes[s]);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
      move_rows(&ranks, counts[k]);
  }
}

/* Every id lies in the block of its rank, and blocks differ by one row at most. */
static void borders(void **state)
{
  (void)state;
  static const ts_gidx sizes[] = {1, 5, 1000, 4294967295};
  for (int k = 0; k < 4; k++)
    for (int ranks = 1; ranks < 5000; ranks += 1 + ranks / 3) {
      assert_int_equal(ts_block_first(sizes[k], ranks, 0), 0);
      assert_int_equal(ts_block_first(sizes[k], ranks, ranks), sizes[k]);
      for (int r = 0; r < ranks; r++) {
        const ts_gidx first = ts_block_first(sizes[k], ranks, r),
                      end = ts_block_first(sizes[k], ranks, r + 1);
        assert_in_range(end - first, sizes[k] / ranks, sizes[k] / ranks + 1);
        if (end == first) continue;
        assert_int_equal(ts_block_rank(sizes[k], ranks, first), r);
        assert_int_equal(ts_block_rank(sizes[k], ranks, end - 1), r);
      }
    }
}

/* The last rank that has atoms says one of its ids wrongly: all ranks fail alike. */
static void refuse(const ts_ranks *ranks, ts_gidx wrong, const char *says)
{
  enum { ROWS = 1000 };
  holding a = deal_out(ranks, ROWS, 2);
  const int liar = ranks->size - 1 - ranks->first;
  ts_blocks *blocks = NULL;
  if (liar < ranks->hosted) a.id[liar][0] = wrong < 0 ? a.id[liar][1] : wrong;
  assert_int_equal(ts_blocks_create(ranks, ROWS, a.n, (const ts_gidx *const *)a.id, &blocks),
                   TS_ERR_SIMULATION);
  assert_null(blocks);
  if (ranks->hosted == ranks->size) assert_non_null(strstr(ts_error_message(), says));
  throw_away(&a, ranks->hosted);
}

static void wrong_ids(void **state)
{
  (void)state;
  static const int sizes[] = {1, 2, 5};
  refuse(&real, -1, "");
  refuse(&real, 1000, "");
  for (int k = 0; k < 3; k++) {
    const ts_ranks ranks = ts_ranks_virtual(sizes[k]);
    refuse(&ranks, -1, "twice");
    refuse(&ranks, 1000, "has an atom 1001; expected 1 to 1000");
  }
  const ts_ranks two = ts_ranks_virtual(2);
  const ts_lidx n[2] = {2, 1};
  const ts_gidx first[2] = {3, 0}, second[1] = {2}, *const id[2] = {first, second};
  ts_blocks *blocks = NULL;
  assert_int_equal(ts_blocks_create(&two, 4, n, id, &blocks), TS_ERR_SIMULATION);
  assert_string_equal(ts_error_message(), "the atom 2 is lost: no rank has it");
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(borders), cmocka_unit_test(on_virtual_ranks),
                                     cmocka_unit_test(on_real_ranks), cmocka_unit_test(wrong_ids)};
  ranks_watchdog(120);
  if (ts_world_create(&world) || ts_ranks_of(ts_world_comm(world), &real)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
