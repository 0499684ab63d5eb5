/* SPDX-License-Identifier: MIT
 *
 * Collectives among all GPUs of the machine, a thread for each, against sums of the host: in the
 * order of the ranks to the bit, by NCCL's own and ll128 to rounding; long arrays, short ones, and
 * modes in turn.  One GPU is a group of one.  (The kernels' logic, with all types and operations,
 * is tested without GPUs: tests/collective_kernels.cc.) */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/collective_gpu.h"
#include "runtime/error.h"

enum { MOST = 8, WORDS = 4096, LONGEST = 3 * WORDS, LENGTHS = 6 };

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

static void compare(const gpu *g, ts_gpu_algorithm a, const char *what, size_t n, size_t i,
                    double got, double want, bool exact)
{
  if (fabs(got - want) <= (exact ? 0 : 1e-13 * (1 + fabs(want)))) return;
  fprintf(stderr, "GPU %d: algorithm %d, %s, %zu values: value %zu is %.17g, not %.17g\n", g->rank,
          a, what, n, i, got, want);
  exit(1);
}

static void fetch(gpu *g, double *host, size_t n)
{
  MUST(g, !cudaStreamSynchronize(g->stream));
  MUST(g, !cudaMemcpy(host, g->out, n * sizeof *host, cudaMemcpyDeviceToHost));
}

/* The calls that are no all-reduces; rows of n values. */
static void try_others(gpu *g, ts_gpu_collective *c, ts_gpu_algorithm a, size_t n)
{
  static _Thread_local double host[MOST * LONGEST];
  const size_t rows = (size_t)g->size, all = rows * n;
  const bool exact = a != TS_GPU_NCCL && n <= WORDS && ts_gpu_collective_symmetric(c);
  const int root = (int)(n % rows);
  for (size_t i = 0; i < all; i++)
    host[i] = value(g->rank, i);
  MUST(g, !cudaMemcpy(g->in, host, all * sizeof *host, cudaMemcpyHostToDevice));
  MUST(g, !ts_gpu_collective_reduce(c, a, TS_CTYPE_DOUBLE, TS_COP_SUM, root, g->in, g->out, n,
                                    g->stream));
  fetch(g, host, n);
  for (size_t i = 0; i < n && g->rank == root; i++)
    compare(g, a, "reduce", n, i, host[i], want(g->size, TS_COP_SUM, i), exact);
  MUST(g, !ts_gpu_collective_reduce_scatter(c, a, TS_CTYPE_DOUBLE, TS_COP_SUM, g->in, g->out, n,
                                            g->stream));
  fetch(g, host, n);
  for (size_t i = 0; i < n; i++)
    compare(g, a, "reduce-scatter", n, i, host[i],
            want(g->size, TS_COP_SUM, (size_t)g->rank * n + i), exact);
  MUST(g, !ts_gpu_collective_all_gather(c, a, TS_CTYPE_DOUBLE, g->in, g->out, n, g->stream));
  fetch(g, host, all);
  for (size_t i = 0; i < all; i++)
    compare(g, a, "all-gather", n, i, host[i], value((int)(i / n), i % n), true);
  MUST(g, !cudaMemcpy(g->out, g->in, n * sizeof *host, cudaMemcpyDeviceToDevice));
  MUST(g, !ts_gpu_collective_broadcast(c, a, TS_CTYPE_DOUBLE, root, g->out, n, g->stream));
  fetch(g, host, n);
  for (size_t i = 0; i < n; i++)
    compare(g, a, "broadcast", n, i, host[i], value(root, i), true);
}

static void try_one(gpu *g, ts_gpu_collective *c, ts_gpu_algorithm a, ts_cop op, size_t n,
                    bool in_place)
{
  static _Thread_local double host[LONGEST];
  const size_t bytes = n * sizeof *host;
  const bool exact =
      a != TS_GPU_NCCL && a != TS_GPU_LL128 && n <= WORDS && ts_gpu_collective_symmetric(c);
  for (size_t i = 0; i < n; i++)
    host[i] = value(g->rank, i);
  MUST(g, !cudaMemcpy(g->in, host, bytes, cudaMemcpyHostToDevice));
  double *out = in_place ? g->in : g->out;
  MUST(g, !ts_gpu_collective_allreduce(c, a, TS_CTYPE_DOUBLE, op, g->in, out, n, g->stream));
  MUST(g, !cudaStreamSynchronize(g->stream));
  MUST(g, !cudaMemcpy(host, out, bytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++)
    compare(g, a, "all-reduce", n, i, host[i], want(g->size, op, i), exact);
}

static void *run(void *arg)
{
  static const size_t length[LENGTHS] = {1, 2, 3, 500, WORDS, LONGEST};
  gpu *g = arg;
  ts_gpu_collective *c = NULL;
  MUST(g, !cudaSetDevice(g->rank));
  MUST(g, !cudaStreamCreate(&g->stream));
  MUST(g, !cudaMalloc((void **)&g->in, MOST * LONGEST * sizeof *g->in));
  MUST(g, !cudaMalloc((void **)&g->out, MOST * LONGEST * sizeof *g->out));
  MUST(g, !ts_gpu_collective_create(g->comm, WORDS, &c));
  if (g->rank == 0)
    printf("%d GPUs, %s\n", g->size,
           ts_gpu_collective_symmetric(c) ? "symmetric memory" : "no symmetric memory: NCCL's own");
  for (int again = 0; again < 20; again++)
    for (int i = 0; i < LENGTHS * TS_COPS * TS_GPU_ALGORITHMS; i++)
      try_one(g, c, (ts_gpu_algorithm)(i % TS_GPU_ALGORITHMS),
              (ts_cop)(i / TS_GPU_ALGORITHMS % TS_COPS), length[i / TS_GPU_ALGORITHMS / TS_COPS],
              again % 2);
  for (int again = 0; again < 20; again++)
    for (int i = 0; i < LENGTHS * TS_GPU_ALGORITHMS; i++)
      try_others(g, c, (ts_gpu_algorithm)(i % TS_GPU_ALGORITHMS), length[i / TS_GPU_ALGORITHMS]);
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
