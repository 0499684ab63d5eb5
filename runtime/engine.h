/* SPDX-License-Identifier: MIT
 *
 * The engine: StarPU, started for the processors this process may use and stopped again.  One per
 * process.  Workers are threads bound to cores; BLAS runs one thread in each of them, because the
 * tasks are the parallelism.  With several ranks, one more thread waits for the handles that move
 * between them (runtime/transfers.h). */
#ifndef TS_ENGINE_H
#define TS_ENGINE_H

#include <mpi.h>

#include "runtime/topology.h"
#include "runtime/transfers.h"

typedef struct ts_engine_params {
  int workers;           /**< CPU workers; 0: this process's part of the allowed cores */
  const char *scheduler; /**< a StarPU policy by name; NULL: $STARPU_SCHED or "lws"; borrowed */
  int sharers;           /**< processes that may use the same cores as this one, itself included */
  int share;             /**< which of them this is, 0 .. sharers-1 */
  MPI_Comm comm;         /**< ranks that transfer handles; MPI_COMM_NULL: none do */
  ts_transport transport;
} ts_engine_params;

typedef struct ts_engine ts_engine;

/** Fill the defaults: automatic workers, the default scheduler, cores not shared, no transfers. */
void ts_engine_params_init(ts_engine_params *params);

/** Start StarPU.  Collective on params->comm, if there is one.  Sets OPENBLAS_NUM_THREADS and
 * StarPU's own environment only where the user has not.  Says once, in the log, where a wish is cut
 * (more workers than this StarPU was built for, more threads than cores). \param [in]  topology
 * What this process may use; copied. \param [out] out       Owned by the caller:
 * ts_engine_destroy(); NULL on failure. \return 0; TS_ERR_ARG (unknown scheduler: the message lists
 * the known ones; workers < 0); TS_ERR_STARPU; TS_ERR_MPI; TS_ERR_MEMORY. */
int ts_engine_create(const ts_topology *topology, const ts_engine_params *params, ts_engine **out);

/** Wait for all tasks and transfers and stop StarPU.  Collective on the communicator of create.  A
 * transfer whose other end never comes is waited for in vain: end a run that has failed inside one
 * by ts_world_abort().  Accepts NULL, sets *engine to NULL. */
void ts_engine_destroy(ts_engine **engine);

/** What moves handles between the ranks of create's communicator; NULL without one.  Borrowed. */
ts_transfers *ts_engine_transfers(const ts_engine *engine);

/** Let the workers sleep, or wake them.  Without tasks they look for some without pause, and a
 * thread that shares a core with one of them may wait a whole time slice for it: let them sleep
 * wherever the calling thread computes or waits for other ranks.  Tasks run when they are awake.
 * ts_program_run() wakes them and leaves them as it found them.  Thread-safe. */
void ts_engine_rest(bool rest);
bool ts_engine_resting(void);

int ts_engine_workers(const ts_engine *engine);           /**< CPU workers that run */
const char *ts_engine_scheduler(const ts_engine *engine); /**< the policy that runs; borrowed */

/** Names of the policies this StarPU knows, into names[0..size); returns how many there are. */
int ts_engine_schedulers(const char **names, int size);

/** One line for people: workers, binding, scheduler, StarPU's version, where it keeps its files.
 * Returns what snprintf would. */
int ts_engine_describe(const ts_engine *engine, char *text, size_t size);

#endif
