/* SPDX-License-Identifier: MIT
 *
 * Messages by StarPU-MPI, and patience for its thread. */
#include <starpu_mpi.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "runtime/error.h"
#include "runtime/transfers_impl.h"

static double seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* StarPU gives its thread this name. */
static bool is_transfer_thread(void)
{
  static _Thread_local int known; /* 0: not yet looked */
  char name[16] = "";
  if (known) return known > 0;
  known = !pthread_getname_np(pthread_self(), name, sizeof name) && !strcmp(name, "MPI") ? 1 : -1;
  if (known > 0) prctl(PR_SET_TIMERSLACK, 1000UL); /* ns; 50 us otherwise */
  return known > 0;
}

/* StarPU-MPI's thread asks MPI without pause whether something has arrived, and takes half a core
 * from the worker that it waits for.  So it sleeps: after 2 us in vain for 10 us, then twice as
 * long each time, up to 300 us.  MPI's profiling interface is made for such wrappers: this MPI_Test
 * stands before the library's.  Other threads pass through. */
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
  static _Thread_local struct timespec nap;
  static _Thread_local double since; /* in vain */
  const int code = PMPI_Test(request, flag, status);
  if (!is_transfer_thread()) return code;
  const double now = seconds();
  if (code || *flag) {
    since = now;
    nap.tv_nsec = 10000;
  } else if (now - since > 2e-6) {
    nanosleep(&nap, NULL);
    nap.tv_nsec = nap.tv_nsec > 150000 ? 300000 : 2 * nap.tv_nsec;
    since = seconds();
  }
  return code;
}

/* The thread is not bound: it runs where there is room. */
int tsi_transfers_starpu_start(ts_transfers *t)
{
  setenv("STARPU_MPI_NOBIND", "1", 0);
  const int failed = starpu_mpi_init_comm(NULL, NULL, 0, t->comm);
  return failed ? tsi_fail(TS_ERR_STARPU, "StarPU-MPI does not start: %d", failed) : 0;
}

void tsi_transfers_starpu_stop(void)
{
  starpu_mpi_shutdown(); /* waits, too */
}

void tsi_message_starpu_post(ts_message *m)
{
  const ts_transfer *w = &m->what;
  const MPI_Comm comm = m->transfers->comm;
  const int failed =
      w->send ? starpu_mpi_isend_detached(w->handle, w->rank, w->tag, comm, m->done, m->arg)
              : starpu_mpi_irecv_detached(w->handle, w->rank, w->tag, comm, m->done, m->arg);
  if (failed) tsi_message_abort(m, failed);
}
