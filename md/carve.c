/* SPDX-License-Identifier: MIT
 *
 * See carve.h. */
#include "md/carve.h"

void *tsi_carve(tsi_carver *c, size_t bytes, starpu_data_handle_t *handle)
{
  bytes = ts_arena_round(bytes ? bytes : 1);
  c->bytes += bytes;
  if (!c->arena) return NULL;
  void *at = ts_arena_take(c->arena, bytes);
  /* in units of 64 bytes: a vector's length is 32 bits */
  if (handle)
    starpu_vector_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)at,
                                (uint32_t)(bytes / TS_ALIGN), TS_ALIGN);
  return at;
}

void tsi_drop(starpu_data_handle_t *handle)
{
  if (*handle) starpu_data_unregister_no_coherency(*handle);
  *handle = NULL;
}
