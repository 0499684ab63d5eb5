/* SPDX-License-Identifier: MIT
 *
 * Blocks of a step's arrays: counted in a first pass, carved from an arena and registered with
 * StarPU in a second that makes the same calls. */
#ifndef TS_CARVE_H
#define TS_CARVE_H

#include <starpu.h>

#include "runtime/memory.h"

typedef struct tsi_carver {
  ts_arena *arena; /**< NULL: count only */
  size_t bytes;
} tsi_carver;

/** The next block; handle NULL: not registered.  \return NULL when only counting. */
void *tsi_carve(tsi_carver *carver, size_t bytes, starpu_data_handle_t *handle);

/** Unregister a handle, if it is one, and clear it. */
void tsi_drop(starpu_data_handle_t *handle);

#endif
