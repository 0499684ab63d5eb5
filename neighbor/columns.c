/* SPDX-License-Identifier: MIT
 *
 * Rows to columns by counting.  Receivers are taken in the order of their ids, and a row holds the
 * images of one sender in order, so every column comes out sorted by (receiver's gid, image). */
#include "neighbor/columns.h"

#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/memory.h"

int tsi_columns_make(const ts_lidx *by_gid, ts_edges *e)
{
  TS_TRY(TSI_NEW(e->column, (size_t)e->n + 1));
  TS_TRY(TSI_NEW(e->column_edge, e->count));
  for (int64_t k = 0; k < e->count; k++)
    e->column[e->sender[k] + 1]++;
  for (ts_lidx j = 0; j < e->n; j++)
    e->column[j + 1] += e->column[j];
  int64_t *end = NULL;
  TS_TRY(TSI_NEW(end, e->n));
  for (ts_lidx j = 0; j < e->n; j++)
    end[j] = e->column[j];
  for (ts_lidx k = 0; k < e->n; k++) {
    const ts_lidx i = by_gid[k];
    for (int64_t edge = e->row[i]; edge < e->row[i + 1]; edge++)
      e->column_edge[end[e->sender[edge]]++] = edge;
  }
  free(end);
  return 0;
}
