/* SPDX-License-Identifier: MIT
 *
 * Level 1, schemes `box` and `boxes`.  A shard is cut into slices of equal count (one for `box`).
 * For each a rank publishes its query box, around the slice's atoms and within reach of them, and
 * its candidate boxes: for each shift by a period up or down along each axis, the box of those
 * atoms whose image falls within reach of the cell; shifts without atoms are left out.  The asker
 * needs (slice, shift) if that candidate box meets one of its query boxes.  One period up and down
 * suffice however thin the cell: where more are within reach, so is a nearer one.
 *
 * A row is query boxes, then candidate boxes, then zeros: 28 extents of 64 bytes per slice. */
#include <math.h>
#include <string.h>

#include "neighbor/level1_impl.h"

enum { SHIFTS = 27 };

typedef struct extent {
  double low[3], high[3]; /* fractions; shifted */
  int64_t n;              /* atoms inside; 0: no extent */
  int32_t slice;
  int8_t shift[4]; /* -1, 0, 1 along each axis */
} extent;

static int slices(const ts_level1_params *params)
{
  return params->scheme == TS_LEVEL1_BOXES ? params->boxes : 1;
}

static size_t row_size(const ts_level1_params *params)
{
  return (size_t)slices(params) * (1 + SHIFTS) * sizeof(extent);
}

/* First atom of a slice; the end of the last for slice = count. */
static ts_lidx slice_start(ts_lidx n, int slice, int count)
{
  return (ts_lidx)((int64_t)n * slice / count);
}

static void include(extent *e, const double t[3], const int shift[3])
{
  for (int k = 0; k < 3; k++) {
    const double place = t[k] + shift[k];
    e->low[k] = e->n == 0 ? place : fmin(e->low[k], place);
    e->high[k] = e->n == 0 ? place : fmax(e->high[k], place);
  }
  e->n++;
}

/* The shifts by which an atom's image falls within reach of the cell, along one axis: none, and up
 * or down if it is near that face. */
static int shifts_of(const tsi_space *space, int axis, double t, int shift[3])
{
  int count = 0;
  shift[count++] = 0;
  if (space->box.periodic[axis] && t <= space->reach[axis]) shift[count++] = 1;
  if (space->box.periodic[axis] && t >= 1 - space->reach[axis]) shift[count++] = -1;
  return count;
}

static void include_images(const tsi_space *space, const double t[3], extent candidate[SHIFTS])
{
  int along[3][3], count[3];
  for (int k = 0; k < 3; k++)
    count[k] = shifts_of(space, k, t[k], along[k]);
  for (int a = 0; a < count[0]; a++)
    for (int b = 0; b < count[1]; b++)
      for (int c = 0; c < count[2]; c++) {
        const int shift[3] = {along[0][a], along[1][b], along[2][c]};
        include(&candidate[(shift[0] + 1) * 9 + (shift[1] + 1) * 3 + shift[2] + 1], t, shift);
      }
}

static void publish(const tsi_space *space, const ts_level1_params *params, ts_lidx n,
                    const double (*t)[3], void *row)
{
  static const int none[3];
  const int count = slices(params);
  extent *query = row, *out = query + count;
  for (int s = 0; s < count; s++) {
    extent candidate[SHIFTS];
    memset(candidate, 0, sizeof candidate);
    for (ts_lidx i = slice_start(n, s, count); i < slice_start(n, s + 1, count); i++) {
      include(&query[s], t[i], none);
      include_images(space, t[i], candidate);
    }
    for (int k = 0; k < 3; k++) {
      query[s].low[k] -= space->reach[k];
      query[s].high[k] += space->reach[k];
    }
    for (int c = 0; c < SHIFTS; c++) {
      if (candidate[c].n == 0) continue;
      *out = candidate[c];
      out->slice = s;
      out->shift[0] = (int8_t)(c / 9 - 1);
      out->shift[1] = (int8_t)(c / 3 % 3 - 1);
      out->shift[2] = (int8_t)(c % 3 - 1);
      out++;
    }
  }
}

/* The candidate boxes of a row: from the first to before *end. */
static const extent *candidates(const ts_level1_params *params, const void *row, const extent **end)
{
  const int count = slices(params);
  const extent *first = (const extent *)row + count;
  const extent *last = first + count * SHIFTS;
  for (*end = first; *end < last && (*end)->n > 0;)
    (*end)++;
  return first;
}

static bool meet(const extent *a, const extent *b)
{
  for (int k = 0; k < 3; k++)
    if (a->low[k] > b->high[k] || a->high[k] < b->low[k]) return false;
  return true;
}

/* A box around all query boxes of the asker; n = 0 if it has none. */
static extent around(const extent *query, int count)
{
  extent all = {.n = 0};
  for (int s = 0; s < count; s++) {
    if (query[s].n == 0) continue;
    for (int k = 0; k < 3; k++) {
      all.low[k] = all.n == 0 ? query[s].low[k] : fmin(all.low[k], query[s].low[k]);
      all.high[k] = all.n == 0 ? query[s].high[k] : fmax(all.high[k], query[s].high[k]);
    }
    all.n += query[s].n;
  }
  return all;
}

static bool meets_any(const extent *query, int count, const extent *e)
{
  for (int s = 0; s < count; s++)
    if (query[s].n > 0 && meet(&query[s], e)) return true;
  return false;
}

static bool asks(const tsi_space *space, const ts_level1_params *params, const void *asker,
                 const void *source, ts_level1_stats *stats)
{
  (void)space;
  const int count = slices(params);
  const extent *query = asker, *own = source, *end, all = around(query, count);
  bool some = false;
  if (all.n == 0) return false;
  for (const extent *c = candidates(params, source, &end); c < end; c++) {
    if (!meet(&all, c) || (count > 1 && !meets_any(query, count, c))) continue;
    if (!stats) return true;
    some = true;
    stats->full += own[c->slice].n;
    stats->trim += c->n;
  }
  if (some) stats->sources++;
  return some;
}

static bool holds(const extent *e, const double p[3])
{
  for (int k = 0; k < 3; k++)
    if (p[k] < e->low[k] || p[k] > e->high[k]) return false;
  return true;
}

static bool held_by_any(const extent *const *query, int count, const double p[3])
{
  for (int s = 0; s < count; s++)
    if (holds(query[s], p)) return true;
  return false;
}

static void clip(const tsi_space *space, const ts_level1_params *params, const void *asker,
                 const void *source, ts_lidx n, const double (*t)[3], uint8_t *images)
{
  (void)space;
  const int count = slices(params);
  const extent *query = asker, *end;
  for (const extent *c = candidates(params, source, &end); c < end; c++) {
    const extent *met[TS_LEVEL1_MOST_BOXES];
    int nmet = 0;
    for (int s = 0; s < count; s++)
      if (query[s].n > 0 && meet(&query[s], c)) met[nmet++] = &query[s];
    if (nmet == 0) continue;
    const ts_lidx last = slice_start(n, c->slice + 1, count);
    for (ts_lidx i = slice_start(n, c->slice, count); i < last; i++) {
      const double p[3] = {t[i][0] + c->shift[0], t[i][1] + c->shift[1], t[i][2] + c->shift[2]};
      images[i] = (uint8_t)(images[i] + held_by_any(met, nmet, p));
    }
  }
}

const tsi_level1_ops tsi_level1_boxes = {
    .row_size = row_size, .publish = publish, .asks = asks, .clip = clip};
