/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_steady_ranks.sh under mpirun: what a hundred steps of one epoch allocate and
 * send (or another number: steady_ranks STEPS [GOLDEN]).  Allocations are counted by the library
 * that asks for them, messages by kind, because this program's own malloc and MPI_Isend stand
 * before the C library's and MPI's.  Our code allocates nothing; every planned message leaves once,
 * with one envelope of StarPU-MPI before it; the ranks agree by one MAX and one SUM per step; and
 * nothing else is said. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"
#include "tests/case.h"
#include "tests/ranks_start.h"
#include "tests/ranks_watchdog.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

enum { WARM = 3, ROOM = 1 << 18, LIBRARIES = 32 };

static int steps = 100; /* that are counted */
static atomic_bool counting;

/* ---- memory */

static atomic_int allocations;
static void *caller[ROOM];

#ifndef SANITIZED
/* glibc's own */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void note(void *from)
{
  if (!counting) return;
  const int i = allocations++;
  if (i < ROOM) caller[i] = from;
}

void *malloc(size_t size)
{
  note(__builtin_return_address(0));
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
  note(__builtin_return_address(0));
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
  note(__builtin_return_address(0));
  return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
  note(__builtin_return_address(0));
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
#endif

/* ---- messages: persistent ones, which are planned, and others */

typedef struct plan {
  MPI_Request request;
  int64_t bytes;
} plan;

static plan *plans;
static int nplans, capacity, collectives;
static int64_t planned, planned_bytes, unplanned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int MPI_Send_init(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
  int size = 0;
  const int code = PMPI_Send_init(data, count, type, to, tag, comm, request);
  MPI_Type_size(type, &size);
  pthread_mutex_lock(&lock);
  if (nplans == capacity) {
    capacity = 2 * capacity + 64;
    plans = realloc(plans, (size_t)capacity * sizeof *plans);
    if (!plans) abort();
  }
  plans[nplans++] = (plan){*request, (int64_t)count * size};
  pthread_mutex_unlock(&lock);
  return code;
}

int MPI_Request_free(MPI_Request *request)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < nplans; i++)
    if (plans[i].request == *request) plans[i--] = plans[--nplans];
  pthread_mutex_unlock(&lock);
  return PMPI_Request_free(request);
}

int MPI_Start(MPI_Request *request)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < nplans && counting; i++) /* a receive is not among them */
    if (plans[i].request == *request) {
      planned++;
      planned_bytes += plans[i].bytes;
    }
  pthread_mutex_unlock(&lock);
  return PMPI_Start(request);
}

static void note_message(void)
{
  if (!counting) return;
  pthread_mutex_lock(&lock);
  unplanned++;
  pthread_mutex_unlock(&lock);
}

static void note_collective(void)
{
  if (!counting) return;
  pthread_mutex_lock(&lock);
  collectives++;
  pthread_mutex_unlock(&lock);
}

#define SEND_PARAMETERS \
  const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm
#define SEND_ARGUMENTS data, count, type, to, tag, comm

int MPI_Send(SEND_PARAMETERS)
{
  note_message();
  return PMPI_Send(SEND_ARGUMENTS);
}

int MPI_Ssend(SEND_PARAMETERS)
{
  note_message();
  return PMPI_Ssend(SEND_ARGUMENTS);
}

int MPI_Isend(SEND_PARAMETERS, MPI_Request *request)
{
  note_message();
  return PMPI_Isend(SEND_ARGUMENTS, request);
}

int MPI_Issend(SEND_PARAMETERS, MPI_Request *request)
{
  note_message();
  return PMPI_Issend(SEND_ARGUMENTS, request);
}

#define REDUCE_PARAMETERS \
  const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm

int MPI_Allreduce(REDUCE_PARAMETERS)
{
  note_collective();
  return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Iallreduce(REDUCE_PARAMETERS, MPI_Request *request)
{
  note_collective();
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
  note_collective();
  return PMPI_Bcast(data, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
  note_collective();
  return PMPI_Barrier(comm);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
  note_collective();
  return PMPI_Ibarrier(comm, request);
}

int MPI_Allgather(const void *in, int nin, MPI_Datatype tin, void *out, int nout, MPI_Datatype tout,
                  MPI_Comm comm)
{
  note_collective();
  return PMPI_Allgather(in, nin, tin, out, nout, tout, comm);
}

int MPI_Alltoall(const void *in, int nin, MPI_Datatype tin, void *out, int nout, MPI_Datatype tout,
                 MPI_Comm comm)
{
  note_collective();
  return PMPI_Alltoall(in, nin, tin, out, nout, tout, comm);
}

/* ---- the verdict */

static int failures;

static void expect(const char *what, int64_t found, int64_t expected)
{
  if (found == expected) return;
  fprintf(stderr, "rank %d of %d: %s: %lld, expected %lld\n", ranks.first, ranks.size, what,
          (long long)found, (long long)expected);
  failures++;
}

static const char *library_of(const void *address)
{
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return "?";
  const char *slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

static bool is_ours(const char *library)
{
  return !strncmp(library, "libtessera", 10) || strstr(library, "steady_ranks");
}

static void judge_memory(void)
{
  const char *name[LIBRARIES];
  int64_t count[LIBRARIES] = {0}, ours = 0;
  int libraries = 0;
  const int n = allocations < ROOM ? allocations : ROOM;
  for (int i = 0; i < n; i++) {
    const char *library = library_of(caller[i]);
    int k = 0;
    while (k < libraries && strcmp(name[k], library) != 0)
      k++;
    if (k == libraries && k < LIBRARIES) name[libraries++] = library;
    if (k < LIBRARIES) count[k]++;
    ours += is_ours(library);
  }
  if (ranks.first == 0) {
    printf("%d ranks, allocations per step:", ranks.size);
    for (int k = 0; k < libraries; k++)
      printf(" %s %g", name[k], (double)count[k] / steps);
    printf("%s\n", libraries ? "" : " none");
  }
  expect("allocations that were counted", n, allocations);
  expect("allocations by our code", ours, 0);
}

static void judge_messages(const ts_step_stats *stats)
{
  expect("planned messages", planned, (int64_t)steps * stats->sent_messages);
  expect("their bytes", planned_bytes, (int64_t)steps * stats->sent_bytes);
  expect("other messages", unplanned, 0);
  expect("collective calls of MPI", collectives, 0);
  if (ranks.first == 0)
    printf("%d ranks: %d messages a step, %lld bytes\n", ranks.size, stats->sent_messages,
           (long long)stats->sent_bytes);
}

/* This rank's share of the atoms, whichever: the step deals them out. */
static ts_system *part(const golden_case *c)
{
  ts_system *s = case_copy(c->system);
  const ts_lidx all = s->n, first = all * ranks.first / ranks.size;
  ts_lidx *order = NULL;
  must(TSI_NEW(order, all));
  for (ts_lidx i = 0; i < all; i++)
    order[i] = (first + i) % all;
  must(ts_system_permute(s, order));
  s->n = all * (ranks.first + 1) / ranks.size - first;
  free(order);
  return s;
}

static void simulate(const golden_case *c)
{
  const ts_motion motion = {.timestep = 0.001};
  ts_model *model = case_model(c, false);
  ts_step_params params = case_params(model, 0.5);
  ts_system *system = part(c);
  ts_partial total;
  ts_step *step;
  params.ranks = &ranks;
  params.collective = collective;
  params.transfers = ts_engine_transfers(engine);
  params.rebuild = params.period = WARM + steps + 1;
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  for (int i = 1; i <= WARM; i++)
    must(ts_step_advance(step, &motion, i, &total));
  PMPI_Barrier(ranks.comm);
  const ts_step_stats before = ts_step_statistics(step);
  ts_collective_count(collective, true);
  counting = true;
  for (int i = 1; i <= steps; i++)
    must(ts_step_advance(step, &motion, WARM + i, &total));
  counting = false;
  PMPI_Barrier(ranks.comm);
  const ts_step_stats after = ts_step_statistics(step);
  const ts_ccount agreed = ts_collective_count(collective, true);
  expect("agreements", (int64_t)agreed.rounds, 2 * (int64_t)steps);
  expect("programs recorded", after.records, before.records);
  expect("evaluations", after.evaluations - before.evaluations, steps);
  judge_memory();
  judge_messages(&after);
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  ts_model_destroy(&model);
}

int main(int argc, char **argv)
{
#ifdef SANITIZED
  printf("skipped: a sanitizer has its own malloc\n");
  return 77;
#endif
  ranks_watchdog(240);
  start();
  if (ranks.size > 1) {
    if (argc > 1) steps = atoi(argv[1]);
    golden_case c = case_read(argc > 2 ? argv[2] : "triclinic-first");
    simulate(&c);
    case_release(&c);
  } else {
    printf("nothing to count on one rank\n");
  }
  int all = failures;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, ranks.comm);
  stop();
  return all > 0;
}
