/* SPDX-License-Identifier: MIT
 *
 * LD_PRELOAD=bench/delay.so TS_DELAY_US=1000: every message that StarPU-MPI sends for us leaves
 * that much later.  A network with this latency on one machine: a thread of its own holds messages
 * back and sleeps meanwhile, so workers lose no time, and one message's delay does not add to
 * another's that is under way. */
#include <dlfcn.h>
#include <pthread.h>
#include <starpu_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct held {
  starpu_data_handle_t data;
  int rank;
  starpu_mpi_tag_t tag;
  MPI_Comm comm;
  void (*callback)(void *);
  void *arg;
  struct timespec due;
  struct held *next;
} held;

typedef int send_function(starpu_data_handle_t, int, starpu_mpi_tag_t, MPI_Comm, void (*)(void *),
                          void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static held *first, **last = &first; /* in the order in which they are due */
static long delay_us;
static send_function *send;

static held *take(void)
{
  pthread_mutex_lock(&lock);
  while (!first)
    pthread_cond_wait(&filled, &lock);
  held *m = first;
  first = m->next;
  if (!first) last = &first;
  pthread_mutex_unlock(&lock);
  return m;
}

static void *release(void *unused)
{
  (void)unused;
  for (;;) {
    held *m = take();
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &m->due, NULL) != 0)
      ;
    if (send(m->data, m->rank, m->tag, m->comm, m->callback, m->arg)) abort();
    free(m);
  }
  return NULL;
}

static void start(void)
{
  pthread_t thread;
  const char *delay = getenv("TS_DELAY_US");
  delay_us = delay ? atol(delay) : 0;
  *(void **)&send = dlsym(RTLD_NEXT, "starpu_mpi_isend_detached");
  if (!send || pthread_create(&thread, NULL, release, NULL)) {
    fprintf(stderr, "delay.so: there is no StarPU-MPI, or no thread\n");
    abort();
  }
  pthread_detach(thread);
}

int starpu_mpi_isend_detached(starpu_data_handle_t data, int rank, starpu_mpi_tag_t tag,
                              MPI_Comm comm, void (*callback)(void *), void *arg)
{
  pthread_once(&once, start);
  if (delay_us <= 0) return send(data, rank, tag, comm, callback, arg);
  held *m = malloc(sizeof *m);
  if (!m) abort();
  *m = (held){
      .data = data, .rank = rank, .tag = tag, .comm = comm, .callback = callback, .arg = arg};
  clock_gettime(CLOCK_MONOTONIC, &m->due);
  m->due.tv_nsec += delay_us * 1000;
  m->due.tv_sec += m->due.tv_nsec / 1000000000;
  m->due.tv_nsec %= 1000000000;
  pthread_mutex_lock(&lock);
  *last = m;
  last = &m->next;
  pthread_cond_signal(&filled);
  pthread_mutex_unlock(&lock);
  return 0;
}
