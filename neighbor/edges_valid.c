/* SPDX-License-Identifier: MIT
 *
 * The full validator of an edge set.  Symmetry is checked by walking row i and column i together:
 * if every edge has its reverse, the senders of row i, sorted by (gid, image), are the receivers of
 * column i sorted by (gid, image) with the images negated, so within one neighbour the images of
 * the column run backwards. */
#include <stdlib.h>

#include "neighbor/edges.h"
#include "runtime/error.h"
#include "runtime/memory.h"

static bool wrong(const char *what, int64_t where)
{
  tsi_fail(TS_ERR_ARG, "edge set: %s (at %lld)", what, (long long)where);
  return false;
}

static int compare_image(const ts_edges *e, int64_t a, int64_t b)
{
  for (int k = 0; k < 3; k++) {
    const int d = e->shift_image[e->shift[a]][k] - e->shift_image[e->shift[b]][k];
    if (d) return d;
  }
  return 0;
}

static bool check_rows(const ts_edges *e, const ts_gidx *gid)
{
  if (e->row[0] != 0 || e->row[e->n] != e->count) return wrong("row offsets do not span it", e->n);
  if (e->nshift < 1 || e->shift_image[0][0] || e->shift_image[0][1] || e->shift_image[0][2])
    return wrong("shift 0 is not zero", 0);
  for (ts_lidx i = 0; i < e->n; i++) {
    if (e->row[i + 1] < e->row[i] || e->row[i + 1] > e->count)
      return wrong("row offsets descend", i);
    for (int64_t k = e->row[i]; k < e->row[i + 1]; k++) {
      const ts_lidx j = e->sender[k];
      if (e->receiver[k] != i) return wrong("receiver is not the row's", k);
      if (j < 0 || j >= e->nsenders) return wrong("sender out of range", k);
      if (e->shift[k] < 0 || e->shift[k] >= e->nshift) return wrong("shift out of range", k);
      if (i == j && e->shift[k] == 0) return wrong("an atom is its own neighbour", k);
      if (k == e->row[i]) continue;
      const ts_gidx before = gid[e->sender[k - 1]];
      if (before > gid[j] || (before == gid[j] && compare_image(e, k - 1, k) >= 0))
        return wrong("a row is not sorted by (sender id, image)", k);
    }
  }
  return true;
}

static bool check_columns(const ts_edges *e, const ts_gidx *gid)
{
  if (e->column[0] != 0 || e->column[e->nsenders] != e->count)
    return wrong("column offsets do not span it", e->nsenders);
  for (ts_lidx j = 0; j < e->nsenders; j++) {
    if (e->column[j + 1] < e->column[j] || e->column[j + 1] > e->count)
      return wrong("column offsets descend", j);
    for (int64_t k = e->column[j]; k < e->column[j + 1]; k++) {
      const int64_t edge = e->column_edge[k];
      if (edge < 0 || edge >= e->count) return wrong("edge id out of range", k);
      if (e->sender[edge] != j) return wrong("an edge is in another sender's column", k);
      if (k == e->column[j]) continue; /* strict order: no edge twice, so each once */
      const int64_t last = e->column_edge[k - 1];
      const ts_gidx a = gid[e->receiver[last]], b = gid[e->receiver[edge]];
      if (a > b || (a == b && compare_image(e, last, edge) >= 0))
        return wrong("a column is not sorted by (receiver id, image)", k);
    }
  }
  return true;
}

static bool opposite(const ts_edges *e, int64_t a, int64_t b)
{
  for (int k = 0; k < 3; k++)
    if (e->shift_image[e->shift[a]][k] != -e->shift_image[e->shift[b]][k]) return false;
  return true;
}

/* Each edge between receivers; the others of a row come from the halo. */
static bool check_symmetry(const ts_edges *e)
{
  for (ts_lidx i = 0; i < e->n; i++) {
    const int64_t end = e->row[i + 1];
    int64_t at = e->column[i];
    for (int64_t run = e->row[i], stop; run < end; run = stop) { /* images of one sender */
      for (stop = run + 1; stop < end && e->sender[stop] == e->sender[run];)
        stop++;
      if (e->sender[run] >= e->n) continue;
      if (e->column[i + 1] - at < stop - run) return wrong("an edge has no reverse", run);
      for (int64_t k = run; k < stop; k++) {
        const int64_t back = e->column_edge[at + (stop - 1 - k)];
        if (e->receiver[back] != e->sender[k] || !opposite(e, k, back))
          return wrong("an edge has no reverse", k);
      }
      at += stop - run;
    }
    if (at != e->column[i + 1]) return wrong("a column has an edge without reverse", i);
  }
  return true;
}

bool ts_edges_is_valid(const ts_edges *edges, const ts_gidx *gid, bool symmetric)
{
  return check_rows(edges, gid) && check_columns(edges, gid) &&
         (!symmetric || check_symmetry(edges));
}
