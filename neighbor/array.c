/* SPDX-License-Identifier: MIT
 *
 * Large arrays. */
#include "neighbor/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/error.h"
#include "runtime/memory.h"

enum { HUGE_PAGE = 1 << 21 };

int tsi_array_alloc(size_t count, size_t size, void **out)
{
  size_t bytes;
  *out = NULL;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - HUGE_PAGE)
    return tsi_fail(TS_ERR_MEMORY, "%zu elements of %zu bytes exceed the address space", count,
                    size);
  const size_t line = bytes >= 4 * HUGE_PAGE ? HUGE_PAGE : TS_ALIGN;
  bytes = (bytes + line - 1) / line * line;
  *out = aligned_alloc(line, bytes ? bytes : line);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "%zu bytes of memory cannot be had", bytes);
#ifdef MADV_HUGEPAGE
  if (line == HUGE_PAGE) madvise(*out, bytes, MADV_HUGEPAGE); /* a wish; either way it works */
#endif
  return 0;
}
