/* SPDX-License-Identifier: MIT
 *
 * Trajectories that many ranks write, with atoms that change their rank from frame to frame, have
 * the bytes of one rank's; a resume on another number of ranks goes on as if nothing had happened,
 * also behind a hole that a kill has left; and a failure of one rank is a failure of all.  Run by
 * mpirun (test_files_ranks.sh). */
#include "md/h5_undo.h"
#include "md/trajectory.h"
#include "tests/ranks_sample.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <cmocka.h>

static ts_world *world;
static ts_ranks ranks;
static char folder[64], path[96], one_path[128];
static const char *const suffixes[] = {"h5", "xyz"};

static void use_suffix(int kind)
{
  snprintf(path, sizeof path, "%s/many.%s", folder, suffixes[kind]);
  snprintf(one_path, sizeof one_path, "%s/one.%s", folder, suffixes[kind]);
}

/* The make-believe run at a step, whole or this rank's part of it. */
static ts_system *state_at(const ts_ranks *of, ts_lidx n, int kind, int64_t step)
{
  ts_system *whole = sample_system(n, kind);
  for (ts_lidx i = 0; i < n; ++i)
    for (int k = 0; k < 3; ++k)
      whole->x[i][k] += 0.75 * (double)step;
  if (of->size == 1) return whole;
  ts_system *part = sample_part_at(whole, of, step);
  ts_system_destroy(&whole);
  return part;
}

static int write_step(ts_trajectory *t, const ts_ranks *of, ts_lidx n, int kind, int64_t step)
{
  ts_system *s = state_at(of, n, kind, step);
  const ts_frame_values values = {-1.1 * (double)step, 2.5, 300, 1, {1, 2, 3, 4, 5, 6}};
  const ts_frame frame = {step, 0.5 * (double)step, s, (const double(*)[3])s->x, &values};
  const int status = ts_trajectory_write(t, &frame);
  ts_system_destroy(&s);
  return status;
}

static ts_trajectory *open_at(const ts_ranks *of, const char *where, ts_lidx n, int kind,
                              int64_t resume)
{
  const ts_trajectory_params params = {
      .path = where, .velocities = kind != 0, .forces = kind != 0, .resume = resume};
  ts_trajectory *t = NULL;
  ts_system *s = state_at(of, n, kind, 1);
  if (ts_trajectory_open(of, &params, s, &t)) fail_msg("%s", ts_error_message());
  ts_system_destroy(&s);
  return t;
}

/* Frames of the steps first .. last. */
static void write_steps(const ts_ranks *of, const char *where, ts_lidx n, int kind, int64_t resume,
                        int64_t first, int64_t last)
{
  ts_trajectory *t = open_at(of, where, n, kind, resume);
  assert_int_equal(ts_trajectory_last_step(t), resume < 0 ? -1 : first - 1);
  for (int64_t step = first; step <= last; ++step)
    if (write_step(t, of, n, kind, step)) fail_msg("%s", ts_error_message());
  assert_int_equal(ts_trajectory_last_step(t), last);
  if (ts_trajectory_sync(t) || ts_trajectory_close(&t)) fail_msg("%s", ts_error_message());
}

static void assert_same_files(void)
{
  MPI_Barrier(ranks.comm);
  if (ranks.first == 0) {
    char *one, *many;
    const long size = sample_load(one_path, &one);
    assert_int_equal(sample_load(path, &many), size);
    assert_memory_equal(one, many, (size_t)size);
    free(one);
    free(many);
  }
  MPI_Barrier(ranks.comm);
}

static void equal_bytes(void **state)
{
  (void)state;
  static const ts_lidx sizes[] = {1, 3, 100, 20001};
  static const int64_t frames[] = {5, 5, 260, 3}; /* of 100: more than a chunk */
  for (int suffix = 0; suffix < 2; ++suffix)
    for (int kind = 0; kind < SAMPLE_KINDS; ++kind)
      for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k) {
        if (kind != 1 && k > 1) continue; /* files that are forced to the disk take their time */
        use_suffix(suffix);
        if (ranks.first == 0) write_steps(&alone, one_path, sizes[k], kind, -1, 0, frames[k]);
        write_steps(&ranks, path, sizes[k], kind, -1, 0, frames[k]);
        assert_same_files();
      }
}

/* One writes, many go on, one goes on, and every resume drops some frames. */
static void other_ranks(void **state)
{
  (void)state;
  enum { N = 40 };
  for (int suffix = 0; suffix < 2; ++suffix)
    for (int64_t first = 253; first < 262; first += 4) {
      use_suffix(suffix);
      if (ranks.first == 0) {
        write_steps(&alone, one_path, N, 1, -1, 0, first);
        write_steps(&alone, one_path, N, 1, first - 3, first - 2, first + 10);
        write_steps(&alone, one_path, N, 1, first + 5, first + 6, first + 20);
        write_steps(&alone, path, N, 1, -1, 0, first);
      }
      MPI_Barrier(ranks.comm);
      write_steps(&ranks, path, N, 1, first - 3, first - 2, first + 10);
      if (ranks.first == 0) write_steps(&alone, path, N, 1, first + 5, first + 6, first + 20);
      assert_same_files();
    }
}

/* A kill may leave parts of the last frame of an XYZ file unwritten: NUL bytes. */
static void holes(void **state)
{
  (void)state;
  enum { N = 30, LAST = 6 };
  use_suffix(1);
  if (ranks.first == 0) write_steps(&alone, one_path, N, 1, -1, 0, LAST);
  for (int part = 0; part < 5; ++part) {
    if (ranks.first == 0) {
      char *data;
      const long size = sample_load(one_path, &data), frame = size / (LAST + 1);
      memset(data + size - frame + frame * part / 6, 0, (size_t)frame / 4);
      if (part % 2) memset(data + size - 1, 0, 1);
      sample_store(path, data, size);
      free(data);
    }
    MPI_Barrier(ranks.comm);
    write_steps(&ranks, path, N, 1, LAST - 1, LAST, LAST);
    assert_same_files();
  }
}

/* The last rank may not write beyond some size: nobody goes on. */
static void full_disk(void **state)
{
  (void)state;
  enum { N = 2000 };
  struct rlimit before, small = {0, 0};
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  small.rlim_cur = 300000;
  for (int suffix = 1; suffix >= 0; --suffix) {
    use_suffix(suffix);
    ts_trajectory *t = open_at(&ranks, path, N, 1, -1);
    int64_t step = 0;
    int status = 0;
    if (ranks.first == ranks.size - 1) setrlimit(RLIMIT_FSIZE, &small);
    while (!status && step < 50)
      status = write_step(t, &ranks, N, 1, step++);
    setrlimit(RLIMIT_FSIZE, &before);
    if (ranks.first == ranks.size - 1) setrlimit(RLIMIT_FSIZE, &before);
    assert_in_range(step, 1, 49);
    if (ranks.size > 1) assert_int_equal(status, TS_ERR_IO);
    assert_true(status == TS_ERR_IO || status == TS_ERR_HDF5);
    (void)ts_trajectory_close(&t);
    MPI_Barrier(ranks.comm);
    if (step < 2) continue;                    /* not one frame */
    t = open_at(&ranks, path, N, 1, step - 2); /* with room again */
    assert_int_equal(ts_trajectory_last_step(t), step - 2);
    assert_int_equal(write_step(t, &ranks, N, 1, step), 0);
    assert_int_equal(ts_trajectory_close(&t), 0);
  }
}

static void refused(void **state)
{
  (void)state;
  for (int suffix = 0; suffix < 2; ++suffix) {
    use_suffix(suffix);
    ts_trajectory *t = open_at(&ranks, path, 50, 1, -1);
    assert_int_equal(write_step(t, &ranks, 50, 1, 3), 0);
    assert_int_equal(write_step(t, &ranks, 50, 1, 3), TS_ERR_ARG);
    assert_int_equal(write_step(t, &ranks, 51, 1, 4), TS_ERR_ARG);
    ts_system *s = state_at(&ranks, 50, 1, 4);
    if (ranks.first == ranks.size - 1 && s->n > 1) s->gid[0] = s->gid[1];
    const ts_frame frame = {4, 2, s, (const double(*)[3])s->x, NULL};
    assert_int_equal(ts_trajectory_write(t, &frame), TS_ERR_SIMULATION);
    ts_system_destroy(&s);
    assert_int_equal(ts_trajectory_close(&t), 0);
  }
  /* other elements, which only their rank can see: refused, and left alone */
  use_suffix(0);
  ts_system *whole = sample_system(50, 1);
  whole->z[49] = 9;
  ts_system *s = sample_part(whole, &ranks);
  const ts_trajectory_params params = {
      .path = path, .velocities = true, .forces = true, .resume = 3};
  ts_trajectory *t = NULL;
  assert_int_equal(ts_trajectory_open(&ranks, &params, s, &t), TS_ERR_INPUT);
  assert_null(t);
  ts_system_destroy(&s);
  ts_system_destroy(&whole);
  t = open_at(&ranks, path, 50, 1, 3);
  assert_int_equal(ts_trajectory_last_step(t), 3);
  assert_int_equal(ts_trajectory_close(&t), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_bytes), cmocka_unit_test(other_ranks),
                                     cmocka_unit_test(holes), cmocka_unit_test(refused),
                                     cmocka_unit_test(full_disk)};
  if (ranks_sample_begin(&world, &ranks, folder, path)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return ranks_sample_end(&world, &ranks, folder, failed);
}
