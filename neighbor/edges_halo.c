/* SPDX-License-Identifier: MIT
 *
 * Shrinking the halo to the atoms that edges use.  Candidates of other ranks are more than the
 * senders, so once all stages have their edges the others are dropped and the rest renumbered.
 * Atoms that leave have empty columns: the list of column entries stays as it is, and only offsets
 * and the senders of edges are written anew. */
#include <stdlib.h>

#include "neighbor/edges.h"
#include "runtime/error.h"
#include "runtime/memory.h"

void ts_edges_used(const ts_edges *edges, bool *used)
{
  for (ts_lidx j = 0; j < edges->nsenders; j++)
    if (edges->column[j + 1] > edges->column[j]) used[j] = true;
}

static int check_map(const ts_edges *e, const ts_lidx *to, ts_lidx nsenders)
{
  ts_lidx last = e->n - 1;
  if (nsenders < e->n)
    return tsi_fail(TS_ERR_ARG, "%d senders: expected at least the %d receivers", nsenders, e->n);
  for (ts_lidx j = 0; j < e->nsenders; j++) {
    const bool leaves = to[j] == -1;
    if (j < e->n ? to[j] != j : !leaves && (to[j] <= last || to[j] >= nsenders))
      return tsi_fail(
          TS_ERR_ARG,
          "new index %d of sender %d: expected ascending numbers below %d, those of the "
          "%d receivers unchanged",
          to[j], j, nsenders, e->n);
    if (leaves && e->column[j + 1] > e->column[j])
      return tsi_fail(TS_ERR_ARG, "sender %d is to leave, but has edges", j);
    if (!leaves && j >= e->n) last = to[j];
  }
  return 0;
}

int ts_edges_renumber(ts_edges *edges, const ts_lidx *to, ts_lidx nsenders)
{
  int64_t *column = NULL;
  TS_TRY(check_map(edges, to, nsenders));
  TS_TRY(TSI_NEW(column, (size_t)nsenders + 1));
  for (ts_lidx j = 0; j < edges->nsenders; j++)
    if (to[j] >= 0) column[to[j] + 1] = edges->column[j + 1] - edges->column[j];
  for (ts_lidx j = 0; j < nsenders; j++)
    column[j + 1] += column[j];
  for (int64_t k = 0; k < edges->count; k++)
    edges->sender[k] = to[edges->sender[k]];
  free(edges->column);
  edges->column = column;
  edges->nsenders = nsenders;
  return 0;
}
