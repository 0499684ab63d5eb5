/* SPDX-License-Identifier: MIT
 *
 * Aligned memory.  Every array that a kernel sees starts on a 64-byte line, so that vector loads
 * never straddle two lines and two tiles never share one.  `tsi_alloc` serves set-up code;
 * `ts_arena` carves the buffers of a whole epoch from one block, so steady steps allocate nothing
 * and the peak is known before the first step. */
#ifndef TS_MEMORY_H
#define TS_MEMORY_H

#include <stddef.h>

enum { TS_ALIGN = 64 };

/** Allocate count*size bytes, aligned and zeroed, into *out (NULL if count*size is 0).
 * Overflow of the product is refused.  Release with free().
 * Use it as `tsi_alloc(n, sizeof *p, (void **)&p)` or through TSI_NEW.
 * \return 0 or TS_ERR_MEMORY, with the size in the message. */
int tsi_alloc(size_t count, size_t size, void **out);

#define TSI_NEW(pointer, count) tsi_alloc((size_t)(count), sizeof *(pointer), (void **)&(pointer))

typedef struct ts_arena ts_arena;

/** One block of `bytes` bytes.  \return 0 or TS_ERR_MEMORY (the block is touched page by page on
 * first use, so this succeeds late where the system overcommits). */
int ts_arena_create(size_t bytes, ts_arena **out);

/** Next aligned piece, borrowed until the arena is reset or destroyed; NULL when it does not fit.
 */
void *ts_arena_take(ts_arena *arena, size_t bytes);

size_t ts_arena_used(const ts_arena *arena);
size_t ts_arena_size(const ts_arena *arena);
void ts_arena_reset(ts_arena *arena);
void ts_arena_destroy(ts_arena **arena);

/** Round up to the alignment: what a piece of `bytes` bytes costs. */
size_t ts_arena_round(size_t bytes);

#endif
