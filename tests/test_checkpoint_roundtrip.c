/* SPDX-License-Identifier: MIT
 *
 * What is put into a checkpoint comes out bit for bit, whatever the order of the atoms, and equal
 * states give equal bytes; a checkpoint of another run is refused. */
#include "md/checkpoint.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tests/checkpoint_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void assert_same(const ts_system *a, const ts_system *b)
{
  const size_t n = (size_t)a->n;
  assert_int_equal(a->n, b->n);
  assert_memory_equal(a->x, b->x, n * sizeof *a->x);
  assert_memory_equal(a->v, b->v, n * sizeof *a->v);
  assert_memory_equal(a->image, b->image, n * sizeof *a->image);
  assert_memory_equal(a->mass, b->mass, n * sizeof *a->mass);
  assert_memory_equal(a->z, b->z, n);
  assert_memory_equal(a->gid, b->gid, n * sizeof *a->gid);
  assert_memory_equal(a->cell.h, b->cell.h, sizeof a->cell.h);
  assert_memory_equal(a->cell.inv, b->cell.inv, sizeof a->cell.inv);
  assert_memory_equal(a->cell.periodic, b->cell.periodic, sizeof a->cell.periodic);
  assert_int_equal(a->has_velocities, b->has_velocities);
  assert_int_equal(a->has_charge, b->has_charge);
  assert_int_equal(a->charge, b->charge);
  assert_int_equal(a->multiplicity, b->multiplicity);
  assert_string_equal(a->title, b->title);
}

static void check_roundtrip(ts_lidx n, int kind)
{
  char folder[64], path[96];
  sample_folder(folder, path);
  ts_system *s = sample_system(n, kind), *plain = sample_system(n, kind), *back = NULL;
  ts_lidx *order = malloc((size_t)n * sizeof *order);
  for (ts_lidx i = 0; i < n; ++i)
    order[i] = n - 1 - i;
  assert_int_equal(ts_system_permute(s, order), 0);
  ts_checkpoint *cp = sample_checkpoint(s, 1000), *read = NULL;
  if (ts_checkpoint_write(cp, path, 1)) fail_msg("%s", ts_error_message());
  if (ts_checkpoint_read(&alone, path, &read)) fail_msg("%s", ts_error_message());
  assert_int_equal(ts_checkpoint_step(read), 1000);
  assert_true(ts_checkpoint_time(read) == 0.1 * 1000);
  assert_string_equal(ts_checkpoint_path(read), path);
  assert_int_equal(ts_checkpoint_get_system(read, &back), 0);
  assert_same(back, plain);
  /* arrays of atoms in any order */
  double(*f)[3] = calloc((size_t)n, sizeof *f);
  double *flag = calloc((size_t)n, sizeof *flag);
  assert_int_equal(ts_checkpoint_get_atoms_double(read, s, "f", 3, &f[0][0]), 0);
  assert_memory_equal(f, s->x, (size_t)n * sizeof *f);
  assert_int_equal(ts_checkpoint_get_atoms_double(read, back, "flag", 1, flag), 0);
  for (ts_lidx i = 0; i < n; ++i)
    assert_true(flag[i] == n - 1 - i);
  free(f);
  free(flag);
  free(order);
  ts_checkpoint_destroy(&cp);
  ts_checkpoint_destroy(&read);
  ts_system_destroy(&s);
  ts_system_destroy(&plain);
  ts_system_destroy(&back);
  sample_remove(folder);
}

static void test_roundtrip(void **state)
{
  (void)state;
  for (int kind = 0; kind < SAMPLE_KINDS; ++kind) {
    check_roundtrip(1, kind);
    check_roundtrip(100, kind);
    check_roundtrip(5000, kind);
  }
}

static void test_values(void **state)
{
  (void)state;
  char folder[64], path[96];
  sample_folder(folder, path);
  ts_system *s = sample_system(7, 0);
  ts_checkpoint *cp = sample_checkpoint(s, 5), *read = NULL;
  const double odd[4] = {-0.0, 5e-324, 1.7976931348623157e308, 0.1};
  const int64_t big[2] = {INT64_MIN, INT64_MAX};
  double back[4];
  int64_t whole[2];
  assert_int_equal(ts_checkpoint_put_double(cp, "odd", 4, odd), 0);
  assert_int_equal(ts_checkpoint_put_int64(cp, "big", 2, big), 0);
  assert_int_equal(ts_checkpoint_write(cp, path, 1), 0);
  assert_int_equal(ts_checkpoint_read(&alone, path, &read), 0);
  assert_int_equal(ts_checkpoint_get_double(read, "odd", 4, back), 0);
  assert_memory_equal(back, odd, sizeof odd);
  assert_int_equal(ts_checkpoint_get_int64(read, "big", 2, whole), 0);
  assert_memory_equal(whole, big, sizeof big);
  assert_true(ts_checkpoint_has(read, "odd") && !ts_checkpoint_has(read, "even"));
  /* another run's: named, with both values */
  assert_int_equal(ts_checkpoint_expect_int64(read, "seed", 42, ""), 0);
  assert_int_equal(ts_checkpoint_expect_int64(read, "seed", 43, "start afresh"), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "its seed is 42, this job's is 43; start afresh"));
  assert_int_equal(ts_checkpoint_expect_text(read, "model", "abc", ""), 0);
  assert_int_equal(ts_checkpoint_expect_text(read, "model", "abd", ""), TS_ERR_INPUT);
  /* absent, or of another type or size */
  assert_int_equal(ts_checkpoint_get_double(read, "even", 4, back), TS_ERR_INPUT);
  assert_int_equal(ts_checkpoint_get_double(read, "odd", 3, back), TS_ERR_INPUT);
  assert_int_equal(ts_checkpoint_get_int64(read, "odd", 4, whole), TS_ERR_INPUT);
  assert_int_equal(ts_checkpoint_expect_text(read, "seed", "42", ""), TS_ERR_INPUT);
  ts_checkpoint_destroy(&cp);
  ts_checkpoint_destroy(&read);
  ts_system_destroy(&s);
  sample_remove(folder);
}

static void test_refused(void **state)
{
  (void)state;
  ts_system *s = sample_system(3, 0);
  ts_checkpoint *cp = sample_checkpoint(s, 5);
  const double nan = NAN, one = 1.0;
  assert_int_equal(ts_checkpoint_put_double(cp, "thermostat", 1, &nan), TS_ERR_SIMULATION);
  assert_false(ts_checkpoint_has(cp, "thermostat"));
  assert_int_equal(ts_checkpoint_put_double(cp, "thermostat", 1, &one), 0);
  assert_int_equal(ts_checkpoint_put_double(cp, "thermostat", 1, &one), TS_ERR_ARG);
  assert_int_equal(ts_checkpoint_put_double(cp, "Thermo stat", 1, &one), TS_ERR_ARG);
  assert_int_equal(ts_checkpoint_put_double(cp, "", 1, &one), TS_ERR_ARG);
  assert_int_equal(ts_checkpoint_put_double(cp, "none", 0, &one), TS_ERR_ARG);
  assert_int_equal(ts_checkpoint_write(cp, "/nonexistent/checkpoint.h5", 1), TS_ERR_HDF5);
  assert_int_equal(ts_checkpoint_write(cp, "checkpoint.h5", 0), TS_ERR_ARG);
  ts_checkpoint_destroy(&cp);
  s->x[1][2] = INFINITY; /* a broken state is not stored */
  assert_int_equal(ts_checkpoint_create(&alone, 1, 0.0, &cp), 0);
  assert_int_equal(ts_checkpoint_put_system(cp, s), TS_ERR_SIMULATION);
  assert_non_null(strstr(ts_error_message(), "atom 2"));
  ts_checkpoint_destroy(&cp);
  ts_system_destroy(&s);
}

/* The same state twice, from memory that held something else before. */
static void test_same_bytes(void **state)
{
  (void)state;
  char folder[64], path[96], *first = NULL, *second = NULL;
  long sizes[2];
  sample_folder(folder, path);
  for (int turn = 0; turn < 2; ++turn) {
    void *dirt = malloc(1 << 20);
    memset(dirt, 0x55 << turn, 1 << 20);
    ts_system *s = sample_system(100, 1);
    free(dirt);
    ts_checkpoint *cp = sample_checkpoint(s, 77);
    assert_int_equal(ts_checkpoint_write(cp, path, 1), 0);
    sizes[turn] = sample_load(path, turn ? &second : &first);
    ts_checkpoint_destroy(&cp);
    ts_system_destroy(&s);
  }
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(first, second, (size_t)sizes[0]);
  free(first);
  free(second);
  sample_remove(folder);
}

int main(void)
{
  ts_log_set_level(TS_LOG_ERROR);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roundtrip),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_same_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
