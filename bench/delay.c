/* SPDX-License-Identifier: MIT
 *
 * LD_PRELOAD=bench/delay.so TS_DELAY_US=1000: every message of a step is noticed that much after it
 * has arrived.  A network with this latency on one machine: nobody is held up meanwhile, and one
 * message's delay does not add to another's that is under way.
 *
 * A step's messages are persistent requests, which are looked for with MPI_Testsome
 * (runtime/transfers.c).  The one here keeps back what is received until it is due. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 4096 };

typedef struct entry {
  MPI_Request request;
  double due; /* < 0: has not arrived */
} entry;

static entry inbound[MOST]; /* requests that receive; only one thread at a time looks */
static int known;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static entry *find(MPI_Request request)
{
  for (int i = 0; i < known; i++)
    if (inbound[i].request == request) return &inbound[i];
  return NULL;
}

int MPI_Recv_init(void *data, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
  const int code = PMPI_Recv_init(data, count, type, rank, tag, comm, request);
  if (code) return code;
  if (known == MOST) abort();
  inbound[known++] = (entry){*request, -1};
  return 0;
}

int MPI_Request_free(MPI_Request *request)
{
  entry *e = find(*request);
  if (e) *e = inbound[--known];
  return PMPI_Request_free(request);
}

int MPI_Testsome(int n, MPI_Request *request, int *count, int *index, MPI_Status *status)
{
  const char *text = getenv("TS_DELAY_US");
  const double delay = text ? 1e-6 * atof(text) : 0;
  int arrived = 0, out = 0;
  const int code = PMPI_Testsome(n, request, &arrived, index, status);
  if (code) return code;
  for (int i = 0; i < arrived; i++) {
    entry *e = find(request[index[i]]);
    if (e)
      e->due = now() + delay;
    else
      index[out++] = index[i];
  }
  for (int i = 0; i < n; i++) { /* an inactive request passes the look above by */
    entry *e = find(request[i]);
    if (!e || e->due < 0 || e->due > now()) continue;
    e->due = -1;
    index[out++] = i;
  }
  *count = out;
  return 0;
}
