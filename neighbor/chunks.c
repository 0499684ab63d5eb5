/* SPDX-License-Identifier: MIT
 *
 * Level 2: bisect the receivers at the median of the longest axis of their box, and keep for each
 * half the candidates within reach of its box.  Halves of equal count stay compact whatever the
 * density, and no grid has to be sized, so a box of vacuum, a slab or a drop cost what their atoms
 * cost.  Filtering one list costs its length; over all depths that is some tens of visits per atom,
 * each a fraction of a nanosecond in vector code. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "neighbor/scan.h"
#include "runtime/error.h"
#include "runtime/memory.h"

void tsi_points_free(tsi_points *points)
{
  free(points->x);
  free(points->id);
  *points = (tsi_points){0};
}

int tsi_points_reserve(tsi_points *points, int32_t n)
{
  const size_t capacity = ((size_t)n + 2 * TSI_LANES) / TSI_LANES * TSI_LANES;
  if (points->x && (size_t)points->capacity >= (size_t)n + TSI_LANES) return 0;
  tsi_points_free(points);
  points->x = malloc(3 * capacity * sizeof *points->x);
  points->id = malloc(capacity * sizeof *points->id);
  if (!points->x || !points->id) {
    tsi_points_free(points);
    return tsi_fail(TS_ERR_MEMORY, "no memory for %d candidate points", n);
  }
  points->y = points->x + capacity;
  points->z = points->y + capacity;
  points->capacity = capacity > INT32_MAX ? INT32_MAX : (int32_t)capacity;
  return 0;
}

void tsi_points_pad(tsi_points *points)
{
  for (int32_t k = points->n; k < points->n + TSI_LANES; k++) {
    points->x[k] = points->y[k] = points->z[k] = FLT_MAX; /* squares to infinity */
    points->id[k] = -1;
  }
}

static tsi_box box_of(const tsi_query *query, int32_t n)
{
  tsi_box box;
  for (int k = 0; k < 3; k++)
    box.low[k] = box.high[k] = query[0].p[k];
  for (int32_t i = 1; i < n; i++)
    for (int k = 0; k < 3; k++) {
      const float p = query[i].p[k];
      box.low[k] = p < box.low[k] ? p : box.low[k];
      box.high[k] = p > box.high[k] ? p : box.high[k];
    }
  return box;
}

static float median_of_three(float a, float b, float c)
{
  return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* Reorder so that the first `middle` queries are not above the others along `axis` (Hoare). */
static void split_at(tsi_query *query, int32_t n, int32_t middle, int axis)
{
  int32_t first = 0, last = n - 1;
  while (first < last) {
    const float pivot = median_of_three(query[first].p[axis], query[(first + last) / 2].p[axis],
                                        query[last].p[axis]);
    int32_t i = first, j = last;
    while (i <= j) {
      while (query[i].p[axis] < pivot)
        i++;
      while (query[j].p[axis] > pivot)
        j--;
      if (i > j) break;
      const tsi_query swap = query[i];
      query[i++] = query[j];
      query[j--] = swap;
    }
    if (middle <= j)
      last = j;
    else if (middle >= i)
      first = i;
    else
      return;
  }
}

/* Queries, their box, and the candidates within reach of it. */
typedef struct part {
  tsi_query *query;
  int32_t n;
  tsi_box box;
  const tsi_points *candidates;
} part;

static int bisect(tsi_search *search, const part *whole, int32_t leaf, int depth,
                  tsi_search_fn visit)
{
  if (whole->n <= leaf) return visit(search, whole->query, whole->n, whole->candidates, depth);
  const tsi_box *box = &whole->box;
  int axis = 0;
  for (int k = 1; k < 3; k++)
    if (box->high[k] - box->low[k] > box->high[axis] - box->low[axis]) axis = k;
  const int32_t middle = whole->n / 2;
  split_at(whole->query, whole->n, middle, axis);
  tsi_points *mine = &search->level[depth];
  TS_TRY(tsi_points_reserve(mine, whole->candidates->n));
  for (int half = 0; half < 2; half++) {
    part p = {.query = whole->query + (half ? middle : 0),
              .n = half ? whole->n - middle : middle,
              .candidates = mine};
    p.box = box_of(p.query, p.n);
    search->scan->keep(whole->candidates, &p.box, search->bounds.far, mine);
    TS_TRY(bisect(search, &p, leaf, depth + 1, visit));
  }
  return 0;
}

int tsi_search_bisect(tsi_search *search, tsi_query *queries, int32_t nq,
                      const tsi_points *candidates, int32_t leaf, int depth, tsi_search_fn visit)
{
  const part whole = {queries, nq, box_of(queries, nq), candidates};
  return bisect(search, &whole, leaf, depth, visit);
}
