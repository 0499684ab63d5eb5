/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_files_kill.py on several ranks until it is killed: the files of a make-believe
 * run, a frame of each kind and a checkpoint on every step, with atoms that change their rank.
 * Arguments: the folder and the last step.  Each rank leaves its process id there, rank 0 each step
 * that is safe.  Goes on from the newest checkpoint, which must be of such a step. */
#include "md/checkpoint.h"
#include "md/trajectory.h"
#include "tests/ranks_must.h"
#include "tests/ranks_sample.h"

#include <stdlib.h>
#include <unistd.h>

enum { N = 700 };

static ts_ranks ranks;
static const char *folder;

static const char *in_folder(const char *name, char path[256])
{
  snprintf(path, 256, "%s/%s", folder, name);
  return path;
}

static void note(const char *name, const char *mode, long value)
{
  char path[256];
  FILE *file = fopen(in_folder(name, path), mode);
  MUST(file && fprintf(file, "%ld\n", value) > 0 && !fclose(file));
}

/* The newest step that was said to be safe; -1: none. */
static int64_t noted_step(void)
{
  char path[256];
  long step = -1;
  FILE *file = fopen(in_folder("steps", path), "r");
  while (file && fscanf(file, "%ld", &step) == 1)
    ;
  if (file) fclose(file);
  return step;
}

static ts_system *state_at(int64_t step)
{
  ts_system *whole = sample_system(N, 1), *part = NULL;
  for (ts_lidx i = 0; i < N; ++i)
    for (int k = 0; k < 3; ++k)
      whole->x[i][k] += 0.11 * (double)step;
  part = sample_part_at(whole, &ranks, step);
  ts_system_destroy(&whole);
  return part;
}

static ts_trajectory *open_trajectory(const char *name, int64_t resume)
{
  char path[256];
  const ts_trajectory_params params = {
      .path = in_folder(name, path), .velocities = true, .forces = true, .resume = resume};
  ts_trajectory *t = NULL;
  ts_system *s = state_at(resume < 0 ? 0 : resume);
  MUST(!ts_trajectory_open(&ranks, &params, s, &t));
  ts_system_destroy(&s);
  MUST(ts_trajectory_last_step(t) == resume);
  return t;
}

static void save(const ts_system *s, int64_t step)
{
  char path[256];
  ts_checkpoint *cp = NULL;
  MUST(!ts_checkpoint_create(&ranks, step, 0.5 * (double)step, &cp));
  MUST(!ts_checkpoint_put_system(cp, s));
  MUST(!ts_checkpoint_write(cp, in_folder("checkpoint.h5", path), 2));
  ts_checkpoint_destroy(&cp);
}

/* The step of the newest checkpoint, which holds that step's state; -1: there is none. */
static int64_t load(void)
{
  char path[256];
  ts_checkpoint *cp = NULL;
  if (ts_checkpoint_read(&ranks, in_folder("checkpoint.h5", path), &cp)) return -1;
  const int64_t step = ts_checkpoint_step(cp);
  ts_system *s = state_at(step);
  double(*x)[3] = calloc((size_t)s->n + 1, sizeof *x);
  MUST(x && !ts_checkpoint_get_atoms_double(cp, s, "x", 3, x[0]));
  for (ts_lidx i = 0; i < s->n; ++i)
    MUST(!memcmp(x[i], s->x[i], sizeof *x));
  free(x);
  ts_system_destroy(&s);
  ts_checkpoint_destroy(&cp);
  return step;
}

static void run(int64_t last)
{
  const int64_t noted = noted_step(), begin = load();
  MUST(begin >= noted && begin <= noted + 1);
  ts_trajectory *t[2] = {open_trajectory("traj.h5", begin), open_trajectory("traj.xyz", begin)};
  for (int64_t step = begin + 1; step <= last; ++step) {
    ts_system *s = state_at(step);
    const ts_frame frame = {step, 0.5 * (double)step, s, (const double(*)[3])s->v, NULL};
    for (int k = 0; k < 2; ++k)
      MUST(!ts_trajectory_write(t[k], &frame) && !ts_trajectory_sync(t[k]));
    save(s, step);
    ts_system_destroy(&s);
    if (ranks.first == 0) note("steps", "a", (long)step);
  }
  MUST(!ts_trajectory_close(&t[0]) && !ts_trajectory_close(&t[1]));
}

int main(int argc, char **argv)
{
  char name[32];
  if (argc != 3) {
    puts("skipped: run by tests/test_files_kill.py");
    return 77;
  }
  folder = argv[1];
  ts_log_set_level(TS_LOG_ERROR);
  if (ts_world_create(&world) || ts_ranks_of(ts_world_comm(world), &ranks)) return 1;
  snprintf(name, sizeof name, "pid.%d", ranks.first);
  note(name, "w", (long)getpid());
  MPI_Barrier(ranks.comm); /* nobody notes a step before all have looked */
  run(atol(argv[2]));
  ts_world_destroy(&world);
  return 0;
}
