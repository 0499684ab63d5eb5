/* SPDX-License-Identifier: MIT
 *
 * What a task costs besides its work: empty tasks in the shape of a step (each tile of a ring goes
 * through stages; one in three reads seven neighbours), run by inserting them anew and by replaying
 * a recorded program.  The two alternate, so that a busy machine disturbs both alike; medians.
 *
 *   bench_program [workers [tiles [repeats [scheduler]]]] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/program.h"

enum { STAGES = 8, ARRAYS = 3, REACH = 3, MAX_TILES = 256, MAX_REPEATS = 10000 };

static starpu_data_handle_t handle[ARRAYS][MAX_TILES];
static float block[ARRAYS][MAX_TILES][16];

static void nothing(void *buffers[], void *cl_arg)
{
  (void)buffers;
  (void)cl_arg;
}

static struct starpu_codelet empty = {
    .cpu_funcs = {nothing}, .nbuffers = STARPU_VARIABLE_NBUFFERS, .name = "empty"};

/* The accesses of task `t` of a stage: project, attend or update one tile. */
static int accesses(int t, int tiles, ts_access *a)
{
  const int kind = t / tiles, tile = t % tiles;
  int n = 0;
  if (kind == 0) a[n++] = (ts_access){handle[0][tile], STARPU_R};
  for (int d = -REACH; kind == 1 && d <= REACH; d++)
    a[n++] = (ts_access){handle[1][(tile + d + tiles) % tiles], STARPU_R};
  if (kind == 2) a[n++] = (ts_access){handle[2][tile], STARPU_R};
  const int written = (kind + 1) % ARRAYS;
  a[n++] = (ts_access){handle[written][tile], kind == 2 ? STARPU_RW : STARPU_W};
  return n;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double insert_all(int tiles)
{
  const double start = now();
  for (int s = 0; s < STAGES; s++)
    for (int t = 0; t < 3 * tiles; t++) {
      ts_access a[2 * REACH + 2];
      struct starpu_data_descr d[2 * REACH + 2];
      const int n = accesses(t, tiles, a);
      for (int i = 0; i < n; i++)
        d[i] = (struct starpu_data_descr){a[i].handle, a[i].mode};
      if (starpu_task_insert(&empty, STARPU_DATA_MODE_ARRAY, d, n, 0)) exit(1);
    }
  starpu_task_wait_for_all();
  return now() - start;
}

static int record(int tiles, ts_program **out)
{
  TS_TRY(ts_program_create(out));
  for (int s = 0; s < STAGES; s++)
    for (int t = 0; t < 3 * tiles; t++) {
      ts_access a[2 * REACH + 2];
      const int n = accesses(t, tiles, a);
      TS_TRY(ts_program_add(*out, &(ts_task_desc){.codelet = &empty, .access = a, .naccess = n}));
    }
  return 0;
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const char *name, double *seconds, int repeats, int tasks)
{
  qsort(seconds, (size_t)repeats, sizeof *seconds, ascending);
  printf("%-10s %8.2f %8.2f %8.2f\n", name, 1e6 * seconds[repeats / 2] / tasks,
         1e6 * seconds[repeats / 10] / tasks, 1e6 * seconds[repeats - 1 - repeats / 10] / tasks);
}

static int measure(int tiles, int repeats)
{
  static double inserted[MAX_REPEATS], replayed[MAX_REPEATS];
  ts_program *program = NULL;
  for (int a = 0; a < ARRAYS; a++)
    for (int t = 0; t < tiles; t++)
      starpu_vector_data_register(&handle[a][t], STARPU_MAIN_RAM, (uintptr_t)block[a][t], 16,
                                  sizeof(float));
  TS_TRY(record(tiles, &program));
  const int tasks = ts_program_size(program);
  for (int r = -2; r < repeats; r++) { /* two rounds warm up */
    inserted[r < 0 ? 0 : r] = insert_all(tiles);
    TS_TRY(ts_program_run(program, r));
    replayed[r < 0 ? 0 : r] = ts_program_seconds(program);
  }
  printf("us per task, %d tasks, %d repeats: median, 10 %%, 90 %%\n", tasks, repeats);
  report("insert", inserted, repeats, tasks);
  report("replay", replayed, repeats, tasks);
  ts_program_destroy(&program);
  for (int a = 0; a < ARRAYS; a++)
    for (int t = 0; t < tiles; t++)
      starpu_data_unregister(handle[a][t]);
  return 0;
}

int main(int argc, char **argv)
{
  ts_topology topology;
  ts_engine_params params;
  ts_engine *engine = NULL;
  ts_engine_params_init(&params);
  params.workers = argc > 1 ? atoi(argv[1]) : 2;
  const int tiles = argc > 2 ? atoi(argv[2]) : 16, repeats = argc > 3 ? atoi(argv[3]) : 101;
  if (argc > 4) params.scheduler = argv[4];
  if (tiles <= 2 * REACH || tiles > MAX_TILES || repeats < 1 || repeats > MAX_REPEATS) return 2;

  char text[2048];
  int status = ts_topology_read(&topology);
  if (!status) status = ts_engine_create(&topology, &params, &engine);
  if (!status) {
    ts_engine_describe(engine, text, sizeof text);
    puts(text);
    status = measure(tiles, repeats);
  }
  if (status) fprintf(stderr, "%s\n", ts_error_message());
  ts_engine_destroy(&engine);
  return ts_status_exit(status);
}
