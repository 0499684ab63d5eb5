/* SPDX-License-Identifier: MIT
 *
 * What rank 0 knows, on all ranks. */
#ifndef TS_SHARE_H
#define TS_SHARE_H

#include "comm/peers.h"

/** Replace `size` bytes by those of rank 0.  Collective.  On one rank nothing happens.
 * \return 0 or TS_ERR_MPI. */
int ts_ranks_share(const ts_ranks *ranks, void *data, size_t size);

#endif
