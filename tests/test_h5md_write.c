/* SPDX-License-Identifier: MIT
 *
 * H5MD trajectories: what is in the file, that going on after a resume gives what an undisturbed
 * run would have given, and what a kill leaves. */
#include "md/h5.h"
#include "md/h5_undo.h"
#include "md/trajectory.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tests/checkpoint_sample.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <cmocka.h>

#define G "/particles/trajectory"

/* The state of a make-believe run at a step; the order of the atoms changes from step to step. */
static ts_system *state_at(ts_lidx n, int64_t step)
{
  ts_system *s = sample_system(n, 1);
  ts_lidx *order = malloc((size_t)n * sizeof *order);
  for (ts_lidx i = 0; i < n; ++i) {
    order[i] = (ts_lidx)((i + step) % n);
    s->x[i][0] = 0.01 * (double)(step + i);
    s->x[i][1] = s->x[i][2] = 0.5;
    for (int k = 0; k < 3; ++k)
      s->image[i][k] = (int32_t)step + k;
  }
  assert_int_equal(ts_system_permute(s, order), 0);
  free(order);
  return s;
}

static int write_step(ts_trajectory *t, ts_lidx n, int64_t step)
{
  ts_system *s = state_at(n, step);
  const ts_frame_values values = {-1.5 * (double)step, 2.0, 300.0, 1.0, {1, 2, 3, 4, 5, 6}};
  const ts_frame frame = {step, 0.5 * (double)step, s, (const double(*)[3])s->v, &values};
  const int status = ts_trajectory_write(t, &frame);
  ts_system_destroy(&s);
  return status;
}

static ts_trajectory *open_at(const char *path, ts_lidx n, int64_t resume)
{
  ts_trajectory_params params;
  ts_trajectory *t = NULL;
  ts_trajectory_params_init(&params);
  params.path = path;
  params.velocities = params.forces = true;
  params.resume = resume;
  ts_system *s = state_at(n, 3);
  if (ts_trajectory_open(&alone, &params, s, &t)) fail_msg("%s", ts_error_message());
  ts_system_destroy(&s);
  return t;
}

/* Frames first .. last of a step each must be there, bit for bit, and nothing else. */
static void assert_frames(const char *path, ts_lidx n, int64_t first, int64_t last)
{
  tsi_h5 *file = NULL;
  tsi_h5_block shape;
  if (tsi_h5_open(path, &file)) fail_msg("%s", ts_error_message());
  assert_int_equal(tsi_h5_shape(file, G "/position/value", &shape), 0);
  assert_int_equal(shape.rank, 3);
  assert_int_equal(shape.dim[0], last - first + 1);
  assert_int_equal(shape.dim[1], n);
  double(*x)[3] = calloc((size_t)n, sizeof *x), (*v)[3] = calloc((size_t)n, sizeof *v);
  int32_t(*image)[3] = calloc((size_t)n, sizeof *image);
  for (int64_t row = 0; row <= last - first; ++row) {
    const tsi_h5_block one = {1, {1, 1, 1}, {row, 0, 0}, {1, 1, 1}};
    const tsi_h5_block atoms = {3, {1, n, 3}, {row, 0, 0}, {1, n, 3}};
    int64_t step;
    double time, energy;
    assert_int_equal(tsi_h5_get(file, G "/position/step", TSI_H5_INT64, &one, &step), 0);
    assert_int_equal(tsi_h5_get(file, G "/force/time", TSI_H5_DOUBLE, &one, &time), 0);
    assert_int_equal(
        tsi_h5_get(file, "/observables/potential_energy/value", TSI_H5_DOUBLE, &one, &energy), 0);
    assert_int_equal(step, first + row);
    assert_true(time == 0.5 * (double)step && energy == -1.5 * (double)step);
    assert_int_equal(tsi_h5_get(file, G "/position/value", TSI_H5_DOUBLE, &atoms, x), 0);
    assert_int_equal(tsi_h5_get(file, G "/velocity/value", TSI_H5_DOUBLE, &atoms, v), 0);
    assert_int_equal(tsi_h5_get(file, G "/image/value", TSI_H5_INT32, &atoms, image), 0);
    for (ts_lidx i = 0; i < n; ++i)
      for (int k = 0; k < 3; ++k) {
        assert_true(v[i][k] == 0.01 * cos(3 * i + k));
        /* unwrapped, whether the cell was left or not: the edges of the sample are oblique */
        const double h[3][3] = {{11, 0.1, 0}, {3, 12, 0}, {-4, 2, 9}};
        double here = x[i][k], there = k ? 0.5 : 0.01 * (double)(step + i);
        for (int m = 0; m < 3; ++m) {
          here += image[i][m] * h[m][k];
          there += (double)(step + m) * h[m][k];
        }
        assert_true(fabs(here - there) < 1e-9 * (1.0 + fabs(there)));
      }
  }
  free(x);
  free(v);
  free(image);
  assert_int_equal(tsi_h5_close(&file), 0);
}

static void test_write(void **state)
{
  (void)state;
  enum { ATOMS = 50, FRAMES = 530 }; /* more than two chunks */
  char folder[64], path[96];
  sample_folder(folder, path);
  ts_trajectory *t = open_at(path, ATOMS, -1);
  assert_int_equal(ts_trajectory_last_step(t), -1);
  assert_frames(path, ATOMS, 0, -1); /* readable while it is written, also without a frame */
  for (int64_t step = 7; step < 7 + FRAMES; ++step) {
    if (write_step(t, ATOMS, step)) fail_msg("%s", ts_error_message());
    if (step % 200 == 0) assert_frames(path, ATOMS, 7, step);
  }
  assert_int_equal(write_step(t, ATOMS, 6 + FRAMES), TS_ERR_ARG); /* steps increase */
  assert_int_equal(write_step(t, ATOMS + 1, 7 + FRAMES), TS_ERR_ARG);
  assert_int_equal(ts_trajectory_sync(t), 0);
  assert_int_equal(ts_trajectory_close(&t), 0);
  assert_null(t);
  assert_frames(path, ATOMS, 7, 6 + FRAMES);
  sample_remove(folder);
}

static void test_fixed(void **state)
{
  (void)state;
  enum { ATOMS = 130 };
  char folder[64], path[96];
  sample_folder(folder, path);
  ts_trajectory *t = open_at(path, ATOMS, -1);
  assert_int_equal(write_step(t, ATOMS, 1), 0);
  assert_int_equal(ts_trajectory_close(&t), 0);
  tsi_h5 *file = NULL;
  assert_int_equal(tsi_h5_open(path, &file), 0);
  int32_t species[ATOMS];
  int64_t id[ATOMS];
  double edges[9], stress[9];
  const tsi_h5_block atoms = tsi_h5_whole(1, ATOMS, 1, 1), matrix = tsi_h5_whole(3, 1, 3, 3);
  assert_int_equal(tsi_h5_get(file, G "/species", TSI_H5_INT32, &atoms, species), 0);
  assert_int_equal(tsi_h5_get(file, G "/id", TSI_H5_INT64, &atoms, id), 0);
  for (int i = 0; i < ATOMS; ++i) {
    assert_int_equal(species[i], 1 + i % TS_ELEMENTS);
    assert_int_equal(id[i], i + 1);
  }
  const double h[9] = {11, 0.1, 0, 3, 12, 0, -4, 2, 9}, sigma[9] = {1, 6, 5, 6, 2, 4, 5, 4, 3};
  assert_int_equal(tsi_h5_get(file, G "/box/edges/value", TSI_H5_DOUBLE, &matrix, edges), 0);
  assert_int_equal(tsi_h5_get(file, "/observables/stress/value", TSI_H5_DOUBLE, &matrix, stress),
                   0);
  assert_memory_equal(edges, h, sizeof h);
  assert_memory_equal(stress, sigma, sizeof sigma);
  assert_int_equal(tsi_h5_close(&file), 0);
  sample_remove(folder);
}

static void test_resume(void **state)
{
  (void)state;
  static const int64_t kept[] = {0, 255, 256, 257, 1000};
  enum { ATOMS = 20 };
  char folder[64], path[96];
  sample_folder(folder, path);
  for (size_t k = 0; k < sizeof kept / sizeof *kept; ++k) {
    ts_trajectory *t = open_at(path, ATOMS, -1);
    for (int64_t step = 0; step <= 270; ++step)
      assert_int_equal(write_step(t, ATOMS, step), 0);
    assert_int_equal(ts_trajectory_close(&t), 0);
    t = open_at(path, ATOMS, kept[k]);
    const int64_t last = kept[k] < 270 ? kept[k] : 270;
    assert_int_equal(ts_trajectory_last_step(t), last);
    for (int64_t step = last + 1; step <= 275; ++step)
      if (write_step(t, ATOMS, step)) fail_msg("%s", ts_error_message());
    assert_int_equal(ts_trajectory_close(&t), 0);
    assert_frames(path, ATOMS, 0, 275);
  }
  /* nothing there: begun afresh; another run's: refused, and left alone */
  unlink(path);
  ts_trajectory *t = open_at(path, ATOMS, 100);
  assert_int_equal(write_step(t, ATOMS, 101), 0);
  assert_int_equal(ts_trajectory_close(&t), 0);
  ts_trajectory_params params = {.path = path, .velocities = true, .resume = 101};
  ts_system *s = sample_system(ATOMS, 1);
  assert_int_equal(ts_trajectory_open(&alone, &params, s, &t), TS_ERR_INPUT);
  params.forces = true;
  s->z[2] = 9;
  assert_int_equal(ts_trajectory_open(&alone, &params, s, &t), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "elements"));
  ts_system_destroy(&s);
  s = sample_system(ATOMS - 1, 1);
  assert_int_equal(ts_trajectory_open(&alone, &params, s, &t), TS_ERR_INPUT);
  assert_null(t);
  ts_system_destroy(&s);
  assert_frames(path, ATOMS, 101, 101);
  sample_remove(folder);
}

/* Write frames until killed; say through the pipe which step has returned. */
static void write_forever(const char *path, ts_lidx n, int64_t last, int out)
{
  ts_trajectory *t = open_at(path, n, last);
  for (int64_t step = ts_trajectory_last_step(t) + 1;; ++step) {
    if (write_step(t, n, step)) _exit(1);
    if (write(out, &step, sizeof step) != sizeof step) _exit(1);
  }
}

/* Atoms so many that every second frame begins a chunk, or so few that few do. */
static void kill_often(ts_lidx n, int kills)
{
  char folder[64], path[96], copy[128];
  sample_folder(folder, path);
  snprintf(copy, sizeof copy, "%s.undo", path);
  int64_t last = -1;
  int changing = 0;
  for (int k = 0; k < kills; ++k) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_forever(path, n, last < 0 ? 0 : last, ends[1]);
    close(ends[1]);
    int64_t step = 0;
    if (read(ends[0], &step, sizeof step) != sizeof step) fail_msg("the writer has failed");
    nanosleep(&(struct timespec){0, rand() % 100000000}, NULL);
    kill(child, SIGKILL);
    last = step;
    while (read(ends[0], &step, sizeof step) == sizeof step)
      last = step;
    waitpid(child, NULL, 0);
    close(ends[0]);
    /* while nothing was being changed the file is readable as it stands */
    tsi_h5 *file = NULL;
    if (access(copy, F_OK) == 0)
      ++changing;
    else if (tsi_h5_open(path, &file))
      fail_msg("after step %ld: %s", (long)last, ts_error_message());
    tsi_h5_close(&file);
    ts_trajectory *t = open_at(path, n, last); /* and whole when it is opened to go on */
    assert_int_equal(ts_trajectory_last_step(t), last);
    assert_int_equal(ts_trajectory_close(&t), 0);
  }
  assert_frames(path, n, 0, last);
  printf("%ld frames of %ld atoms, %d kills, %d of them in a change of the tables\n",
         (long)last + 1, (long)n, kills, changing);
  sample_remove(folder);
}

static void test_kill(void **state)
{
  (void)state;
  const char *more = getenv("TS_KILLS"); /* a number, for a longer test */
  const int kills = more ? atoi(more) : 10;
  srand(11);
  kill_often(20000, kills);
  kill_often(10, kills);
}

int main(void)
{
  ts_log_set_level(TS_LOG_ERROR);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_write),
      cmocka_unit_test(test_fixed),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_kill),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
