/* SPDX-License-Identifier: MIT
 *
 * Persistent messages, and who looks whether they have arrived.
 *
 * Workers do, whenever one ends a task, which costs a microsecond, and without pause while they
 * have none.  A thread of its own looks where all tasks take long, and where workers sleep.  It
 * shares a core with a worker, so it must not spin (it would take half of the worker's time), and
 * the worker pays for every waking of it (60 us on a virtual machine: 5 % of a step, once a
 * millisecond): it sleeps as long as may be. */
#include "runtime/transfers.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "runtime/error.h"
#include "runtime/memory.h"
#include "runtime/transfers_impl.h"

/* [us] between looks of the thread: where workers sleep, in long tasks, where workers look */
enum { NAP_SHORT = 20, NAP_LONG = 4000, NAP_LONGEST = 16000 };

static atomic_int running;                                  /* tasks, on all workers */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER; /* of the next, and what it looks at */
static ts_transfers *current; /* the one that runs; StarPU exists once in a process, too */

static void set_current(ts_transfers *t)
{
  pthread_mutex_lock(&looking);
  current = t;
  pthread_mutex_unlock(&looking);
}

void tsi_message_abort(const ts_message *m, int code)
{
  fprintf(stderr, "tessera: a message %s rank %d cannot be posted (%d)\n",
          m->what.send ? "to" : "from", m->what.rank, code);
  MPI_Abort(m->transfers->comm, 3);
}

/* ---- looking ---- */

static void take_fresh(ts_transfers *t)
{
  pthread_mutex_lock(&t->lock);
  for (ts_message *m = t->fresh; m; m = m->next) {
    t->request[t->active] = m->request;
    t->message[t->active++] = m;
  }
  t->fresh = NULL;
  pthread_mutex_unlock(&t->lock);
}

/* Messages that are done are listed; the others close ranks. */
static ts_message *remove_done(ts_transfers *t, int count)
{
  ts_message *list = NULL;
  int kept = 0;
  for (int i = 0; i < count; i++) {
    ts_message **const m = &t->message[t->index[i]];
    (*m)->next = list;
    list = *m;
    *m = NULL;
  }
  for (int i = 0; i < t->active; i++)
    if (t->message[i]) {
      t->request[kept] = t->request[i];
      t->message[kept++] = t->message[i];
    }
  t->active = kept;
  return list;
}

/* Look once, unless somebody else is looking. */
static void look(bool as_worker)
{
  ts_message *done = NULL;
  int count = 0;
  if (pthread_mutex_trylock(&looking)) return;
  ts_transfers *t = current;
  if (t && as_worker) t->looks++;
  if (t && atomic_load(&t->under_way) > 0) {
    take_fresh(t);
    const int code = MPI_Testsome(t->active, t->request, &count, t->index, MPI_STATUSES_IGNORE);
    if (code) tsi_message_abort(t->message[0], code);
    if (count > 0) done = remove_done(t, count); /* MPI_UNDEFINED is negative */
  }
  pthread_mutex_unlock(&looking);
  if (!done) return;
  pthread_mutex_lock(&t->lock);
  atomic_fetch_sub(&t->under_way, count);
  pthread_mutex_unlock(&t->lock);
  for (ts_message *m = done, *next; m; m = next) {
    next = m->next; /* `done` may lead to the message's being posted again */
    starpu_data_release_on_node(m->what.handle, STARPU_MAIN_RAM);
    m->done(m->arg);
  }
}

void tsi_transfers_task_begins(void)
{
  atomic_fetch_add(&running, 1);
}

void tsi_transfers_task_ends(void)
{
  atomic_fetch_sub(&running, 1);
  look(true);
}

static unsigned look_while_idle(void *nothing)
{
  (void)nothing;
  look(true);
  return 1;
}

/* ---- the thread ---- */

/* Sleep, and look if no worker did meanwhile.  Returns how long to sleep next [us]. */
static int look_after_nap(ts_transfers *t, int nap)
{
  const unsigned looks = atomic_load(&t->looks);
  const struct timespec time = {.tv_nsec = 1000 * nap};
  nanosleep(&time, NULL);
  if (atomic_load(&t->looks) != looks) return nap < NAP_LONG ? NAP_LONG : NAP_LONGEST;
  look(false);
  return atomic_load(&running) < t->workers ? NAP_SHORT : NAP_LONG;
}

/* With nothing under way, wait until a message is posted.  False: there will be no more. */
static bool wait_for_message(ts_transfers *t)
{
  pthread_mutex_lock(&t->lock);
  t->waits = true;
  while (atomic_load(&t->under_way) == 0 && !t->stop)
    pthread_cond_wait(&t->call, &t->lock);
  t->waits = false;
  const bool more = atomic_load(&t->under_way) > 0;
  pthread_mutex_unlock(&t->lock);
  return more;
}

static void *serve(void *transfers)
{
  ts_transfers *t = transfers;
  int nap = NAP_LONG;
  prctl(PR_SET_TIMERSLACK, 1000UL); /* ns; 50 us otherwise */
  while (wait_for_message(t))
    nap = look_after_nap(t, nap);
  return NULL;
}

/* ---- starting and stopping ---- */

static void start_lock(ts_transfers *t)
{
  pthread_cond_init(&t->call, NULL);
  pthread_mutex_init(&t->lock, NULL);
}

static void end_lock(ts_transfers *t)
{
  pthread_mutex_destroy(&t->lock);
  pthread_cond_destroy(&t->call);
}

static int start_thread(ts_transfers *t)
{
  start_lock(t);
  const int failed = pthread_create(&t->thread, NULL, serve, t);
  if (failed) {
    end_lock(t);
    return tsi_fail(TS_ERR_MEMORY, "no thread for transfers: %s", strerror(failed));
  }
  t->hook =
      starpu_idle_hook_register(look_while_idle, NULL); /* -1: then the thread does it alone */
  pthread_setname_np(t->thread, "transfers");
  set_current(t);
  return 0;
}

static void stop_thread(ts_transfers *t)
{
  set_current(NULL);
  if (t->hook >= 0) starpu_idle_hook_deregister(t->hook);
  pthread_mutex_lock(&t->lock);
  t->stop = true;
  pthread_cond_signal(&t->call);
  pthread_mutex_unlock(&t->lock);
  pthread_join(t->thread, NULL);
  end_lock(t);
}

int ts_transfers_create(MPI_Comm comm, ts_transport transport, int workers, ts_transfers **out)
{
  ts_transfers *t = NULL;
  *out = NULL;
  TS_TRY(TSI_NEW(t, 1));
  *t = (ts_transfers){.transport = transport, .workers = workers};
  if (MPI_Comm_dup(comm, &t->comm)) {
    free(t);
    return tsi_fail(TS_ERR_MPI, "MPI gives no communicator for transfers");
  }
  const int status =
      transport == TS_TRANSPORT_STARPU ? tsi_transfers_starpu_start(t) : start_thread(t);
  if (status) {
    MPI_Comm_free(&t->comm);
    free(t);
  } else {
    *out = t;
  }
  return status;
}

void ts_transfers_destroy(ts_transfers **transfers)
{
  ts_transfers *t = *transfers;
  if (!t) return;
  if (t->transport == TS_TRANSPORT_STARPU)
    tsi_transfers_starpu_stop();
  else
    stop_thread(t);
  MPI_Comm_free(&t->comm);
  free(t->request);
  free(t->message);
  free(t->index);
  free(t);
  *transfers = NULL;
}

/* ---- messages ---- */

/* Room for one more under way; none is now. */
static int grow(ts_transfers *t)
{
  if (t->messages < t->capacity) return 0;
  const int capacity = 2 * t->messages + 64;
  MPI_Request *request = NULL;
  ts_message **message = NULL;
  int *index = NULL;
  int status = TSI_NEW(request, capacity);
  if (!status) status = TSI_NEW(message, capacity);
  if (!status) status = TSI_NEW(index, capacity);
  if (status) {
    free(request);
    free(message);
    return status;
  }
  free(t->request);
  free(t->message);
  free(t->index);
  t->request = request;
  t->message = message;
  t->index = index;
  t->capacity = capacity;
  return 0;
}

/* The request of a handle's own memory, which is sent as bytes. */
static int make_request(const ts_transfers *t, ts_message *m)
{
  const ts_transfer *w = &m->what;
  const size_t bytes = starpu_data_get_size(w->handle);
  void *const data = starpu_data_get_local_ptr(w->handle);
  if (bytes > INT_MAX)
    return tsi_fail(TS_ERR_ARG, "a message of %zu bytes %s rank %d; at most %d can be sent", bytes,
                    w->send ? "to" : "from", w->rank, INT_MAX);
  const int failed =
      w->send ? MPI_Send_init(data, (int)bytes, MPI_BYTE, w->rank, w->tag, t->comm, &m->request)
              : MPI_Recv_init(data, (int)bytes, MPI_BYTE, w->rank, w->tag, t->comm, &m->request);
  if (!failed) return 0;
  return tsi_fail(TS_ERR_MPI, "no request for a message %s rank %d (%d)", w->send ? "to" : "from",
                  w->rank, failed);
}

int ts_message_create(ts_transfers *transfers, const ts_transfer *transfer, ts_message **out)
{
  ts_message *m = NULL;
  *out = NULL;
  TS_TRY(TSI_NEW(m, 1));
  *m = (ts_message){.transfers = transfers, .what = *transfer, .request = MPI_REQUEST_NULL};
  int status = 0;
  if (transfers->transport == TS_TRANSPORT_DIRECT) {
    status = grow(transfers);
    if (!status) status = make_request(transfers, m);
  }
  if (status) {
    free(m);
    return status;
  }
  transfers->messages++;
  *out = m;
  return 0;
}

void ts_message_destroy(ts_message **message)
{
  ts_message *m = *message;
  if (!m) return;
  if (m->request != MPI_REQUEST_NULL) MPI_Request_free(&m->request);
  m->transfers->messages--;
  free(m);
  *message = NULL;
}

/* The handle is ours: the message starts. */
static void start(void *message)
{
  ts_message *m = message;
  ts_transfers *t = m->transfers;
  const int failed = MPI_Start(&m->request);
  if (failed) tsi_message_abort(m, failed);
  pthread_mutex_lock(&t->lock);
  m->next = t->fresh;
  t->fresh = m;
  atomic_fetch_add(&t->under_way, 1);
  if (t->waits) pthread_cond_signal(&t->call);
  pthread_mutex_unlock(&t->lock);
}

void ts_message_post(ts_message *message, void (*done)(void *), void *arg)
{
  message->done = done;
  message->arg = arg;
  if (message->transfers->transport == TS_TRANSPORT_STARPU) {
    tsi_message_starpu_post(message);
    return;
  }
  const int failed = starpu_data_acquire_on_node_cb_sequential_consistency(
      message->what.handle, STARPU_MAIN_RAM, message->what.send ? STARPU_R : STARPU_W, start,
      message, 0);
  if (failed) tsi_message_abort(message, failed);
}
