/* SPDX-License-Identifier: MIT
 *
 * Small types that every folder shares.  Two index types are named by meaning: a local index counts
 * atoms (or edges' ends) within one rank, a global id names an atom of the whole system for as long
 * as the run lives.  Edge counts and offsets are int64_t, byte counts size_t. */
#ifndef TS_TYPES_H
#define TS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t ts_lidx; /**< index of an atom held by this rank */
typedef int64_t ts_gidx; /**< global atom id: 0-based row of the structure file */

/** A place in a short list of blocks (tiles, messages): which of them, and which row of it. */
enum { TS_SLOT_BITS = 20, TS_SLOT_ROWS = 1 << TS_SLOT_BITS, TS_SLOT_BLOCKS = 1 << 11 };
#define TS_SLOT(block, row) ((int32_t)(block) << TS_SLOT_BITS | (int32_t)(row))

/** What carries data handles between ranks (runtime/transfers.h). */
typedef enum ts_transport { TS_TRANSPORT_DIRECT, TS_TRANSPORT_STARPU } ts_transport;

#endif
