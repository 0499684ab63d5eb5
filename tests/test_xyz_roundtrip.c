/* SPDX-License-Identifier: MIT
 *
 * XYZ trajectories read back as they were written, go on after a resume as if nothing had happened
 * wherever a kill has cut them, and do not know what a comma locale is.
 *
 * With a folder as argument: writes trajectories there for tests/test_trajectory.py, and with
 * `--velocities FILE` prints the velocities [Å/fs] that a structure file holds. */
#include "md/trajectory.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/number.h"
#include "tests/checkpoint_sample.h"
#include "tests/comma_locale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { ATOMS = 130, FRAMES = 12 };

/* The sample as it stands at a step, moved along and in another order on every step. */
static ts_system *state_at(ts_lidx n, int kind, int64_t step)
{
  ts_system *s = sample_system(n, kind);
  ts_lidx *order = malloc((size_t)n * sizeof *order);
  for (ts_lidx i = 0; i < n; ++i) {
    order[i] = (ts_lidx)((i + step) % n);
    for (int k = 0; k < 3; ++k)
      s->x[i][k] += 0.75 * (double)step;
  }
  if (!order || ts_system_permute(s, order)) abort();
  free(order);
  return s;
}

static int write_step(ts_trajectory *t, ts_lidx n, int kind, int64_t step)
{
  ts_system *s = state_at(n, kind, step);
  ts_frame_values values = {-1.1 * (double)(step + 1), 2.5, 300.125, NAN, {NAN}};
  const double stress[6] = {0.1, 0.2, 0.3, 0.04, 0.05, 0.06};
  if (kind) values.pressure = 1.5;
  if (kind) memcpy(values.stress, stress, sizeof stress);
  const ts_frame frame = {step, 0.5 * (double)step, s, (const double(*)[3])s->x, &values};
  const int status = ts_trajectory_write(t, &frame);
  ts_system_destroy(&s);
  return status;
}

static ts_trajectory *open_at(const char *path, ts_lidx n, int kind, int64_t resume)
{
  const ts_trajectory_params params = {
      .path = path, .velocities = true, .forces = true, .resume = resume};
  ts_trajectory *t = NULL;
  ts_system *s = state_at(n, kind, 5);
  if (ts_trajectory_open(&alone, &params, s, &t)) {
    printf("%s\n", ts_error_message());
    abort();
  }
  ts_system_destroy(&s);
  return t;
}

/* Frames of the steps first, first + 10, ... below end. */
static void write_steps(const char *path, ts_lidx n, int kind, int64_t resume, int64_t first,
                        int64_t end)
{
  ts_trajectory *t = open_at(path, n, kind, resume);
  for (int64_t step = first; step < end; step += 10)
    if (write_step(t, n, kind, step)) {
      printf("%s\n", ts_error_message());
      abort();
    }
  if (ts_trajectory_close(&t)) abort();
}

static void unwrapped(const ts_system *s, ts_lidx i, double u[3])
{
  ts_cell_shift(&s->cell, s->image[i], u);
  for (int k = 0; k < 3; ++k)
    u[k] += s->x[i][k];
}

static void check_roundtrip(ts_lidx n, int kind)
{
  char folder[64], path[96];
  sample_folder(folder, path);
  strcpy(strrchr(path, '.'), ".xyz");
  write_steps(path, n, kind, -1, 0, 10 * FRAMES);
  ts_system *s = NULL, *expected = state_at(n, kind, 0);
  if (ts_xyz_read(&alone, path, &s)) fail_msg("%s", ts_error_message());
  assert_int_equal(s->n, n);
  assert_memory_equal(s->z, expected->z, (size_t)n);
  assert_memory_equal(s->v, expected->v, (size_t)n * sizeof *s->v);
  assert_memory_equal(s->cell.h, expected->cell.h, sizeof s->cell.h);
  assert_memory_equal(s->cell.periodic, expected->cell.periodic, sizeof s->cell.periodic);
  assert_int_equal(s->has_charge, expected->has_charge);
  assert_int_equal(s->charge, expected->charge);
  assert_int_equal(s->multiplicity, expected->multiplicity);
  for (ts_lidx i = 0; i < n; ++i) {
    double here[3], there[3];
    unwrapped(s, i, here);
    unwrapped(expected, i, there);
    for (int k = 0; k < 3; ++k)
      assert_true(fabs(here[k] - there[k]) < 1e-13 * (10.0 + fabs(there[k])) * 50.0);
  }
  ts_system_destroy(&s);
  ts_system_destroy(&expected);
  sample_remove(folder);
}

static void test_roundtrip(void **state)
{
  (void)state;
  for (int kind = 0; kind < SAMPLE_KINDS; ++kind) {
    check_roundtrip(1, kind);
    check_roundtrip(ATOMS, kind);
  }
}

static void assert_same_file(const char *path, const char *data, long size)
{
  char *found;
  assert_int_equal(sample_load(path, &found), size);
  assert_memory_equal(found, data, (size_t)size);
  free(found);
}

/* Cut anywhere, or written beyond the checkpoint: the same file in the end. */
static void test_resume(void **state)
{
  (void)state;
  enum { N = 3, LAST = 10 * (FRAMES - 1) };
  char folder[64], path[96], *whole;
  sample_folder(folder, path);
  strcpy(strrchr(path, '.'), ".xyz");
  write_steps(path, N, 1, -1, 0, 10 * FRAMES);
  const long size = sample_load(path, &whole), frame = size / FRAMES;
  for (long cut = 0; cut < 2 * frame; cut += 17) {
    sample_store(path, whole, size - cut);
    write_steps(path, N, 1, LAST - 30, LAST - 20, 10 * FRAMES);
    assert_same_file(path, whole, size);
  }
  write_steps(path, N, 1, LAST - 25, LAST - 20, 10 * FRAMES); /* between two frames */
  assert_same_file(path, whole, size);
  unlink(path); /* lost: begun afresh */
  write_steps(path, N, 1, 70, 80, 90);
  assert_true(access(path, F_OK) == 0);
  /* not ours: refused, and left alone */
  static const char *const others[] = {"3\n\nH 0 0 0\nH 0 0 1\nH 0 0 2\n", "2\nstep=0\nH\nH\n",
                                       "some text\n", "3\nstep=5\n\n\n\n3\nstep=5\n\n\n\n"};
  for (size_t k = 0; k < sizeof others / sizeof *others; ++k) {
    const ts_trajectory_params params = {.path = path, .resume = 70};
    ts_trajectory *t = NULL;
    ts_system *s = sample_system(N, 1);
    sample_store(path, others[k], (long)strlen(others[k]));
    assert_int_equal(ts_trajectory_open(&alone, &params, s, &t), TS_ERR_INPUT);
    assert_null(t);
    assert_same_file(path, others[k], (long)strlen(others[k]));
    ts_system_destroy(&s);
  }
  free(whole);
  sample_remove(folder);
}

static void test_numbers(void **state)
{
  (void)state;
  static const double odd[] = {0.0,     -0.0, 0.1,    1.0 / 3.0, 5e-324, 1.7976931348623157e308,
                               -1e-300, 1e22, 123456, 2.5e-7,    1e5,    9007199254740993.0};
  char text[TSI_NUMBER_TEXT];
  uint64_t bits = 88172645463325252u;
  for (int k = 0; k < 20000; ++k) {
    double value, back;
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    memcpy(&value, &bits, sizeof value);
    if (k < (int)(sizeof odd / sizeof *odd)) value = odd[k];
    if (!isfinite(value)) continue;
    const int length = tsi_number_write(value, text);
    assert_int_equal(length, strlen(text));
    assert_true(length <= 24);
    assert_true(tsi_number_double(text, (size_t)length, &back));
    assert_memory_equal(&back, &value, sizeof value);
  }
  assert_int_equal(tsi_number_write(0.1, text), 3);
  assert_string_equal(text, "0.1");
}

static void test_locale(void **state)
{
  (void)state;
  char folder[64], path[96], *plain;
  sample_folder(folder, path);
  strcpy(strrchr(path, '.'), ".xyz");
  write_steps(path, ATOMS, 1, -1, 0, 30);
  const long size = sample_load(path, &plain);
  if (use_comma_locale()) {
    write_steps(path, ATOMS, 1, -1, 0, 30);
    assert_same_file(path, plain, size);
    setlocale(LC_ALL, "C");
  }
  free(plain);
  sample_remove(folder);
}

static int write_samples(const char *folder)
{
  static const char *const names[SAMPLE_KINDS] = {"isolated", "triclinic", "slab"};
  char path[512];
  for (int kind = 0; kind < SAMPLE_KINDS; ++kind) {
    snprintf(path, sizeof path, "%s/%s.xyz", folder, names[kind]);
    write_steps(path, ATOMS, kind, -1, 0, 10 * FRAMES);
    snprintf(path, sizeof path, "%s/%s.h5", folder, names[kind]);
    write_steps(path, ATOMS, kind, -1, 0, 10 * FRAMES);
    write_steps(path, ATOMS, kind, 55, 60, 10 * FRAMES); /* a run that was resumed */
  }
  return 0;
}

static int print_velocities(const char *path)
{
  ts_system *s = NULL;
  if (ts_xyz_read(&alone, path, &s)) {
    printf("%s\n", ts_error_message());
    return 1;
  }
  for (ts_lidx i = 0; i < s->n; ++i)
    printf("%d %.17g %.17g %.17g %.17g\n", s->z[i], s->mass[i] / TS_ATOMIC_MASS, s->v[i][0],
           s->v[i][1], s->v[i][2]);
  ts_system_destroy(&s);
  return 0;
}

int main(int argc, char **argv)
{
  ts_log_set_level(TS_LOG_ERROR);
  if (argc == 3 && !strcmp(argv[1], "--velocities")) return print_velocities(argv[2]);
  if (argc == 2) return write_samples(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_roundtrip),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
