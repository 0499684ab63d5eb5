/* SPDX-License-Identifier: MIT
 *
 * A stable sort of indices by 64-bit keys: radix, so linear, and the same on every machine. */
#ifndef TS_SORT_H
#define TS_SORT_H

#include "runtime/types.h"

/** Reorder `order` [n] so that key[order[k]] ascends; equal keys keep their order.  Not collective.
 * \return 0 or TS_ERR_MEMORY. */
int tsi_sort_order(ts_lidx n, const uint64_t *key, ts_lidx *order);

#endif
