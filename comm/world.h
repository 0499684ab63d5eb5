/* SPDX-License-Identifier: MIT
 *
 * The ranks of the run: MPI started and stopped, who this rank is, who shares its node and its
 * cores.  MPI errors become codes like all others; only ts_world_abort() ends a run at once. */
#ifndef TS_WORLD_H
#define TS_WORLD_H

#include <mpi.h>

#include "runtime/topology.h"

typedef struct ts_world ts_world;

/** Was this process started by mpirun (or another launcher that says so in the environment), and as
 * which rank?  For what must be known before MPI is started.  Not collective.
 * \param [out] rank  0 if nobody says. */
bool ts_world_launched(int *rank);

/** Start MPI, unless the host program has.  Collective: the first call of every rank.
 * \param [out] out  Owned by the caller: ts_world_destroy(); NULL on failure.
 * \return 0; TS_ERR_MPI (also: this MPI does not let several threads call it); TS_ERR_MEMORY. */
int ts_world_create(ts_world **out);

/** Stop MPI if ts_world_create() started it.  Collective.  Accepts NULL, sets *world to NULL. */
void ts_world_destroy(ts_world **world);

/** End all ranks now with the exit status of `status`.  Not collective.  Does not return. */
_Noreturn void ts_world_abort(const ts_world *world, int status);

MPI_Comm ts_world_comm(const ts_world *world); /**< all ranks; borrowed */
int ts_world_rank(const ts_world *world);
int ts_world_size(const ts_world *world);
int ts_world_local_rank(const ts_world *world); /**< among the ranks of this node */
int ts_world_local_size(const ts_world *world);

/** How many ranks of this node may use a core that this one may use, itself included, and which of
 * them this is.  mpirun gives each rank cores of its own (1 and 0) or the same to all.
 * Collective on the ranks of a node. */
int ts_world_share(const ts_world *world, const ts_topology *topology, int *sharers, int *share);

/** Turn MPI's code into ours, with MPI's own words in the message. */
int tsi_error_from_mpi(int code, const char *call);

/** Return the failure of an MPI call, if it fails, to the caller. */
#define TS_TRY_MPI(call)                                                             \
  do {                                                                               \
    const int ts_try_code_ = (call);                                                 \
    if (ts_try_code_ != MPI_SUCCESS) return tsi_error_from_mpi(ts_try_code_, #call); \
  } while (0)

#endif
