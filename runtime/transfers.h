/* SPDX-License-Identifier: MIT
 *
 * Transfers of data handles between ranks.  What the two ends are and how large the message is
 * stays the same for an epoch, so a message is made once and posted on every step.
 *
 * Two transports do the same:
 *  - `direct`: a persistent request of MPI.  The worker that ends the last task before a send
 * starts it, and workers look for what has arrived, between tasks and while they have none; one
 * more thread does during long tasks.
 *  - `starpu`: StarPU-MPI (starpu_mpi_isend_detached and its kin).  It sends an envelope ahead of
 *    every message, and its thread holds the lock that a worker needs for posting while it asks MPI
 *    for envelopes; on cores that the thread shares with workers this costs milliseconds a step
 *    (bench/ranks.sh transport). */
#ifndef TS_TRANSFERS_H
#define TS_TRANSFERS_H

#include <mpi.h>
#include <starpu.h>
#include <stdbool.h>

#include "runtime/types.h"

/** A handle on its way between two ranks.  The other rank makes the counterpart with the same tag,
 * which is unique among what these two ranks have under way in this direction. */
typedef struct ts_transfer {
  starpu_data_handle_t handle; /**< borrowed; in main memory, at one place for its life */
  int rank;                    /**< of the communicator: receiver or sender */
  int tag;
  bool send; /**< the handle is read; otherwise it is written */
} ts_transfer;

typedef struct ts_transfers ts_transfers;
typedef struct ts_message ts_message;

/** Start the thread that waits for messages.  Needs StarPU, and MPI_THREAD_MULTIPLE.  Collective on
 * comm, of which a copy is made, so that no other message meets these.
 * \param [out] out  Owned by the caller: ts_transfers_destroy(); NULL on failure.
 * \return 0, TS_ERR_MPI, TS_ERR_STARPU or TS_ERR_MEMORY. */
int ts_transfers_create(MPI_Comm comm, ts_transport transport, int workers, ts_transfers **out);

/** Collective.  No message may be under way; messages are destroyed first.  Accepts NULL, sets
 * *transfers to NULL. */
void ts_transfers_destroy(ts_transfers **transfers);

/** Make a message.  Not collective.
 * \param [out] out  Owned by the caller: ts_message_destroy(); NULL on failure.
 * \return 0; TS_ERR_ARG: larger than an MPI message can be (2 GiB); TS_ERR_MPI; TS_ERR_MEMORY. */
int ts_message_create(ts_transfers *transfers, const ts_transfer *transfer, ts_message **out);

/** Accepts NULL, sets *message to NULL.  It may not be under way. */
void ts_message_destroy(ts_message **message);

/** Send or receive once: as soon as StarPU lets the handle be read or written.  Any thread may call
 * it, and allocates nothing of ours; `done` is called by a worker or by the thread of the
 * transfers.  A message that cannot be posted would leave a peer waiting: MPI_Abort is all that is
 * left. */
void ts_message_post(ts_message *message, void (*done)(void *arg), void *arg);

/** Called by a worker around each task. */
void tsi_transfers_task_begins(void);
void tsi_transfers_task_ends(void);

#endif
