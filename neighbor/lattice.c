/* SPDX-License-Identifier: MIT
 *
 * Reduction by shortening: take from each vector the whole multiples of another, or add both others
 * with signs, as long as it gets shorter.  Vectors are always rebuilt from their whole numbers, so
 * rounding does not accumulate; an end that is not quite the shortest costs time, not edges. */
#include "neighbor/lattice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

static double dot(const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Replace vector k by k + p l + q m if that is shorter. */
static bool shorten(const ts_cell *cell, tsi_lattice *lattice, int k, int l, double p, int m,
                    double q)
{
  int32_t u[3];
  double b[3];
  for (int c = 0; c < 3; c++) {
    const double value = lattice->u[k][c] + p * lattice->u[l][c] + q * lattice->u[m][c];
    if (!(fabs(value) < 1e9)) return false;
    u[c] = (int32_t)value;
  }
  ts_cell_shift(cell, u, b);
  double *old = lattice->box.h[k];
  if (!(dot(b, b) < dot(old, old) * (1 - 1e-9))) return false;
  memcpy(lattice->u[k], u, sizeof u);
  memcpy(old, b, sizeof b);
  return true;
}

static bool shorten_any(const ts_cell *cell, tsi_lattice *lattice)
{
  bool changed = false;
  for (int k = 0; k < 3; k++) {
    const int l = (k + 1) % 3, m = (k + 2) % 3;
    double(*b)[3] = lattice->box.h;
    if (!cell->periodic[k]) continue;
    if (cell->periodic[l])
      changed |= shorten(cell, lattice, k, l, -round(dot(b[k], b[l]) / dot(b[l], b[l])), m, 0);
    if (cell->periodic[m])
      changed |= shorten(cell, lattice, k, l, 0, m, -round(dot(b[k], b[m]) / dot(b[m], b[m])));
    for (int s = 0; s < 4 && cell->periodic[l] && cell->periodic[m]; s++)
      changed |= shorten(cell, lattice, k, l, s & 1 ? 1 : -1, m, s & 2 ? 1 : -1);
  }
  return changed;
}

int tsi_lattice_reduce(const ts_cell *cell, tsi_lattice *out)
{
  memset(out, 0, sizeof *out);
  for (int k = 0; k < 3; k++) {
    if (!cell->periodic[k]) continue;
    out->u[k][k] = 1;
    memcpy(out->box.h[k], cell->h[k], sizeof cell->h[k]);
  }
  for (int pass = 0; pass < 1000 && shorten_any(cell, out); pass++) {
  }
  double h[3][3];
  memcpy(h, out->box.h, sizeof h);
  return ts_cell_init(&out->box, (const double(*)[3])h, cell->periodic);
}
