/* SPDX-License-Identifier: MIT
 *
 * What the two transports share. */
#ifndef TS_TRANSFERS_IMPL_H
#define TS_TRANSFERS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/transfers.h"

struct ts_message {
  ts_transfers *transfers;
  ts_transfer what;
  MPI_Request request; /* persistent; MPI_REQUEST_NULL with StarPU-MPI */
  void (*done)(void *);
  void *arg;
  ts_message *next; /* of those posted since the thread looked last */
};

struct ts_transfers {
  MPI_Comm comm;
  ts_transport transport;
  int workers;
  int messages, capacity; /* made; that the arrays have room for */
  pthread_t thread;

  int hook;             /* StarPU's number of what idle workers do */
  atomic_uint looks;    /* by workers */
  atomic_int under_way; /* posted and not done; changed under the lock */

  pthread_mutex_t lock; /* of these four */
  pthread_cond_t call;  /* for the thread */
  ts_message *fresh;    /* posted since the last look */
  bool waits;           /* the thread, for a message to be posted */
  bool stop;

  int active;           /* of those that are looked for */
  MPI_Request *request; /* [active] */
  ts_message **message; /* [active] */
  int *index;           /* [capacity] scratch */
};

/* With StarPU-MPI (transfers_starpu.c). */
int tsi_transfers_starpu_start(ts_transfers *t);
void tsi_transfers_starpu_stop(void);
void tsi_message_starpu_post(ts_message *m);

void tsi_message_abort(const ts_message *m, int code);

#endif
