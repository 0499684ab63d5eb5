/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_collective_ranks.sh under mpirun: every collective, type, operation and
 * algorithm on real ranks, against values that every rank computes for itself in the order of the
 * ranks, to the bit (ll128 and mpi: to rounding).  Arguments: ranks of a pretended node (0: as they
 * are) and, optionally, what must fail: "sentinel" or "death". */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collective.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_must.h"

enum { MOST = 20001 };

static int rank, size, node;
static double in[8 * 4001], out[MOST > 8 * 4001 ? MOST : 8 * 4001];

/* Value i of rank r. */
static double value(int r, size_t i)
{
  return sin(0.1 + 1.7 * r + (double)(i % 1000)) * (1 + (double)(i % 7));
}

static double pick(ts_ctype type, const void *x, size_t i)
{
  return type == TS_CTYPE_DOUBLE  ? ((const double *)x)[i]
         : type == TS_CTYPE_FLOAT ? ((const float *)x)[i]
                                  : (double)((const int64_t *)x)[i];
}

static void place(ts_ctype type, void *x, size_t i, double y)
{
  if (type == TS_CTYPE_DOUBLE)
    ((double *)x)[i] = y;
  else if (type == TS_CTYPE_FLOAT)
    ((float *)x)[i] = (float)y;
  else
    ((int64_t *)x)[i] = (int64_t)(1000 * y);
}

static double rounded(ts_ctype type, double y)
{
  return type == TS_CTYPE_DOUBLE ? y : type == TS_CTYPE_FLOAT ? (float)y : trunc(1000 * y);
}

static double two(ts_ctype type, ts_cop op, double a, double b)
{
  if (op == TS_COP_MAX) return a > b ? a : b;
  if (op == TS_COP_MIN) return a < b ? a : b;
  return type == TS_CTYPE_FLOAT ? (float)a + (float)b : a + b;
}

/* Combined in the order of the ranks, node by node where nodes are pretended. */
static double want(ts_ctype type, ts_cop op, size_t i)
{
  const int step = node ? node : size;
  double all = 0;
  for (int first = 0; first < size; first += step) {
    double sum = rounded(type, value(first, i));
    for (int r = first + 1; r < size && r < first + step; r++)
      sum = two(type, op, sum, rounded(type, value(r, i)));
    all = first ? two(type, op, all, sum) : sum;
  }
  return all;
}

static void compare(ts_ctype type, const void *x, size_t i, double y, bool exact)
{
  const double got = pick(type, x, i), slack = exact ? 0 : type == TS_CTYPE_FLOAT ? 1e-5 : 1e-13;
  if (fabs(got - y) <= slack * (1 + fabs(y))) return;
  fprintf(stderr, "rank %d: value %zu is %.17g, not %.17g\n", rank, i, got, y);
  MUST(!"right value");
}

static void try_allreduce(ts_collective *c, ts_algorithm a, ts_ctype type, ts_cop op, size_t n,
                          bool in_place, size_t shift)
{
  /* float arrays need not begin at an address of words */
  void *to = (char *)out + shift * tsi_ctype_size(type), *from = in_place ? to : in;
  for (size_t i = 0; i < n; i++)
    place(type, from, i, value(rank, i));
  MUST(!ts_collective_allreduce(c, type, op, from, to, n));
  /* long messages, and those between nodes, are combined in MPI's order */
  const bool exact = a != TS_ALGORITHM_LL128 && a != TS_ALGORITHM_MPI && (!node || n <= 512) &&
                     (a || n * tsi_ctype_size(type) <= 32768);
  for (size_t i = 0; i<n; i += n> 100 ? 13 : 1)
    compare(type, to, i, want(type, op, i), exact || type == TS_CTYPE_INT64);
}

static void try_rooted(ts_collective *c, ts_ctype type, int root, size_t n)
{
  for (size_t i = 0; i < n; i++)
    place(type, in, i, value(rank, i));
  MUST(!ts_collective_reduce(c, type, TS_COP_SUM, root, in, out, n));
  for (size_t i = 0; rank == root && i < n; i++)
    compare(type, out, i, want(type, TS_COP_SUM, i), !node);
  MUST(!ts_collective_broadcast(c, type, root, in, n));
  for (size_t i = 0; i < n; i++)
    compare(type, in, i, rounded(type, value(root, i)), true);
}

static void try_parts(ts_collective *c, ts_ctype type, size_t n)
{
  for (size_t i = 0; i < n * (size_t)size; i++)
    place(type, in, i, value(rank, i));
  MUST(!ts_collective_reduce_scatter(c, type, TS_COP_SUM, in, out, n));
  for (size_t i = 0; i < n; i++)
    compare(type, out, i, want(type, TS_COP_SUM, (size_t)rank * n + i), !node);
  const size_t own = (size_t)rank * n * tsi_ctype_size(type);
  memcpy((char *)out + own, in, n * tsi_ctype_size(type)); /* in place */
  MUST(!ts_collective_all_gather(c, type, (char *)out + own, out, n));
  for (size_t i = 0; i < n * (size_t)size; i++)
    compare(type, out, i, rounded(type, value((int)(i / n), i % n)), true);
}

static void everything(ts_collective *c)
{
  static const size_t lengths[] = {0, 1, 2, 3, 8, 17, 64, 511, 4001, MOST - 1};
  for (int a = TS_ALGORITHM_AUTO; a < TS_ALGORITHMS; a++) {
    ts_collective_choose(c, (ts_algorithm)a);
    for (int type = 0; type < TS_CTYPES; type++)
      for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const size_t n = lengths[k], few = n < 4001 ? n : 4001;
        for (int op = 0; op < TS_COPS; op++)
          try_allreduce(c, (ts_algorithm)a, (ts_ctype)type, (ts_cop)op, n, (k + (size_t)op) % 2,
                        (size_t)rank % 2);
        if (a == TS_ALGORITHM_MPI && n == 0) continue;
        if (a != TS_ALGORITHM_MPI) try_rooted(c, (ts_ctype)type, (int)n % size, few);
        if (a != TS_ALGORITHM_MPI) try_parts(c, (ts_ctype)type, few);
      }
  }
}

/* What the code counts is what docs/collectives.md says: bytes sent and synchronisations. */
static void count(ts_collective *c)
{
  const uint64_t n = (uint64_t)size, m = n * 1920;
  const uint64_t sent[TS_ALGORITHMS] = {
      0,           2 * (n - 1) * m,     4 * (n - 1) * m / n,
      (n - 1) * m, 2 * (n - 1) * m / n, (n - 1) * m / n * 16 / 15};
  const uint64_t rounds[TS_ALGORITHMS] = {0, (m / 8 + 511) / 512, 2, (m / 8 + 511) / 512, 2, 1};
  for (int a = TS_ALGORITHM_LL_ONE; a < TS_ALGORITHM_MPI; a++) {
    ts_collective_choose(c, (ts_algorithm)a);
    ts_collective_count(c, true);
    MUST(!ts_collective_allreduce(c, TS_CTYPE_DOUBLE, TS_COP_SUM, out, out, m / 8));
    const ts_ccount counted = ts_collective_count(c, true);
    MUST(counted.bytes == sent[a]);
    MUST(counted.rounds == rounds[a]);
  }
}

/* A table that the job gives, and what is none. */
static void tables(void)
{
  static const char *const bad[] = {"",
                                    "8",
                                    "8:ll",
                                    "8:ll-one-shot",
                                    "64:ll128,8:ll128,mpi",
                                    "8:ll128,auto",
                                    "8:ll128,,mpi",
                                    "mpi,",
                                    "-8:ll128,mpi"};
  ts_collective_params params;
  ts_collective *c = NULL;
  ts_collective_params_init(&params);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    params.table = bad[i];
    MUST(ts_collective_create(ts_world_comm(world), &params, &c) == TS_ERR_ARG);
    MUST(!c);
  }
  params.table = "64:ll-one-shot,4096:sentinel-two-shot,ll128";
  MUST(!ts_collective_create(ts_world_comm(world), &params, &c));
  MUST(ts_collective_choice(c, 8) == TS_ALGORITHM_LL_ONE);
  MUST(ts_collective_choice(c, 64) == TS_ALGORITHM_LL_ONE);
  MUST(ts_collective_choice(c, 65) == TS_ALGORITHM_SENTINEL_TWO);
  MUST(ts_collective_choice(c, 4096) == TS_ALGORITHM_SENTINEL_TWO);
  MUST(ts_collective_choice(c, 1 << 30) == TS_ALGORITHM_LL128);
  ts_collective_destroy(&c);
}

/* One rank passes the sentinel: it fails everywhere, soon, and again. */
static void refuse_sentinel(ts_collective *c)
{
  const uint64_t bits = TS_SENTINEL;
  double x[3] = {1, 2, 3};
  ts_collective_choose(c, TS_ALGORITHM_SENTINEL_ONE);
  if (rank == size - 1) memcpy(&x[1], &bits, sizeof bits);
  for (int again = 0; again < 2; again++) {
    MUST(ts_collective_allreduce(c, TS_CTYPE_DOUBLE, TS_COP_SUM, x, x, 3) == TS_ERR_ARG);
    MUST(strstr(ts_error_message(), "0xfff5a3c9ff9a5c3d"));
  }
}

/* A rank ends while others wait; its parent may or may not notice. */
static void die(ts_collective *c)
{
  double x = 1;
  MUST(!ts_collective_allreduce(c, TS_CTYPE_DOUBLE, TS_COP_SUM, &x, &x, 1));
  if (rank == size - 1) raise(SIGKILL);
  const double start = MPI_Wtime();
  const int status = ts_collective_allreduce(c, TS_CTYPE_DOUBLE, TS_COP_SUM, &x, &x, 1);
  printf("noticed after %.1f s: %s\n", MPI_Wtime() - start, ts_error_message());
  ts_world_abort(world, status);
}

int main(int argc, char **argv)
{
  ts_collective *c = NULL;
  ts_collective_params params;
  alarm(180);
  if (ts_world_create(&world)) return 1;
  rank = ts_world_rank(world);
  size = ts_world_size(world);
  node = argc > 1 ? atoi(argv[1]) : 0;
  ts_collective_params_init(&params);
  params.words = 512;
  params.node_ranks = node;
  params.cache = getenv("TS_TEST_CACHE");
  MUST(size <= 8);
  MUST(!ts_collective_create(ts_world_comm(world), &params, &c));
  if (argc > 2 && !strcmp(argv[2], "sentinel"))
    refuse_sentinel(c);
  else if (argc > 2)
    die(c);
  else
    everything(c);
  if (argc <= 2 && !node) {
    count(c);
    tables();
  }
  ts_collective_destroy(&c);
  ts_world_destroy(&world);
  return 0;
}
