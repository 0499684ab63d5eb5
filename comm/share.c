/* SPDX-License-Identifier: MIT
 *
 * MPI counts with int; nobody shares more than that by way of rank 0. */
#include "comm/share.h"

#include <assert.h>
#include <limits.h>

#include "comm/world.h"

int ts_ranks_share(const ts_ranks *ranks, void *data, size_t size)
{
  assert(size <= INT_MAX);
  if (ranks->comm != MPI_COMM_NULL && ranks->size > 1)
    TS_TRY_MPI(MPI_Bcast(data, (int)size, MPI_BYTE, 0, ranks->comm));
  return 0;
}
