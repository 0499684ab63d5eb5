/* SPDX-License-Identifier: MIT
 *
 * A program: the tasks of one step, recorded once and replayed on every step until the arrays
 * change their extents.  Recording gives each task its codelet, its data (any number of handles)
 * and its arguments; a replay hands the same task objects to StarPU again and allocates nothing.
 * Tasks run in any order that the data's access modes allow: two that touch the same handle, one of
 * them writing, run in the order in which they were added.
 *
 * A codelet of a program has as its cl_arg a struct of its own whose first member is a
 * ts_task_header; ts_program_add() copies the struct and fills the header:
 *
 *   struct update_args { ts_task_header header; int layer; };
 *
 *   static void update_cpu(void *buffers[], void *cl_arg)
 *   {
 *     const struct update_args *a = cl_arg;
 *     const int status = ts_update(a->layer, (const float *)STARPU_VECTOR_GET_PTR(buffers[0]),
 * ...); if (status) tsi_program_fail(&a->header, status);
 *   }
 *
 * The codelet is an ordinary starpu_codelet, written out in full; the program runs its functions
 * through a wrapper of its own that measures them and that, after a failure, makes a no-op of every
 * task that has not started.  ts_program_run() then returns the failure of the failed task that was
 * added first, with its message. */
#ifndef TS_PROGRAM_H
#define TS_PROGRAM_H

#include <starpu.h>

#include "runtime/transfers.h"
#include "runtime/types.h"

enum { TS_PROGRAM_PHASES = 32 }; /**< phases of the accounting: 0 .. TS_PROGRAM_PHASES-1 */

typedef struct ts_program ts_program;

/** First member of every task's arguments; filled by ts_program_add(). */
typedef struct ts_task_header {
  ts_program *program;
  int index; /**< of the task, in the order of adding */
} ts_task_header;

/** A handle and how the task touches it: STARPU_R, STARPU_W, STARPU_RW or STARPU_SCRATCH. */
typedef struct ts_access {
  starpu_data_handle_t handle;
  enum starpu_data_access_mode mode;
} ts_access;

typedef struct ts_task_desc {
  const struct starpu_codelet
      *codelet;            /**< borrowed for the life of the program; .nbuffers and
                                .modes agree with access, or STARPU_VARIABLE_NBUFFERS */
  const ts_access *access; /**< [naccess]; copied */
  int naccess;             /**< any number, also beyond STARPU_NMAXBUFS */
  const void *args;        /**< begins with a ts_task_header; copied */
  size_t args_size;        /**< bytes, >= sizeof(ts_task_header); 0 with NULL: only a header */
  int priority;            /**< larger runs earlier, where the scheduler knows priorities */
  int phase;               /**< 0 .. TS_PROGRAM_PHASES-1 */
} ts_task_desc;

/** An empty program.  Needs a running engine.  Not collective.
 * \param [out] out  Owned by the caller: ts_program_destroy(); NULL on failure.
 * \return 0 or TS_ERR_MEMORY. */
int ts_program_create(ts_program **out);

/** Record one task after those already there.  Not collective.  Handles are borrowed and must
 * outlive the program (or its destruction comes first).
 * \return 0, TS_ERR_ARG (the message names the codelet) or TS_ERR_MEMORY. */
int ts_program_add(ts_program *program, const ts_task_desc *desc);

/** Record a send or a receive, in its order among the tasks: a send leaves as soon as the tasks
 * that write the handle are done, and what is recorded later and reads a received handle waits for
 * its arrival.  Not collective.  \param [in] transfers  Borrowed for the life of the program.
 * \return 0, TS_ERR_MEMORY, TS_ERR_MPI or TS_ERR_ARG (too large). */
int ts_program_add_transfer(ts_program *program, ts_transfers *transfers,
                            const ts_transfer *transfer);

/** Whatever is recorded from here on waits for whatever was recorded before: for comparison with
 * tasks that wait for their data only.  Not collective.  \return 0 or TS_ERR_MEMORY. */
int ts_program_add_barrier(ts_program *program);

/** Run every task once and wait for the last.  Collective on the ranks that it sends to and
 * receives from, where there are any; after a failure on this rank its transfers still take place.
 * The first call fixes the program: nothing can be added after it. \param [in] iteration  The
 * step's number, for traces. \return 0; the status given to tsi_program_fail() by the failing task
 * that was added first, with its message; TS_ERR_STARPU.  After a failure the program can be run
 * again. */
int ts_program_run(ts_program *program, long iteration);

/** Accepts NULL, sets *program to NULL.  No run may be in progress. */
void ts_program_destroy(ts_program **program);

int ts_program_size(const ts_program *program); /**< tasks recorded */

/** Busy seconds of a phase in the last run, summed over workers. */
double ts_program_phase_seconds(const ts_program *program, int phase);
/** Wall-clock seconds of the last run. */
double ts_program_seconds(const ts_program *program);
/** Bytes sent and messages sent by one run. */
int64_t ts_program_sent_bytes(const ts_program *program);
int ts_program_sent_messages(const ts_program *program);

/** Called by a kernel's glue, at most once per task and run: this task failed with `status`; the
 * message is the last tsi_fail() of this thread.  Thread-safe. */
void tsi_program_fail(const ts_task_header *header, int status);

/** The number of the step that runs; for kernels that need it. */
long ts_program_iteration(const ts_program *program);

#endif
