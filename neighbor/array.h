/* SPDX-License-Identifier: MIT
 *
 * Large arrays that are written once: not zeroed, and on huge pages where the system grants them,
 * since clearing small pages on first touch costs more than filling the arrays. */
#ifndef TS_ARRAY_H
#define TS_ARRAY_H

#include <stddef.h>

/** Allocate count*size bytes on a 64-byte line, contents undefined; release with free().
 * \return 0 or TS_ERR_MEMORY. */
int tsi_array_alloc(size_t count, size_t size, void **out);

#define TSI_ARRAY(pointer, count) \
  tsi_array_alloc((size_t)(count), sizeof *(pointer), (void **)&(pointer))

#endif
