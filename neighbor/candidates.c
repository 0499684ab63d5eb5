/* SPDX-License-Identifier: MIT
 *
 * The candidates of one rank: its own atoms, those of the halo, and their images, as far as they
 * lie within reach of the box of all receivers.  A cell thinner than the cutoff gives many images
 * of an atom, a large one few more points than atoms.  How many images are needed follows from the
 * heights of the cell and from where the atoms are, at every build anew, never from a fixed count
 * of shells. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "neighbor/array.h"
#include "neighbor/lattice.h"
#include "neighbor/search.h"
#include "neighbor/sort.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { MAX_CODES = 1 << 27 };        /* images told apart, in all */
static const double furthest = 1e15; /* [Å] squares of floats stay finite */

/* One image of the home cell, in both bases. */
typedef struct image_entry {
  int32_t code;
  int32_t m[3];   /* along the short vectors */
  double move[3]; /* [Å] */
} image_entry;

/* Level 1 at work. */
typedef struct frame {
  const ts_cell *cell;
  tsi_lattice lattice;
  ts_lidx n, nsenders;      /* receivers come first */
  double (*y)[3];           /* [nsenders] positions in the short cell */
  int32_t (*home)[3];       /* [nsenders] y = x + home h */
  double low[3], high[3];   /* box of the receivers [Å] */
  double flow[3], fhigh[3]; /* and in fractions of the short cell */
  double span[3];           /* furthest that a sender's fraction is from a receiver's */
  int32_t most_home[3];     /* largest |home| */
  double size;              /* largest coordinate that entered a sum [Å] */
  double upper;             /* reach, with room for rounding [Å] */
  double freach[3];         /* the same in fractions */
  image_entry *image;       /* sorted by code */
  int32_t nimage, zero;     /* image[zero] is the atom itself */
} frame;

static int fail_atom(ts_gidx gid, const double x[3], const char *what)
{
  return tsi_fail(TS_ERR_SIMULATION, "atom %lld at (%g, %g, %g) Å: %s", (long long)gid + 1, x[0],
                  x[1], x[2], what);
}

static int place_atom(frame *f, const double x[3], ts_gidx gid, double y[3], int32_t home[3])
{
  double t[3], shift[3];
  for (int k = 0; k < 3; k++)
    if (!(fabs(x[k]) <= furthest)) return fail_atom(gid, x, "not finite, or beyond 1e15 Å");
  ts_cell_fraction(&f->lattice.box, x, t);
  for (int l = 0; l < 3; l++) {
    double whole = 0;
    for (int k = 0; k < 3; k++)
      whole -= f->lattice.box.periodic[k] ? floor(t[k]) * f->lattice.u[k][l] : 0;
    if (!(fabs(whole) <= INT16_MAX / 4))
      return fail_atom(gid, x, "too many periods outside the cell to be searched; wrap it first");
    home[l] = (int32_t)whole;
    if (abs(home[l]) > f->most_home[l]) f->most_home[l] = abs(home[l]);
  }
  ts_cell_shift(f->cell, home, shift);
  for (int k = 0; k < 3; k++) {
    y[k] = x[k] + shift[k];
    f->size = fmax(f->size, fmax(fabs(x[k]), fabs(y[k])));
  }
  return 0;
}

static void widen(const double p[3], double low[3], double high[3])
{
  for (int k = 0; k < 3; k++) {
    low[k] = fmin(low[k], p[k]);
    high[k] = fmax(high[k], p[k]);
  }
}

static void start_box(bool empty, double low[3], double high[3])
{
  for (int k = 0; k < 3; k++) {
    low[k] = empty ? 0 : INFINITY;
    high[k] = empty ? 0 : -INFINITY;
  }
}

static int place_atoms(frame *f, const double (*x)[3], const ts_gidx *gid)
{
  double low[3], high[3]; /* fractions of all senders */
  start_box(f->n == 0, f->low, f->high);
  start_box(f->n == 0, f->flow, f->fhigh);
  start_box(f->nsenders == 0, low, high);
  TS_TRY(TSI_ARRAY(f->y, f->nsenders));
  TS_TRY(TSI_ARRAY(f->home, f->nsenders));
  for (ts_lidx i = 0; i < f->nsenders; i++) {
    double t[3];
    TS_TRY(place_atom(f, x[i], gid[i], f->y[i], f->home[i]));
    ts_cell_fraction(&f->lattice.box, f->y[i], t);
    widen(t, low, high);
    if (i >= f->n) continue;
    widen(f->y[i], f->low, f->high);
    widen(t, f->flow, f->fhigh);
  }
  for (int k = 0; k < 3; k++)
    f->span[k] = fmax(f->fhigh[k] - low[k], high[k] - f->flow[k]);
  return 0;
}

/* Reach with room for rounding: `size` bounds every term, so 2^-48 size is some thirty roundings.
 */
static void set_reach(frame *f, double upper)
{
  for (int l = 0; l < 3; l++)
    f->size += (2.0 * f->most_home[l] + 2) *
               (fabs(f->cell->h[l][0]) + fabs(f->cell->h[l][1]) + fabs(f->cell->h[l][2]));
  const ts_cell *box = &f->lattice.box;
  f->upper = upper * (1 + 1e-6) + ldexp(f->size, -48);
  for (int k = 0; k < 3; k++)
    f->freach[k] =
        f->upper / box->height[k] +
        ldexp(f->size, -48) * (fabs(box->inv[0][k]) + fabs(box->inv[1][k]) + fabs(box->inv[2][k]));
}

static int by_code(const void *a, const void *b)
{
  const int32_t ca = ((const image_entry *)a)->code, cb = ((const image_entry *)b)->code;
  return (ca > cb) - (ca < cb);
}

/* Numbers for images: mixed radix with room for the difference of any two that occur. */
static int set_codes(frame *f, const double last[3], tsi_candidates *out)
{
  double codes = 1;
  for (int l = 0; l < 3; l++) {
    double reach = 2.0 * f->most_home[l];
    for (int k = 0; k < 3; k++)
      reach += last[k] * abs(f->lattice.u[k][l]);
    if (!(reach <= INT16_MAX))
      return tsi_fail(
          TS_ERR_UNSUPPORTED,
          "a reach of %g Å needs %.0f images along cell vector %c, at most %d can be told "
          "apart: use a larger or less skewed cell",
          f->upper, reach, "abc"[l], INT16_MAX);
    out->reach[l] = (int32_t)reach;
    codes *= 2 * reach + 1;
  }
  if (!(codes <= MAX_CODES))
    return tsi_fail(
        TS_ERR_UNSUPPORTED,
        "a reach of %g Å needs %.0f images of the cell, at most %d can be told apart: use "
        "a larger or less skewed cell",
        f->upper, codes, MAX_CODES);
  out->codes = (int32_t)codes;
  return 0;
}

static int32_t image_code(const tsi_candidates *c, const int32_t image[3])
{
  return (image[0] * (2 * c->reach[1] + 1) + image[1]) * (2 * c->reach[2] + 1) + image[2];
}

void tsi_code_image(const tsi_candidates *c, int32_t code, int32_t image[3])
{
  int32_t rest = code + c->codes / 2;
  for (int k = 2; k >= 0; k--) {
    const int32_t width = 2 * c->reach[k] + 1;
    image[k] = rest % width - c->reach[k];
    rest /= width;
  }
}

static int list_images(frame *f, tsi_candidates *out)
{
  double first[3], last[3];
  for (int k = 0; k < 3; k++) {
    last[k] = f->lattice.box.periodic[k] ? floor(f->span[k] + f->freach[k]) : 0;
    first[k] = -last[k];
  }
  TS_TRY(set_codes(f, last, out));
  TS_TRY(TSI_ARRAY(f->image,
                   (last[0] - first[0] + 1) * (last[1] - first[1] + 1) * (last[2] - first[2] + 1)));
  int32_t m[3];
  for (m[0] = (int32_t)first[0]; m[0] <= (int32_t)last[0]; m[0]++)
    for (m[1] = (int32_t)first[1]; m[1] <= (int32_t)last[1]; m[1]++)
      for (m[2] = (int32_t)first[2]; m[2] <= (int32_t)last[2]; m[2]++) {
        image_entry *e = &f->image[f->nimage++];
        int32_t user[3] = {0};
        for (int k = 0; k < 3; k++) {
          e->m[k] = m[k];
          for (int l = 0; l < 3; l++)
            user[l] += m[k] * f->lattice.u[k][l];
        }
        e->code = image_code(out, user);
        ts_cell_shift(f->cell, user, e->move);
      }
  qsort(f->image, (size_t)f->nimage, sizeof *f->image, by_code);
  while (f->image[f->zero].code != 0)
    f->zero++;
  return 0;
}

/* Is this image of an atom (at y, t in fractions) within reach of the receivers?  By fractions,
 * then by the box: each leaves out corners that the other keeps. */
static bool in_reach(const frame *f, const double y[3], const double t[3], const image_entry *image,
                     double p[3])
{
  for (int k = 0; k < 3; k++) {
    const double fraction = t[k] + image->m[k];
    if (fraction < f->flow[k] - f->freach[k] || fraction > f->fhigh[k] + f->freach[k]) return false;
  }
  for (int k = 0; k < 3; k++) {
    p[k] = y[k] + image->move[k];
    if (p[k] < f->low[k] - f->upper || p[k] > f->high[k] + f->upper) return false;
  }
  return true;
}

/* So far from all faces that only the atom itself is within reach. */
static bool is_interior(const frame *f, const double t[3])
{
  for (int k = 0; k < 3; k++)
    if (f->lattice.box.periodic[k] &&
        (t[k] - 1 >= f->flow[k] - f->freach[k] || t[k] + 1 <= f->fhigh[k] + f->freach[k]))
      return false;
  return true;
}

/* Put the images of atom j that are within reach at position `at`; out->atom NULL: only count. */
static int64_t add_images(const frame *f, ts_lidx j, const double centre[3], int64_t at,
                          tsi_candidates *out)
{
  double t[3], p[3];
  ts_cell_fraction(&f->lattice.box, f->y[j], t);
  const bool alone = is_interior(f, t);
  const int32_t first = alone ? f->zero : 0, last = alone ? f->zero + 1 : f->nimage;
  for (int32_t e = first; e < last; e++) {
    const image_entry *image = &f->image[e];
    if (!in_reach(f, f->y[j], t, image, p)) continue;
    if (out->atom) {
      out->atom[at] = j;
      if (e == f->zero && j < f->n) out->query[j].self = (int32_t)at;
      out->code[at] = out->home[j] + image->code;
      out->points.x[at] = (float)(p[0] - centre[0]);
      out->points.y[at] = (float)(p[1] - centre[1]);
      out->points.z[at] = (float)(p[2] - centre[2]);
      out->points.id[at] = (int32_t)at;
    }
    at++;
  }
  return at;
}

static int add_candidates(const frame *f, const bool *excluded, const double centre[3],
                          tsi_candidates *out)
{
  int64_t count = 0;
  for (ts_lidx j = 0; j < f->nsenders; j++)
    if (!excluded || !excluded[j]) count = add_images(f, j, centre, count, out);
  if (count > INT32_MAX - 4 * TSI_LANES)
    return tsi_fail(
        TS_ERR_UNSUPPORTED,
        "%lld atoms and images are within %g Å of the atoms, at most %d can be searched",
        (long long)count, f->upper, INT32_MAX - 4 * TSI_LANES);
  TS_TRY(tsi_points_reserve(&out->points, (int32_t)count));
  TS_TRY(TSI_ARRAY(out->code, count));
  TS_TRY(TSI_ARRAY(out->atom, count + 1));
  int64_t at = 0;
  for (ts_lidx k = 0; k < f->nsenders; k++) {
    const ts_lidx j = out->by_gid[k];
    if (!excluded || !excluded[j]) at = add_images(f, j, centre, at, out);
  }
  out->points.n = (int32_t)at;
  tsi_points_pad(&out->points);
  return 0;
}

static int add_queries(const frame *f, const double centre[3], tsi_candidates *out)
{
  TS_TRY(TSI_ARRAY(out->query, f->n));
  TS_TRY(TSI_ARRAY(out->home, f->nsenders));
  for (ts_lidx i = 0; i < f->nsenders; i++)
    out->home[i] = image_code(out, f->home[i]);
  for (ts_lidx i = 0; i < f->n; i++) {
    out->query[i].atom = i;
    out->query[i].self = -1;
    for (int k = 0; k < 3; k++)
      out->query[i].p[k] = (float)(f->y[i][k] - centre[k]);
  }
  return 0;
}

static int order_by_gid(ts_lidx n, const ts_gidx *gid, tsi_candidates *out)
{
  TS_TRY(TSI_ARRAY(out->by_gid, n));
  for (ts_lidx i = 0; i < n; i++) {
    if (gid[i] < 0)
      return tsi_fail(TS_ERR_ARG, "atom at index %d has the negative id %lld", i,
                      (long long)gid[i]);
    out->by_gid[i] = i;
  }
  TS_TRY(tsi_sort_order(n, (const uint64_t *)gid, out->by_gid));
  for (ts_lidx k = 1; k < n; k++)
    if (gid[out->by_gid[k]] == gid[out->by_gid[k - 1]])
      return tsi_fail(TS_ERR_ARG, "two atoms have the id %lld", (long long)gid[out->by_gid[k]] + 1);
  return 0;
}

static int build(frame *f, const double (*x)[3], const ts_gidx *gid, const bool *excluded,
                 double upper, tsi_candidates *out)
{
  TS_TRY(order_by_gid(f->nsenders, gid, out));
  TS_TRY(tsi_lattice_reduce(f->cell, &f->lattice));
  TS_TRY(place_atoms(f, x, gid));
  set_reach(f, upper);
  TS_TRY(list_images(f, out));
  double centre[3], extent = 0;
  for (int k = 0; k < 3; k++) {
    centre[k] = 0.5 * (f->low[k] + f->high[k]);
    extent = fmax(extent, 0.5 * (f->high[k] - f->low[k]) + f->upper);
  }
  out->error = ldexp(extent, -24) * (1 + 1e-6) + ldexp(f->size + extent, -48);
  TS_TRY(add_queries(f, centre, out));
  return add_candidates(f, excluded, centre, out);
}

int tsi_candidates_build(const ts_cell *cell, ts_lidx n, ts_lidx nsenders, const double (*x)[3],
                         const ts_gidx *gid, const bool *excluded_sender, double upper,
                         tsi_candidates *out)
{
  frame f = {.cell = cell, .n = n, .nsenders = nsenders};
  memset(out, 0, sizeof *out);
  const int status = build(&f, x, gid, excluded_sender, upper, out);
  free(f.y);
  free(f.home);
  free(f.image);
  if (status) tsi_candidates_free(out);
  return status;
}

void tsi_candidates_free(tsi_candidates *c)
{
  tsi_points_free(&c->points);
  free(c->atom);
  free(c->code);
  free(c->query);
  free(c->home);
  free(c->by_gid);
  memset(c, 0, sizeof *c);
}
