/* SPDX-License-Identifier: MIT
 *
 * bench_step [ROUNDS [RECOMPUTE [TILE_ATOMS [split]]]]: one evaluation of energies and forces at
 * the published width (23.4 M parameters): the golden system water64-full replicated 2 x 2 x 2,
 * 1,536 atoms, float, all workers. In the same run, between the steps, the same cores multiply
 * matrices with sgemm; what the step reaches is given as a share of that.  split: radial networks
 * with a split first layer instead of tables.
 *
 * Operations counted: multiply-adds of the dense products, forward and backward (gradients of
 * inputs), two operations each; for one atom and zero-order layer, with C channels, R rows,
 * L+1 degrees, F = H d / 2 and H d columns of queries:
 *     R C 4F           maps a and b of query and key
 *   + 2 ((L+1) F F + F H d)   their small networks
 *   + R C C            values
 *   + R C C            output map
 *   + 2 R C C + (L+1) C C     feed-forward and its gate
 * = 9.9 M at the published width.  Edges, norms and non-linearities are not counted as work. */
#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/median.h"
#include "md/report.h"
#include "runtime/memory.h"
#include "tests/case.h"

enum { SIDE = 1024, MOST = 64 };

/* The system repeated twice along each axis. */
static ts_system *replicate(const ts_system *one)
{
  ts_system *s;
  must(ts_system_create(one->natoms * 8, one->n * 8, &s));
  double h[3][3];
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++)
      h[i][k] = 2 * one->cell.h[i][k];
  must(ts_cell_init(&s->cell, (const double(*)[3])h, one->cell.periodic));
  for (int c = 0; c < 8; c++)
    for (ts_lidx i = 0; i < one->n; i++) {
      const ts_lidx to = c * one->n + i;
      s->z[to] = one->z[i];
      s->mass[to] = one->mass[i];
      for (int k = 0; k < 3; k++)
        s->x[to][k] = one->x[i][k] + (c & 1) * one->cell.h[0][k] +
                      (c >> 1 & 1) * one->cell.h[1][k] + (c >> 2) * one->cell.h[2][k];
    }
  return s;
}

static void *multiply(void *arrays)
{
  float *a = arrays, *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1.0f, a, SIDE, b, SIDE,
              0.0f, c, SIDE);
  return NULL;
}

/* GFLOP/s of sgemm on `threads` threads at once. */
static double sgemm_rate(int threads, float *const *arrays)
{
  pthread_t thread[MOST];
  const double begin = ts_clock();
  for (int t = 0; t < threads; t++)
    pthread_create(&thread[t], NULL, multiply, arrays[t]);
  for (int t = 0; t < threads; t++)
    pthread_join(thread[t], NULL);
  return 2e-9 * threads * (double)SIDE * SIDE * SIDE / (ts_clock() - begin);
}

#define PHASE_NAME(name, text) text,
static const char *const phase_name[] = {TS_PHASE_MAP(PHASE_NAME)};

int main(int argc, char **argv)
{
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const double recompute = argc > 2 ? atof(argv[2]) : 0;
  const int tile = argc > 3 ? atoi(argv[3]) : 0;
  const bool split = argc > 4 && !strcmp(argv[4], "split");
  if (rounds < 1 || rounds > MOST) {
    fprintf(stderr, "usage: bench_step [ROUNDS 1..%d [RECOMPUTE [TILE_ATOMS [split]]]]\n", MOST);
    return 1;
  }
  ts_engine *engine = case_engine(0, NULL);
  const int workers = ts_engine_workers(engine);
  golden_case golden = case_read("water64-full");
  ts_system *system = replicate(golden.system);
  ts_model *model = split ? case_model_split(&golden, false, "auto") : case_model(&golden, false);
  ts_step_params params = case_params(model, 0.5);
  ts_step *step;
  ts_partial total;
  float *arrays[MOST];
  double seconds[MOST], rate[MOST], share[MOST], work = 0;
  params.workers = workers;
  params.recompute = recompute;
  params.tile_atoms = tile;
  must(ts_step_create(&params, system, &step));
  for (int t = 0; t < workers; t++)
    must(TSI_NEW(arrays[t], 3 * SIDE * SIDE));
  for (int s = 0; s < model->desc.nstages; s++)
    for (int l = 0; l < model->desc.stage[s].nlayers; l++)
      work += ts_model_dense_work(model, s, l);
  work *= 2 * 2 * (double)system->n * 1e-9; /* forward and backward; two operations each */

  must(ts_step_evaluate(step, 0, &total));
  sgemm_rate(workers, arrays);
  const ts_step_stats before = ts_step_statistics(step);
  for (int i = 0; i < rounds; i++) {
    rate[i] = sgemm_rate(workers, arrays);
    const double begin = ts_clock();
    must(ts_step_evaluate(step, i + 1, &total));
    seconds[i] = ts_clock() - begin;
    share[i] = work / seconds[i] / rate[i];
  }
  const ts_step_stats after = ts_step_statistics(step);
  const double middle = bench_median(seconds, rounds);
  printf("%d atoms, %d workers, kernels %s, matrix %s, %d tiles of %d, %d tasks\n", system->n,
         workers, model->kernels->isa, model->matrix->name, after.tiles, after.tile_atoms,
         after.tasks);
  printf("%-14s %10s %8s\n", "phase", "s/step", "share");
  for (int p = 0; p < TS_PHASE_COUNT; p++) {
    const double t = (after.phase_seconds[p] - before.phase_seconds[p]) / rounds / workers;
    printf("%-14s %10.4f %7.1f%%\n", phase_name[p], t, 100 * t / middle);
  }
  printf("atoms per second          %10.1f\n", system->n / middle);
  printf("seconds per step          %10.4f\n", middle);
  printf("operations per step       %10.1f GFLOP (dense, forward and backward)\n", work);
  printf("step                      %10.1f GFLOP/s\n", work / middle);
  printf("sgemm, same cores         %10.1f GFLOP/s\n", bench_median(rate, rounds));
  printf("step / sgemm (paired)     %10.3f\n", bench_median(share, rounds));
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("arrays of the step        %10.3f MB per atom (recompute %g)\n",
         (double)after.bytes * 1e-6 / system->n, recompute);
  printf("peak resident memory      %10.3f MB per atom (weights %.0f MB, radial %s %.0f MB)\n",
         (double)usage.ru_maxrss * 1.024e-3 / system->n,
         (double)(model->bytes - model->radial_bytes) * 1e-6, split ? "networks" : "tables",
         (double)model->radial_bytes * 1e-6);
  ts_step_destroy(&step);
  ts_model_destroy(&model);
  for (int t = 0; t < workers; t++)
    free(arrays[t]);
  ts_system_destroy(&system);
  case_release(&golden);
  ts_engine_destroy(&engine);
  return 0;
}
