/* SPDX-License-Identifier: MIT
 *
 * See plan_shape.h. */
#include "md/plan_shape.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/memory.h"

static const double cell_width = 5; /* [Å] about a dozen atoms of water */

/* A grid over the cell, or over the atoms where a direction is not periodic. */
typedef struct lattice {
  const ts_cell *cell;
  double low[3], side[3]; /* fractions */
  int64_t cells[3];
} lattice;

static lattice lattice_of(const ts_plan_atoms *a)
{
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  lattice g = {.cell = &a->cell};
  ts_curve_extent(&a->cell, a->n, (const double(*)[3])a->x, low, high);
  for (int k = 0; k < 3; k++) {
    g.low[k] = a->cell.periodic[k] ? 0 : low[k];
    g.side[k] = a->cell.periodic[k] ? 1 : fmax(high[k] - low[k], 1e-9);
    g.cells[k] = 1;
  }
  return g;
}

static int64_t place(const lattice *g, const double x[3])
{
  double f[3];
  int64_t at = 0;
  ts_cell_fraction(g->cell, x, f);
  for (int k = 0; k < 3; k++) {
    const int64_t c = (int64_t)floor((f[k] - g->low[k]) / g->side[k] * (double)g->cells[k]);
    at = at * g->cells[k] + (c < 0 ? 0 : c < g->cells[k] ? c : g->cells[k] - 1);
  }
  return at;
}

static int count_cells(const lattice *g, const ts_plan_atoms *a, int32_t **count)
{
  *count = NULL;
  TS_TRY(TSI_NEW(*count, g->cells[0] * g->cells[1] * g->cells[2]));
  for (ts_lidx i = 0; i < a->n; i++)
    (*count)[place(g, a->x[i])]++;
  return 0;
}

void tsi_spread_add(ts_plan_spread *s, int count, double value)
{
  s->least = fmin(s->least, value);
  s->most = fmax(s->most, value);
  s->mean += value / count;
}

static double box_volume(const ts_cell *cell, const ts_shard *s)
{
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  double volume = ts_cell_volume(cell);
  ts_curve_extent(cell, s->n, s->x, low, high);
  for (int k = 0; k < 3; k++)
    volume *= high[k] - low[k];
  return volume;
}

int tsi_plan_boxes(const ts_plan_atoms *a, int ranks, const ts_shard *shard, ts_plan_spread *ratio,
                   double *owned)
{
  lattice g = lattice_of(a);
  int32_t *count = NULL;
  double cells = INFINITY, volume = ts_cell_volume(&a->cell);
  for (double width = cell_width; cells > 4.0 * a->n + 4096; width *= 1.1) {
    cells = 1;
    for (int k = 0; k < 3; k++)
      cells *= fmax(1, floor(g.side[k] * a->cell.height[k] / width));
    for (int k = 0; k < 3 && cells <= 4.0 * a->n + 4096; k++)
      g.cells[k] = (int64_t)fmax(1, floor(g.side[k] * a->cell.height[k] / width));
  }
  TS_TRY(count_cells(&g, a, &count));
  for (int k = 0; k < 3; k++)
    volume *= g.side[k] / (double)g.cells[k];
  *ratio = (ts_plan_spread){INFINITY, 0, -INFINITY};
  *owned = 0;
  for (int r = 0; r < ranks; r++) {
    double own = 0;
    for (ts_lidx i = 0; i < shard[r].n; i++)
      own += volume / count[place(&g, shard[r].x[i])];
    *owned += own / ranks;
    tsi_spread_add(ratio, ranks, box_volume(&a->cell, &shard[r]) / own);
  }
  free(count);
  return 0;
}

/* Three factors whose largest is as small as can be, ascending. */
static void factor(int parts, int out[3])
{
  out[0] = out[1] = 1;
  out[2] = parts;
  for (int a = 1; a * a * a <= parts; a++) {
    if (parts % a) continue;
    for (int b = a; a * b * b <= parts; b++)
      if (parts / a % b == 0 && parts / a / b < out[2]) {
        out[0] = a;
        out[1] = b;
        out[2] = parts / a / b;
      }
  }
}

int tsi_plan_grid(const ts_plan_atoms *a, int parts, int grid[3], double *spread)
{
  lattice g = lattice_of(a);
  int32_t *count = NULL, least = INT32_MAX, most = 0;
  int sorted[3], axis[3] = {0, 1, 2};
  double length[3];
  factor(parts, sorted);
  for (int k = 0; k < 3; k++)
    length[k] = g.side[k] * a->cell.height[k];
  for (int k = 0; k < 3; k++) /* axes by length; equal ones in their order */
    for (int m = 2; m > 0; m--)
      if (length[axis[m - 1]] > length[axis[m]] * (1 + 1e-9)) {
        const int swap = axis[m];
        axis[m] = axis[m - 1];
        axis[m - 1] = swap;
      }
  for (int k = 0; k < 3; k++)
    g.cells[axis[k]] = grid[axis[k]] = sorted[k];
  TS_TRY(count_cells(&g, a, &count));
  for (int p = 0; p < parts; p++) {
    least = count[p] < least ? count[p] : least;
    most = count[p] > most ? count[p] : most;
  }
  *spread = most - least;
  free(count);
  return 0;
}
