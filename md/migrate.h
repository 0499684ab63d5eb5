/* SPDX-License-Identifier: MIT
 *
 * Atoms move to the ranks that own them. */
#ifndef TS_MIGRATE_H
#define TS_MIGRATE_H

#include "comm/peers.h"
#include "md/system.h"

/** Send every atom to its owner and put those that came in the order of (key, gid).  Collective on
 * the ranks; each process hosts one.
 * \param [in,out] system  n, and the pointers where it grows, are new; has_velocities and the like
 *                         are expected to be the same on all ranks.
 * \param [in,out] key     [n] uint64, owned by the caller: replaced by those of the atoms now here.
 * \param [in]     owner   [n] int32, ranks.
 * \return 0; TS_ERR_ARG, everything as it was; TS_ERR_MEMORY, TS_ERR_MPI, or TS_ERR_SIMULATION if
 *         atoms were lost or changed: the run must end.  The same on all ranks. */
int ts_system_migrate(ts_system *system, const ts_ranks *ranks, uint64_t **key,
                      const int32_t *owner);

#endif
