/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_transfer_ranks.sh under mpirun: data handles go around the ring of ranks, and
 * the tasks that need them start when they arrive.  Every rank also keeps its workers busy, as a
 * step does.  Prints the time of a hop. */
#include <starpu_mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/world.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

enum { WORDS = 3000, ROUNDS = 20, BUSY = 4 };

static ts_world *world;

#define MUST(condition)                                                                        \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, ts_error_message()); \
      ts_world_abort(world, TS_ERR_SIMULATION);                                                \
    }                                                                                          \
  } while (0)

/* out = in + 1, word by word; both of the same rank */
static void add_one(void *buffers[], void *arg)
{
  const int64_t *in = (const int64_t *)STARPU_VECTOR_GET_PTR(buffers[0]);
  int64_t *out = (int64_t *)STARPU_VECTOR_GET_PTR(buffers[1]);
  (void)arg;
  for (int i = 0; i < WORDS; i++)
    out[i] = in[i] + 1;
}

static struct starpu_codelet add_one_codelet = {
    .cpu_funcs = {add_one}, .nbuffers = 2, .modes = {STARPU_R, STARPU_W}, .name = "add_one"};

static void work(void *buffers[], void *arg)
{
  double *x = (double *)STARPU_VECTOR_GET_PTR(buffers[0]);
  (void)arg;
  for (int i = 0; i < 20000; i++)
    x[i % WORDS] = x[i % WORDS] * 0.999 + 1;
}

static struct starpu_codelet work_codelet = {
    .cpu_funcs = {work}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "work"};

static int64_t in[WORDS], out[WORDS];
static double other[BUSY][WORDS];

/* Each round every rank sends what it has to the next one, and adds one to what it receives. */
static void ring(MPI_Comm comm, int rank, int size)
{
  starpu_data_handle_t sent, received, busy[BUSY];
  starpu_vector_data_register(&sent, STARPU_MAIN_RAM, (uintptr_t)out, WORDS, sizeof *out);
  starpu_vector_data_register(&received, STARPU_MAIN_RAM, (uintptr_t)in, WORDS, sizeof *in);
  for (int b = 0; b < BUSY; b++)
    starpu_vector_data_register(&busy[b], STARPU_MAIN_RAM, (uintptr_t)other[b], WORDS,
                                sizeof other[b][0]);
  const double begin = starpu_timing_now();
  for (int round = 0; round < ROUNDS; round++) {
    MUST(!starpu_mpi_isend_detached_prio(sent, (rank + 1) % size, round, STARPU_MAX_PRIO, comm,
                                         NULL, NULL));
    MUST(!starpu_mpi_irecv_detached(received, (rank + size - 1) % size, round, comm, NULL, NULL));
    for (int b = 0; b < BUSY; b++)
      MUST(!starpu_task_insert(&work_codelet, STARPU_RW, busy[b], 0));
    MUST(!starpu_task_insert(&add_one_codelet, STARPU_R, received, STARPU_W, sent, 0));
  }
  starpu_task_wait_for_all();
  const double end = starpu_timing_now();
  starpu_data_unregister(sent);
  starpu_data_unregister(received);
  for (int b = 0; b < BUSY; b++)
    starpu_data_unregister(busy[b]);
  if (rank == 0) printf("%d ranks: %.3f ms a round\n", size, (end - begin) * 1e-3 / ROUNDS);
}

int main(void)
{
  ts_topology topology;
  ts_engine_params params;
  ts_engine *engine = NULL;
  ranks_watchdog(120);
  if (ts_world_create(&world)) return 1;
  const int rank = ts_world_rank(world), size = ts_world_size(world);
  MUST(!ts_topology_read(&topology));
  ts_engine_params_init(&params);
  MUST(!ts_world_share(world, &topology, &params.sharers, &params.share));
  params.comm = ts_world_comm(world);
  for (int start = 0; start < 2; start++) { /* it stops, and starts again */
    MUST(!ts_engine_create(&topology, &params, &engine));
    MUST(ts_engine_comm(engine) != MPI_COMM_NULL);
    for (int i = 0; i < WORDS; i++)
      out[i] = 1000 * rank + i;
    ring(ts_engine_comm(engine), rank, size);
    const int origin = ((rank - ROUNDS) % size + size) % size;
    for (int i = 0; i < WORDS; i++)
      MUST(out[i] == 1000 * origin + i + ROUNDS);
    ts_engine_destroy(&engine);
  }
  ts_world_destroy(&world);
  return 0;
}
