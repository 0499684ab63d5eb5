/* SPDX-License-Identifier: MIT
 *
 * All-reduce among all GPUs of the machine, a thread for each, against sums of the host: in the
 * order of the ranks to the bit, by NCCL's own to rounding; long arrays, short ones, and modes in
 * turn.  One GPU is a group of one. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/collective_gpu.h"
#include "runtime/error.h"

enum { MOST = 8, WORDS = 4096, LENGTHS = 6 };

typedef struct gpu {
  pthread_t thread;
  int rank, size;
  ncclComm_t comm;
  cudaStream_t stream;
  double *in, *out; /* on the device */
} gpu;

static double value(int rank, size_t i)
{
  return sin(0.1 + 1.7 * rank + (double)(i % 1000)) * (1 + (double)(i % 7));
}

static double want(int size, ts_cop op, size_t i)
{
  double all = value(0, i);
  for (int r = 1; r < size; r++) {
    const double x = value(r, i);
    all = op == TS_COP_SUM ? all + x : op == TS_COP_MAX ? fmax(all, x) : fmin(all, x);
  }
  return all;
}

#define MUST(g, good)                                                           \
  do {                                                                          \
    if (!(good)) {                                                              \
      fprintf(stderr, "GPU %d, line %d: %s (%s)\n", (g)->rank, __LINE__, #good, \
              ts_error_message());                                              \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static void try_one(gpu *g, ts_gpu_collective *c, ts_gpu_algorithm a, ts_cop op, size_t n,
                    bool in_place)
{
  static _Thread_local double host[3 * WORDS];
  const size_t bytes = n * sizeof *host;
  const bool exact = a != TS_GPU_NCCL && n <= WORDS && ts_gpu_collective_symmetric(c);
  for (size_t i = 0; i < n; i++)
    host[i] = value(g->rank, i);
  MUST(g, !cudaMemcpy(g->in, host, bytes, cudaMemcpyHostToDevice));
  double *out = in_place ? g->in : g->out;
  MUST(g, !ts_gpu_collective_allreduce(c, a, TS_CTYPE_DOUBLE, op, g->in, out, n, g->stream));
  MUST(g, !cudaStreamSynchronize(g->stream));
  MUST(g, !cudaMemcpy(host, out, bytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++) {
    const double y = want(g->size, op, i);
    if (fabs(host[i] - y) <= (exact ? 0 : 1e-13 * (1 + fabs(y)))) continue;
    fprintf(stderr,
            "GPU %d: algorithm %d, operation %d, %zu values: value %zu is %.17g, not %.17g\n",
            g->rank, a, op, n, i, host[i], y);
    exit(1);
  }
}

static void *run(void *arg)
{
  static const size_t length[LENGTHS] = {1, 2, 3, 500, WORDS, 3 * WORDS};
  gpu *g = arg;
  ts_gpu_collective *c = NULL;
  MUST(g, !cudaSetDevice(g->rank));
  MUST(g, !cudaStreamCreate(&g->stream));
  MUST(g, !cudaMalloc((void **)&g->in, 3 * WORDS * sizeof *g->in));
  MUST(g, !cudaMalloc((void **)&g->out, 3 * WORDS * sizeof *g->out));
  MUST(g, !ts_gpu_collective_create(g->comm, WORDS, &c));
  if (g->rank == 0)
    printf("%d GPUs, %s\n", g->size,
           ts_gpu_collective_symmetric(c) ? "symmetric memory" : "no symmetric memory: NCCL's own");
  for (int again = 0; again < 20; again++)
    for (int i = 0; i < LENGTHS * TS_COPS * TS_GPU_ALGORITHMS; i++)
      try_one(g, c, (ts_gpu_algorithm)(i % TS_GPU_ALGORITHMS),
              (ts_cop)(i / TS_GPU_ALGORITHMS % TS_COPS), length[i / TS_GPU_ALGORITHMS / TS_COPS],
              again % 2);
  ts_gpu_collective_destroy(&c);
  MUST(g, !cudaFree(g->in) && !cudaFree(g->out) && !cudaStreamDestroy(g->stream));
  return NULL;
}

int main(void)
{
  static gpu gpus[MOST];
  ncclComm_t comms[MOST];
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error || count == 0) {
    printf("skipped: there is no GPU (%s)\n", error ? cudaGetErrorString(error) : "none");
    return 77;
  }
  alarm(300); /* a hang is a failure */
  if (count > MOST) count = MOST;
  const ncclResult_t joined = ncclCommInitAll(comms, count, NULL);
  if (joined) {
    fprintf(stderr, "ncclCommInitAll: %s\n", ncclGetErrorString(joined));
    return 1;
  }
  for (int r = 0; r < count; r++) {
    gpus[r] = (gpu){.rank = r, .size = count, .comm = comms[r]};
    if (pthread_create(&gpus[r].thread, NULL, run, &gpus[r])) return 1;
  }
  for (int r = 0; r < count; r++)
    pthread_join(gpus[r].thread, NULL);
  for (int r = 0; r < count; r++)
    ncclCommDestroy(comms[r]);
  return 0;
}
