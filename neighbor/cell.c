/* SPDX-License-Identifier: MIT
 *
 * Cells and wrapping.  Wrapping works on fractions and repeats until the rounded position is
 * inside: one subtraction of many periods may land a rounding error outside.  An atom less than a
 * rounding below a face has no place on either side (one period up its fraction rounds to 1, and
 * back again); it is on the face: put there exactly where that makes its fraction 0, else left
 * alone.  So wrapping twice is wrapping once. */
#include "neighbor/cell.h"

#include <float.h>
#include <math.h>

#include "runtime/error.h"

/* A unit volume below this spans nothing that double precision can invert usefully. */
static const double flattest = 1e-10;

static double dot(const double a[3], const double b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double c[3])
{
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

static double length(const double a[3])
{
  return hypot(hypot(a[0], a[1]), a[2]);
}

/* The axis that the given vector follows least, made perpendicular to it and of length 1. */
static void perpendicular(const double a[3], double out[3])
{
  int axis = 0;
  for (int k = 1; k < 3; k++)
    if (fabs(a[k]) < fabs(a[axis])) axis = k;
  const double unit[3] = {axis == 0, axis == 1, axis == 2};
  cross(a, unit, out);
  const double size = length(out);
  for (int k = 0; k < 3; k++)
    out[k] /= size;
}

/* Give rows of zeros a unit vector perpendicular to the others. */
static void complete_rows(double h[3][3])
{
  for (int k = 0; k < 3; k++) {
    if (length(h[k]) > 0) continue;
    const double *p = h[(k + 1) % 3], *q = h[(k + 2) % 3];
    const bool has_p = length(p) > 0, has_q = length(q) > 0;
    if (has_p && has_q) {
      cross(p, q, h[k]);
      const double size = length(h[k]);
      for (int m = 0; m < 3 && size > 0; m++)
        h[k][m] /= size;
    } else if (has_p || has_q) {
      perpendicular(has_p ? p : q, h[k]);
    } else {
      h[k][k] = 1;
    }
  }
}

static int check_rows(const double h[3][3], const bool periodic[3])
{
  static const char *const name[3] = {"a", "b", "c"};
  for (int k = 0; k < 3; k++) {
    for (int m = 0; m < 3; m++)
      if (!isfinite(h[k][m]))
        return tsi_fail(TS_ERR_INPUT, "cell vector %s has a component that is not finite: %g",
                        name[k], h[k][m]);
    const double size = length(h[k]);
    if (size == 0 && periodic[k])
      return tsi_fail(TS_ERR_INPUT, "cell vector %s is zero, but the cell is periodic along it",
                      name[k]);
    if (size != 0 && !(size > 1e-30 && size < 1e30))
      return tsi_fail(TS_ERR_INPUT, "cell vector %s has a length of %g Å", name[k], size);
  }
  return 0;
}

int ts_cell_init(ts_cell *cell, const double h[3][3], const bool periodic[3])
{
  static const double isolated[3][3];
  for (int k = 0; k < 3; k++) {
    cell->periodic[k] = periodic ? periodic[k] : h != NULL;
    for (int m = 0; m < 3; m++)
      cell->h[k][m] = h ? h[k][m] : isolated[k][m];
  }
  TS_TRY(check_rows((const double(*)[3])cell->h, cell->periodic));
  complete_rows(cell->h);
  /* on unit vectors, so that nothing overflows and flatness has no unit */
  double unit[3][3], size[3], normal[3][3];
  for (int k = 0; k < 3; k++) {
    size[k] = length(cell->h[k]);
    for (int m = 0; m < 3; m++)
      unit[k][m] = size[k] > 0 ? cell->h[k][m] / size[k] : 0;
  }
  for (int k = 0; k < 3; k++)
    cross(unit[(k + 1) % 3], unit[(k + 2) % 3], normal[k]);
  const double volume = dot(unit[0], normal[0]);
  if (!(fabs(volume) > flattest))
    return tsi_fail(TS_ERR_INPUT,
                    "cell vectors span no volume: a = (%g %g %g), b = (%g %g %g), c = (%g %g %g) Å",
                    cell->h[0][0], cell->h[0][1], cell->h[0][2], cell->h[1][0], cell->h[1][1],
                    cell->h[1][2], cell->h[2][0], cell->h[2][1], cell->h[2][2]);
  for (int k = 0; k < 3; k++) {
    cell->height[k] = size[k] * fabs(volume) / length(normal[k]);
    for (int m = 0; m < 3; m++)
      cell->inv[m][k] = normal[k][m] / (volume * size[k]);
  }
  return 0;
}

double ts_cell_volume(const ts_cell *cell)
{
  double normal[3];
  cross(cell->h[1], cell->h[2], normal);
  return fabs(dot(cell->h[0], normal));
}

/* Fractions this little below zero are on the face, see the top. */
static const double on_face = 0x1p-50;

/* Periods that the atom is outside; true if there are any. */
static bool periods_outside(const ts_cell *cell, const double x[3], double f[3], double n[3])
{
  ts_cell_fraction(cell, x, f);
  for (int k = 0; k < 3; k++)
    n[k] = cell->periodic[k] && (f[k] < -on_face || f[k] >= 1) ? floor(f[k]) : 0;
  return n[0] != 0 || n[1] != 0 || n[2] != 0;
}

/* Put an atom that is on a face to rounding, at fractions f, exactly there, if that can be had. */
static void settle_on_face(const ts_cell *cell, const double f[3], double x[3])
{
  double y[3] = {x[0], x[1], x[2]}, g[3];
  for (int k = 0; k < 3; k++)
    for (int m = 0; m < 3 && cell->periodic[k] && f[k] < 0; m++)
      y[m] -= f[k] * cell->h[k][m];
  ts_cell_fraction(cell, y, g);
  for (int k = 0; k < 3; k++)
    if (cell->periodic[k] && !(g[k] >= 0 && g[k] < 1)) return;
  for (int m = 0; m < 3; m++)
    x[m] = y[m];
}

static int fail_atom(ts_lidx i, const double x[3], const char *what)
{
  return tsi_fail(TS_ERR_SIMULATION, "atom %d at (%g, %g, %g) Å: %s", i + 1, x[0], x[1], x[2],
                  what);
}

static int wrap_one(const ts_cell *cell, ts_lidx i, double x[3], int32_t image[3])
{
  double f[3], n[3], total[3] = {image[0], image[1], image[2]}, y[3] = {x[0], x[1], x[2]};
  if (!isfinite(x[0]) || !isfinite(x[1]) || !isfinite(x[2]))
    return fail_atom(i, x, "the position is not finite");
  for (int pass = 0; pass < 8 && periods_outside(cell, y, f, n); pass++)
    for (int k = 0; k < 3; k++) {
      total[k] += n[k];
      for (int m = 0; m < 3; m++)
        y[m] -= n[k] * cell->h[k][m];
    }
  settle_on_face(cell, f, y);
  for (int k = 0; k < 3; k++)
    if (!(fabs(total[k]) <= INT32_MAX))
      return fail_atom(i, x, "more than 2147483647 periods outside the cell");
  for (int k = 0; k < 3; k++) {
    x[k] = y[k];
    image[k] = (int32_t)total[k];
  }
  return 0;
}

int ts_cell_wrap(const ts_cell *cell, ts_lidx n, double (*x)[3], int32_t (*image)[3])
{
  for (ts_lidx i = 0; i < n; i++)
    TS_TRY(wrap_one(cell, i, x[i], image[i]));
  return 0;
}
