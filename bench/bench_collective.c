/* SPDX-License-Identifier: MIT
 *
 * Latency of all-reduce against length, for every algorithm and MPI's own, beside the flight of one
 * cache line (half a ping-pong), all in one run and in turn, so that a disturbance meets all alike.
 * How far a line flies depends on where it lies in memory, by a third: the flight is a mean over
 * lines of many pages, and the batches take turns at several objects, each with memory of its own.
 * Then the volume and synchronisations that the code counted beside the formulas, and the effect of
 * the scratch size.  Each rank pins itself to a core of its own where there are enough.
 *
 *   mpirun -n 2 --bind-to none bench/bench_collective [BATCHES [LARGEST_BYTES]] */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/median.h"
#include "comm/collective.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { MOST_BATCHES = 1001, PLACES = 6, PAIRS = 32, APART = 4096 + 128 };

static ts_world *world;
static MPI_Comm comm;
static int rank, size, batches = 101;

static void must(int status)
{
  if (!status) return;
  fprintf(stderr, "bench_collective: %s\n", ts_error_message());
  ts_world_abort(world, status);
}

static void pin(void)
{
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < size) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && seen++ == rank) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/* Pairs of lines for the ping-pong of ranks 0 and 1. */
static _Atomic uint64_t *lines(void)
{
  void *memory = NULL;
  MPI_Win window; /* lives as long as the bench */
  MPI_Aint bytes;
  int unit;
  MPI_Win_allocate_shared(rank ? 0 : (PAIRS + 1) * APART, 1, MPI_INFO_NULL, comm, &memory, &window);
  MPI_Win_shared_query(window, 0, &bytes, &unit, &memory);
  return (void *)(((uintptr_t)memory + 255) / 256 * 256);
}

static double flight(_Atomic uint64_t *first, int calls)
{
  static uint64_t turn;
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; i++) {
    _Atomic uint64_t *line = first + (size_t)(i % PAIRS) * (APART / sizeof *first);
    turn++;
    if (rank == 0) {
      atomic_store_explicit(&line[0], turn, memory_order_release);
      while (atomic_load_explicit(&line[32], memory_order_acquire) != turn)
        continue;
    } else if (rank == 1) {
      while (atomic_load_explicit(&line[0], memory_order_acquire) != turn)
        continue;
      atomic_store_explicit(&line[32], turn, memory_order_release);
    }
  }
  return (MPI_Wtime() - start) / calls / 2;
}

static double time_ours(ts_collective *c, ts_algorithm a, const double *x, double *y, size_t n,
                        int calls)
{
  ts_collective_choose(c, a);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; i++)
    must(ts_collective_allreduce(c, TS_CTYPE_DOUBLE, TS_COP_SUM, x, y, n));
  return (MPI_Wtime() - start) / calls;
}

static double time_mpi(const double *x, double *y, size_t n, int calls)
{
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; i++)
    MPI_Allreduce(x, y, (int)n, MPI_DOUBLE, MPI_SUM, comm);
  return (MPI_Wtime() - start) / calls;
}

static int calls_for(size_t bytes)
{
  return bytes <= 4096 ? 200 : bytes <= 65536 ? 20 : bytes <= 1 << 20 ? 4 : 1;
}

/* One row: all algorithms in turn, batch by batch; medians of the slower rank's times. */
static void row(ts_collective **place, _Atomic uint64_t *line, const double *x, double *y,
                size_t bytes)
{
  enum { FLIGHT = TS_ALGORITHMS, COLUMNS };
  static double time[COLUMNS][MOST_BATCHES];
  const int calls = calls_for(bytes), b = bytes > 1 << 20 ? (batches + 4) / 5 : batches;
  for (int i = 0; i < b; i++) {
    for (int a = TS_ALGORITHM_AUTO; a < TS_ALGORITHM_MPI; a++)
      time[a][i] = time_ours(place[i % PLACES], (ts_algorithm)a, x, y, bytes / 8, calls);
    time[TS_ALGORITHM_MPI][i] = time_mpi(x, y, bytes / 8, calls);
    time[FLIGHT][i] = size > 1 ? flight(line, 200) : 0;
  }
  if (rank == 0) printf("%9zu", bytes);
  double median[COLUMNS];
  for (int a = 0; a < COLUMNS; a++) {
    median[a] = 1e9 * bench_median(time[a], b);
    MPI_Allreduce(MPI_IN_PLACE, &median[a], 1, MPI_DOUBLE, MPI_MAX, comm);
    if (rank == 0 && a < FLIGHT) printf(" %11.0f", median[a]);
  }
  ts_collective_choose(place[0], TS_ALGORITHM_AUTO);
  if (rank == 0)
    printf(" %7.0f %6.2f %6.2f  %s\n", median[FLIGHT], median[0] / median[FLIGHT],
           median[TS_ALGORITHM_MPI] / median[0],
           ts_algorithm_name(ts_collective_choice(place[0], bytes)));
  fflush(stdout);
}

static void latency(ts_collective **place, const double *x, double *y, size_t largest)
{
  _Atomic uint64_t *line = lines();
  if (rank == 0) {
    printf("all-reduce, sum of double, %d ranks; median of %d batches [ns]\n%9s", size, batches,
           "bytes");
    for (int a = 0; a < TS_ALGORITHMS; a++)
      printf(" %11.11s", ts_algorithm_name((ts_algorithm)a));
    printf(" %7s %6s %6s\n", "flight", "auto/f", "mpi/a");
  }
  for (size_t bytes = 8; bytes <= largest; bytes *= bytes < 1024 ? 2 : 4)
    row(place, line, x, y, bytes);
}

/* Counted by the code against the formulas, for one length of whole parts. */
static void volume(ts_collective *c, const double *x, double *y)
{
  const size_t bytes = (size_t)size * 1920; /* whole lines of all algorithms */
  const double m = (double)bytes, n = size;
  const double formula[TS_ALGORITHM_MPI] = {
      0,           2 * (n - 1) * m,     4 * (n - 1) * m / n,
      (n - 1) * m, 2 * (n - 1) * m / n, (n - 1) * m / n * 16 / 15};
  if (rank == 0)
    printf("\n%-18s %8s %12s %12s %6s %10s\n", "algorithm", "bytes", "sent", "formula", "syncs",
           "scratch");
  for (int a = TS_ALGORITHM_LL_ONE; a < TS_ALGORITHM_MPI; a++) {
    ts_collective_count(c, true);
    time_ours(c, (ts_algorithm)a, x, y, bytes / 8, 1);
    const ts_ccount count = ts_collective_count(c, true);
    if (rank == 0)
      printf("%-18s %8zu %12llu %12.0f %6llu %10zu\n", ts_algorithm_name((ts_algorithm)a), bytes,
             (unsigned long long)count.bytes, formula[a], (unsigned long long)count.rounds,
             ts_collective_scratch(c, (ts_algorithm)a));
  }
}

static void scratch(const double *x, double *y)
{
  const size_t bytes = 1 << 20;
  if (rank == 0)
    printf("\n1 MB by the words of a message [us]\n%8s %12s %12s %12s\n", "words", "ll-two",
           "sentinel-one", "sentinel-two");
  for (size_t words = 256; words <= 65536; words *= 4) {
    const ts_algorithm all[] = {TS_ALGORITHM_LL_TWO, TS_ALGORITHM_SENTINEL_ONE,
                                TS_ALGORITHM_SENTINEL_TWO};
    static double time[3][MOST_BATCHES];
    ts_collective_params params;
    ts_collective *c = NULL;
    ts_collective_params_init(&params);
    params.words = words;
    params.table = "ll-one-shot";
    must(ts_collective_create(comm, &params, &c));
    for (int i = 0; i < batches; i++)
      for (int a = 0; a < 3; a++)
        time[a][i] = time_ours(c, all[a], x, y, bytes / 8, 2);
    if (rank == 0) {
      printf("%8zu", words);
      for (int a = 0; a < 3; a++)
        printf(" %12.1f", 1e6 * bench_median(time[a], batches));
      printf("\n");
    }
    ts_collective_destroy(&c);
  }
}

int main(int argc, char **argv)
{
  if (argc > 1) batches = atoi(argv[1]);
  const size_t largest = argc > 2 ? strtoull(argv[2], NULL, 10) : 16 << 20;
  if (batches < 1 || batches > MOST_BATCHES || largest < 8) {
    fprintf(stderr, "usage: bench_collective [BATCHES [LARGEST_BYTES]]\n");
    return 1;
  }
  if (ts_world_create(&world)) return 1;
  comm = ts_world_comm(world);
  rank = ts_world_rank(world);
  size = ts_world_size(world);
  pin();
  const size_t room = largest > 1 << 20 ? largest : 1 << 20;
  double *x = NULL, *y = NULL;
  ts_collective *place[PLACES] = {NULL};
  ts_collective_params params;
  ts_collective_params_init(&params);
  must(TSI_NEW(x, room / 8 + (size_t)size * 128));
  must(TSI_NEW(y, room / 8 + (size_t)size * 128));
  for (size_t i = 0; i < room / 8; i++)
    x[i] = (double)(i + 1) / (rank + 3);
  for (int i = 0; i < PLACES; i++)
    must(ts_collective_create(comm, &params, &place[i]));
  latency(place, x, y, largest);
  volume(place[0], x, y);
  scratch(x, y);
  for (int i = 0; i < PLACES; i++)
    ts_collective_destroy(&place[i]);
  free(x);
  free(y);
  ts_world_destroy(&world);
  return 0;
}
