/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: (extended) XYZ.  Whatever is accepted is a sound system whose atoms lie in the cell.
 *
 * fuzz-sources: md/xyz.c md/xyz_header.c md/system.c md/elements.c neighbor/cell.c
 * fuzz-sources: runtime/number.c runtime/memory.c runtime/log.c runtime/error.c
 * fuzz-libs: -lm */
#include "md/xyz.h"
#include "runtime/error.h"
#include "runtime/log.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  ts_system *s = NULL;
  FILE *stream = size ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
  if (!stream) return 0;
  ts_log_set_level(TS_LOG_ERROR);
  const int status = tsi_xyz_read_stream(stream, (int64_t)size, "fuzz.xyz", &s);
  fclose(stream);
  if (status != 0 && status != TS_ERR_INPUT) abort();
  if ((status == 0) != (s != NULL)) abort();
  if (!s) return 0;
  if (ts_system_check(s) || s->natoms < 1 || s->multiplicity < 1) abort();
  for (ts_lidx i = 0; i < s->n; ++i) {
    double f[3];
    ts_cell_fraction(&s->cell, s->x[i], f);
    for (int k = 0; k < 3; ++k) /* to rounding: a cell may be skewed a million times */
      if (s->cell.periodic[k] && !(f[k] > -0.5 && f[k] < 1.5)) abort();
  }
  ts_system_destroy(&s);
  return 0;
}
