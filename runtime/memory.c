/* SPDX-License-Identifier: MIT
 *
 * Aligned memory and the arena. */
#include "runtime/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

struct ts_arena {
  char *block; /* aligned */
  size_t size, used;
};

/* Bytes rounded up to the alignment; 0 when that overflows. */
size_t ts_arena_round(size_t bytes)
{
  return (bytes + (TS_ALIGN - 1)) & ~(size_t)(TS_ALIGN - 1);
}

static int allocate(size_t bytes, void **out)
{
  const size_t rounded = ts_arena_round(bytes);
  *out = rounded >= bytes ? aligned_alloc(TS_ALIGN, rounded) : NULL;
  return *out ? 0 : tsi_fail(TS_ERR_MEMORY, "%zu bytes of memory cannot be had", bytes);
}

int tsi_alloc(size_t count, size_t size, void **out)
{
  *out = NULL;
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX)
    return tsi_fail(TS_ERR_MEMORY, "%zu elements of %zu bytes exceed the address space", count,
                    size);
  if (bytes == 0) return 0;
  if (allocate(bytes, out)) return TS_ERR_MEMORY;
  memset(*out, 0, bytes);
  return 0;
}

int ts_arena_create(size_t bytes, ts_arena **out)
{
  ts_arena *arena = NULL;
  *out = NULL;
  if (TSI_NEW(arena, 1)) return TS_ERR_MEMORY;
  if (bytes > 0 && allocate(bytes, (void **)&arena->block)) {
    free(arena);
    return TS_ERR_MEMORY;
  }
  arena->size = ts_arena_round(bytes);
  *out = arena;
  return 0;
}

void *ts_arena_take(ts_arena *arena, size_t bytes)
{
  const size_t rounded = ts_arena_round(bytes);
  if (rounded < bytes || rounded > arena->size - arena->used) return NULL;
  void *piece = arena->block + arena->used;
  arena->used += rounded;
  return piece;
}

size_t ts_arena_used(const ts_arena *arena)
{
  return arena->used;
}

size_t ts_arena_size(const ts_arena *arena)
{
  return arena->size;
}

void ts_arena_reset(ts_arena *arena)
{
  arena->used = 0;
}

void ts_arena_destroy(ts_arena **arena)
{
  if (!*arena) return;
  free((*arena)->block);
  free(*arena);
  *arena = NULL;
}
