/* SPDX-License-Identifier: MIT
 *
 * A checkpoint that many ranks write has the bytes of one that a single rank writes, and any number
 * of ranks reads it: what an atom had goes to whoever has the atom now.  A failure of one is a
 * failure of all.  Run by mpirun (test_files_ranks.sh). */
#include "comm/blocks.h"
#include "md/checkpoint.h"
#include "tests/ranks_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static ts_world *world;
static ts_ranks ranks;
static char folder[64], path[96];

/* Everything that a run would store; `order` counts from the last atom down. */
static int put(ts_checkpoint *cp, const ts_system *s)
{
  const int64_t seed = 42;
  int64_t *order = calloc((size_t)s->n + 1, sizeof *order);
  for (ts_lidx i = 0; i < s->n; ++i)
    order[i] = s->natoms - s->gid[i];
  int status = ts_checkpoint_put_text(cp, "model", "abc");
  if (!status) status = ts_checkpoint_put_system(cp, s);
  if (!status) status = ts_checkpoint_put_atoms_double(cp, s, "f", 3, s->x[0]);
  if (!status) status = ts_checkpoint_put_int64(cp, "seed", 1, &seed);
  if (!status) status = ts_checkpoint_put_atoms_int64(cp, s, "order", 1, order);
  free(order);
  return status;
}

static void write_file(const ts_ranks *writers, const ts_system *s, int64_t step, int keep)
{
  ts_checkpoint *cp = NULL;
  if (ts_checkpoint_create(writers, step, 0.5, &cp) || put(cp, s) ||
      ts_checkpoint_write(cp, path, keep))
    fail_msg("%s", ts_error_message());
  ts_checkpoint_destroy(&cp);
}

static void same_bytes(long n, int kind)
{
  char *one = NULL, *many = NULL;
  long sizes[2] = {0, 0};
  ts_system *whole = sample_system((ts_lidx)n, kind), *mine = sample_part(whole, &ranks);
  if (ranks.first == 0) {
    write_file(&alone, whole, 9, 1);
    sizes[0] = sample_load(path, &one);
  }
  write_file(&ranks, mine, 9, 1);
  if (ranks.first == 0) {
    sizes[1] = sample_load(path, &many);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(one, many, (size_t)sizes[0]);
  }
  free(one);
  free(many);
  ts_system_destroy(&whole);
  ts_system_destroy(&mine);
}

static void equal_bytes(void **state)
{
  (void)state;
  static const long sizes[] = {1, 2, 9, 100, 5001};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
    for (int kind = 0; kind < SAMPLE_KINDS; ++kind)
      same_bytes(sizes[k], kind);
}

/* Atom i of `s` has what it has in `whole`. */
static void assert_atoms(const ts_system *s, const ts_system *whole)
{
  for (ts_lidx i = 0; i < s->n; ++i) {
    const ts_gidx k = s->gid[i];
    assert_memory_equal(s->x[i], whole->x[k], sizeof s->x[i]);
    assert_memory_equal(s->v[i], whole->v[k], sizeof s->v[i]);
    assert_memory_equal(s->image[i], whole->image[k], sizeof s->image[i]);
    assert_true(s->mass[i] == whole->mass[k] && s->z[i] == whole->z[k]);
  }
}

static void read_back(void **state)
{
  (void)state;
  enum { N = 1003 };
  ts_system *whole = sample_system(N, 2), *mine = sample_part(whole, &ranks), *block = NULL;
  if (ranks.first == 0) write_file(&alone, whole, 12, 1); /* by one, for all */
  MPI_Barrier(ranks.comm);
  ts_checkpoint *cp = NULL;
  if (ts_checkpoint_read(&ranks, path, &cp)) fail_msg("%s", ts_error_message());
  assert_int_equal(ts_checkpoint_step(cp), 12);
  assert_true(ts_checkpoint_time(cp) == 0.5);
  assert_int_equal(ts_checkpoint_get_system(cp, &block), 0);
  assert_int_equal(block->natoms, N);
  assert_int_equal(block->charge, -3);
  assert_string_equal(block->title, whole->title);
  assert_int_equal(block->n, ts_block_first(N, ranks.size, ranks.first + 1) -
                                 ts_block_first(N, ranks.size, ranks.first));
  for (ts_lidx i = 0; i < block->n; ++i)
    assert_int_equal(block->gid[i], ts_block_first(N, ranks.size, ranks.first) + i);
  assert_atoms(block, whole);
  /* to where the atoms are now */
  double(*f)[3] = calloc((size_t)mine->n + 1, sizeof *f);
  int64_t *order = calloc((size_t)mine->n + 1, sizeof *order), seed = 0;
  assert_int_equal(ts_checkpoint_get_atoms_double(cp, mine, "f", 3, f[0]), 0);
  assert_int_equal(ts_checkpoint_get_atoms_int64(cp, mine, "order", 1, order), 0);
  assert_int_equal(ts_checkpoint_get_int64(cp, "seed", 1, &seed), 0);
  assert_int_equal(seed, 42);
  for (ts_lidx i = 0; i < mine->n; ++i) {
    assert_memory_equal(f[i], mine->x[i], sizeof *f);
    assert_int_equal(order[i], N - mine->gid[i]);
  }
  assert_int_equal(ts_checkpoint_expect_text(cp, "model", "abd", ""), TS_ERR_INPUT);
  assert_int_equal(ts_checkpoint_get_atoms_double(cp, mine, "g", 3, f[0]), TS_ERR_INPUT);
  free(f);
  free(order);
  ts_checkpoint_destroy(&cp);
  ts_system_destroy(&whole);
  ts_system_destroy(&mine);
  ts_system_destroy(&block);
}

static int64_t newest(void)
{
  ts_checkpoint *cp = NULL;
  if (ts_checkpoint_read(&ranks, path, &cp)) return -1;
  const int64_t step = ts_checkpoint_step(cp);
  ts_checkpoint_destroy(&cp);
  return step;
}

/* A bit anywhere, which lies in the slice of one rank: all pass the file over. */
static void damaged(void **state)
{
  (void)state;
  ts_system *whole = sample_system(500, 1), *mine = sample_part(whole, &ranks);
  write_file(&ranks, mine, 1, 2);
  write_file(&ranks, mine, 2, 2);
  assert_int_equal(newest(), 2);
  for (int part = 0; part < 16; ++part) {
    char *data = NULL;
    long size = 0;
    if (ranks.first == 0) {
      size = sample_load(path, &data);
      data[size * part / 16] ^= 4;
      sample_store(path, data, size);
    }
    MPI_Barrier(ranks.comm);
    assert_int_equal(newest(), 1);
    if (ranks.first == 0) {
      data[size * part / 16] ^= 4;
      sample_store(path, data, size);
      free(data);
    }
    MPI_Barrier(ranks.comm);
  }
  assert_int_equal(newest(), 2);
  ts_system_destroy(&whole);
  ts_system_destroy(&mine);
}

/* What one rank does wrong fails on all, and the file that was there stays. */
static void refused(void **state)
{
  (void)state;
  ts_system *whole = sample_system(300, 1), *mine = sample_part(whole, &ranks);
  ts_checkpoint *cp = NULL;
  write_file(&ranks, mine, 5, 1);
  assert_int_equal(ts_checkpoint_create(&ranks, 6, 0, &cp), 0);
  if (ranks.first == ranks.size - 1) mine->x[mine->n / 2][1] = NAN;
  assert_int_equal(put(cp, mine), TS_ERR_SIMULATION);
  ts_checkpoint_destroy(&cp);
  if (ranks.first == ranks.size - 1) mine->x[mine->n / 2][1] = 0;
  if (ranks.first == ranks.size / 2) mine->gid[0] = mine->gid[1];
  assert_int_equal(ts_checkpoint_create(&ranks, 6, 0, &cp), 0);
  assert_int_equal(put(cp, mine), TS_ERR_SIMULATION);
  ts_checkpoint_destroy(&cp);
  assert_int_equal(ts_checkpoint_create(&ranks, 6, 0, &cp), 0);
  assert_int_equal(ts_checkpoint_write(cp, "/nonexistent/checkpoint.h5", 1), TS_ERR_HDF5);
  ts_checkpoint_destroy(&cp);
  assert_int_equal(newest(), 5);
  ts_system_destroy(&whole);
  ts_system_destroy(&mine);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_bytes), cmocka_unit_test(read_back),
                                     cmocka_unit_test(damaged), cmocka_unit_test(refused)};
  if (ranks_sample_begin(&world, &ranks, folder, path)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return ranks_sample_end(&world, &ranks, folder, failed);
}
