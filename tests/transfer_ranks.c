/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_transfer_ranks.sh under mpirun: a program in which data handles go around the
 * ring of ranks, small ones and large ones, and the tasks that need them start when they arrive.
 * Every rank also keeps its workers busy, as a step does.  Both transports; prints the time of a
 * hop. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/world.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/ranks_must.h"
#include "tests/ranks_watchdog.h"

enum { LARGE = 30000, ROUNDS = 20, BUSY = 4 };

/* out = in + 1, word by word */
static void add_one(void *buffers[], void *arg)
{
  const int64_t *in = (const int64_t *)STARPU_VECTOR_GET_PTR(buffers[0]);
  int64_t *out = (int64_t *)STARPU_VECTOR_GET_PTR(buffers[1]);
  (void)arg;
  for (unsigned i = 0; i < STARPU_VECTOR_GET_NX(buffers[0]); i++)
    out[i] = in[i] + 1;
}

static struct starpu_codelet add_one_codelet = {
    .cpu_funcs = {add_one}, .nbuffers = 2, .modes = {STARPU_R, STARPU_W}, .name = "add_one"};

static void work(void *buffers[], void *arg)
{
  double *x = (double *)STARPU_VECTOR_GET_PTR(buffers[0]);
  const unsigned n = STARPU_VECTOR_GET_NX(buffers[0]);
  (void)arg;
  for (unsigned i = 0; i < 20000; i++)
    x[i % n] = x[i % n] * 0.999 + 1;
}

static struct starpu_codelet work_codelet = {
    .cpu_funcs = {work}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "work"};

static int64_t in[2][LARGE], out[2][LARGE];
static double other[BUSY][100];
static starpu_data_handle_t received[2], sent[2], busy[BUSY];

static void register_handles(void)
{
  const unsigned words[2] = {1, LARGE};
  for (int k = 0; k < 2; k++) {
    starpu_vector_data_register(&received[k], STARPU_MAIN_RAM, (uintptr_t)in[k], words[k],
                                sizeof **in);
    starpu_vector_data_register(&sent[k], STARPU_MAIN_RAM, (uintptr_t)out[k], words[k],
                                sizeof **out);
  }
  for (int b = 0; b < BUSY; b++)
    starpu_vector_data_register(&busy[b], STARPU_MAIN_RAM, (uintptr_t)other[b], 100,
                                sizeof **other);
}

static void unregister_handles(void)
{
  for (int k = 0; k < 2; k++) {
    starpu_data_unregister(received[k]);
    starpu_data_unregister(sent[k]);
  }
  for (int b = 0; b < BUSY; b++)
    starpu_data_unregister(busy[b]);
}

static void add(ts_program *program, const struct starpu_codelet *codelet, ts_access a, ts_access b)
{
  const ts_access access[2] = {a, b};
  const ts_task_desc desc = {.codelet = codelet, .access = access, .naccess = codelet->nbuffers};
  MUST(!ts_program_add(program, &desc));
}

/* Every rank sends what it has to the next one, and adds one to what it receives. */
static ts_program *record(ts_transfers *transfers, int rank, int size)
{
  ts_program *program;
  MUST(!ts_program_create(&program));
  for (int k = 0; k < 2; k++) {
    const ts_transfer to = {.handle = sent[k], .rank = (rank + 1) % size, .tag = k, .send = true};
    const ts_transfer from = {.handle = received[k], .rank = (rank + size - 1) % size, .tag = k};
    MUST(!ts_program_add_transfer(program, transfers, &to));
    MUST(!ts_program_add_transfer(program, transfers, &from));
  }
  for (int b = 0; b < BUSY; b++)
    add(program, &work_codelet, (ts_access){busy[b], STARPU_RW}, (ts_access){0});
  for (int k = 0; k < 2; k++)
    add(program, &add_one_codelet, (ts_access){received[k], STARPU_R},
        (ts_access){sent[k], STARPU_W});
  return program;
}

static void ring(ts_transfers *transfers, const char *name, int rank, int size)
{
  register_handles();
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < LARGE; i++)
      out[k][i] = 1000 * rank + i;
  ts_program *program = record(transfers, rank, size);
  MUST(ts_program_sent_messages(program) == 2);
  MUST(ts_program_sent_bytes(program) == (int64_t)((LARGE + 1) * sizeof **out));
  double seconds = 0;
  for (int round = 0; round < ROUNDS; round++) {
    MUST(!ts_program_run(program, round));
    seconds += ts_program_seconds(program);
  }
  ts_program_destroy(&program);
  unregister_handles();
  const int origin = ((rank - ROUNDS) % size + size) % size;
  for (int i = 0; i < LARGE; i++)
    MUST(out[1][i] == 1000 * origin + i + ROUNDS);
  MUST(out[0][0] == 1000 * origin + ROUNDS);
  if (rank == 0) printf("%d ranks, %s: %.3f ms a round\n", size, name, 1e3 * seconds / ROUNDS);
}

int main(void)
{
  static const char *const name[] = {
      [TS_TRANSPORT_DIRECT] = "direct", [TS_TRANSPORT_STARPU] = "starpu-mpi"};
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
  for (int start = 0; start < 4; start++) { /* each stops, and starts again */
    params.transport = start % 2 ? TS_TRANSPORT_STARPU : TS_TRANSPORT_DIRECT;
    MUST(!ts_engine_create(&topology, &params, &engine));
    ring(ts_engine_transfers(engine), name[params.transport], rank, size);
    ts_engine_destroy(&engine);
  }
  ts_world_destroy(&world);
  return 0;
}
