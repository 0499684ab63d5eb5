/* SPDX-License-Identifier: MIT
 *
 * Fitting the tables.  The spline interpolates the network at the grid points.  Interpolation by a
 * quintic spline is a banded system along r whose solution at a point feels a change k points away
 * by 0.43^k, so the grid is extended by 48 points on either side (the networks are smooth
 * everywhere) and the ends need no conditions: what is wrong there has faded to 1e-18.  Midway
 * between two points the error is largest; it falls with the sixth power of the step, so the step
 * that is needed is extrapolated from the error of a coarser one and then checked.  Cost: about
 * six evaluations of the network per grid point and pair of elements.  With many elements the
 * grid is first found for a few, so that it is known early when tables would be too large. */
#include "models/radial.h"

#include "models/radial_net.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  PADDING = 48,      /* grid points beyond either end */
  FEW = 4,           /* elements all of whose pairs are sampled at once */
  CHECK_BLOCK = 128, /* intervals checked at once */
  MAX_INTERVALS = 1 << 15
};

/* What is measured of a fit. */
typedef struct accuracy {
  double largest, slope_largest; /* of the network */
  double error, slope_error;     /* of the spline, absolute */
} accuracy;

/* ---- the interpolation system ---------------------------------------------------------------- */

/* Symmetric, five diagonals, rows (1, 26, 66, 26, 1)/120: L D L^T with two subdiagonals in L. */
static int factorise(int n, double **factors)
{
  TS_TRY(TSI_NEW(*factors, (size_t)n * 3));
  double *one = *factors, *two = *factors + n, *pivot = *factors + 2 * n;
  for (int i = 0; i < n; ++i) {
    two[i] = i >= 2 ? 1.0 / 120.0 / pivot[i - 2] : 0.0;
    one[i] =
        i >= 1 ? (26.0 / 120.0 - (i >= 2 ? two[i] * pivot[i - 2] * one[i - 1] : 0.0)) / pivot[i - 1]
               : 0.0;
    pivot[i] = 66.0 / 120.0 - (i >= 1 ? one[i] * one[i] * pivot[i - 1] : 0.0) -
               (i >= 2 ? two[i] * two[i] * pivot[i - 2] : 0.0);
  }
  return 0;
}

/* Values [n, W] become coefficients, in place. */
static void solve(int n, int width, const double *factors, double *x)
{
  const double *one = factors, *two = factors + n, *pivot = factors + 2 * n;
  for (int64_t i = 1; i < n; ++i) {
    double *row = x + i * width;
    const double *before = row - width, *second = i >= 2 ? before - width : before;
    for (int c = 0; c < width; ++c)
      row[c] -= one[i] * before[c] + two[i] * second[c];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    double *row = x + i * width;
    const double *after = i + 1 < n ? row + width : row, *second = i + 2 < n ? after + width : row;
    const double a = i + 1 < n ? one[i + 1] : 0.0, b = i + 2 < n ? two[i + 2] : 0.0;
    for (int c = 0; c < width; ++c)
      row[c] = row[c] / pivot[i] - a * after[c] - b * second[c];
  }
}

/* ---- one table ------------------------------------------------------------------------------- */

/* Coefficients [S, S, intervals + 6, W] of a net, or, split, [intervals + 6, P m] of the distance's
 * part of its first layers; the caller frees them. */
static int fit(const tsi_radial_net *net, bool split, int ns, const int *z, int intervals,
               double **coef)
{
  const int n = intervals + 1 + 2 * PADDING, nodes = intervals + 6;
  const int width = split ? net->nmlp * net->middle : net->width;
  if (split) ns = 1;
  const int64_t from = (int64_t)n * width, to = (int64_t)nodes * width;
  const int block = ns <= FEW ? ns : 1; /* receivers; one by one where memory counts */
  const double step = net->cutoff / intervals;
  double *r = NULL, *value = NULL, *factors = NULL;
  int status;
  *coef = NULL;
  TS_TRY_GOTO(status, TSI_NEW(r, n), done);
  TS_TRY_GOTO(status, TSI_NEW(value, (size_t)block * (size_t)ns * (size_t)from), done);
  TS_TRY_GOTO(status, factorise(n, &factors), done);
  TS_TRY_GOTO(status, TSI_NEW(*coef, (size_t)ns * (size_t)ns * (size_t)to), done);
  for (int i = 0; i < n; ++i)
    r[i] = (i - PADDING) * step;
  for (int i = 0; i < ns; i += block) {
    if (split)
      TS_TRY_GOTO(status, tsi_radial_net_first(net, n, r, value), done);
    else
      TS_TRY_GOTO(status, tsi_radial_net_sample(net, block, z + i, ns, z, n, r, value, NULL), done);
    for (int pair = 0; pair < block * ns; ++pair) {
      solve(n, width, factors, value + pair * from);
      memcpy(*coef + (i * ns + pair) * to, value + pair * from + (int64_t)(PADDING - 2) * width,
             (size_t)to * sizeof **coef);
    }
  }
done:
  free(r);
  free(value);
  free(factors);
  if (status) {
    free(*coef);
    *coef = NULL;
  }
  return status;
}

/* ---- its error ------------------------------------------------------------------------------- */

/* A table at work, and room to look at CHECK_BLOCK distances. */
typedef struct checker {
  const tsi_radial_net *net;
  bool split;
  int ns, intervals;
  const int *z;
  const double *coef;
  double *value, *slope;  /* of the network: [S, S, CHECK_BLOCK, W], or, split, of one pair */
  double *made, *dmade;   /* of the table: [W], or, split, [CHECK_BLOCK, W] */
  double *first, *dfirst; /* split: [CHECK_BLOCK, P m] */
} checker;

static double largest_of(double largest, double value)
{
  return fabs(value) > largest ? fabs(value) : largest;
}

/* A table's spline in an interval, at t of it; coef is the first of its six rows. */
static void spline(int width, const double *coef, double t, double step, double *value,
                   double *slope)
{
  double B[6], dB[6];
  tsi_bspline5(t, B, dB);
  for (int c = 0; c < width; ++c) {
    double sum = 0.0, dsum = 0.0;
    for (int k = 0; k < 6; ++k) {
      sum += B[k] * coef[k * width + c];
      dsum += dB[k] * coef[k * width + c];
    }
    value[c] = sum;
    slope[c] = dsum / step;
  }
}

/* Compare outputs and, where given, slopes with those of the network. */
static void compare(int64_t count, const double *made, const double *dmade, const double *value,
                    const double *slope, accuracy *a)
{
  for (int64_t c = 0; c < count; ++c) {
    a->largest = largest_of(a->largest, value[c]);
    a->error = isfinite(value[c]) ? largest_of(a->error, made[c] - value[c]) : INFINITY;
    if (!slope) continue;
    a->slope_largest = largest_of(a->slope_largest, slope[c]);
    a->slope_error = largest_of(a->slope_error, dmade[c] - slope[c]);
  }
}

/* n intervals from `first` on, each at `offset` between its ends, which is r. */
static int check_pairs(const checker *k, int first, int n, double offset, const double *r,
                       accuracy *a)
{
  const int width = k->net->width;
  const double step = k->net->cutoff / k->intervals;
  TS_TRY(tsi_radial_net_sample(k->net, k->ns, k->z, k->ns, k->z, n, r, k->value, k->slope));
  for (int64_t pair = 0; pair < k->ns * k->ns; ++pair)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = (pair * n + i) * width;
      spline(width, k->coef + (pair * (k->intervals + 6) + first + i) * width, offset, step,
             k->made, k->dmade);
      compare(width, k->made, k->dmade, k->value + row, k->slope ? k->slope + row : NULL, a);
    }
  return 0;
}

/* The same of a split table, for TS_RADIAL_SAMPLES pairs, or all if they are not more: going on by
 * a prime meets many elements on either side. */
static int check_split(const checker *k, int first, int n, double offset, const double *r,
                       accuracy *a)
{
  const int width = k->net->nmlp * k->net->middle, all = k->ns * k->ns;
  for (int64_t i = 0; i < n; ++i)
    spline(width, k->coef + (first + i) * width, offset, k->net->cutoff / k->intervals,
           k->first + i * width, k->dfirst + i * width);
  for (int s = 0; s < TS_RADIAL_SAMPLES && s < all; ++s) {
    const int pair = s * 7919 % all;
    const int *zi = &k->z[pair / k->ns], *zj = &k->z[pair % k->ns];
    TS_TRY(tsi_radial_net_sample(k->net, 1, zi, 1, zj, n, r, k->value, k->slope));
    TS_TRY(tsi_radial_net_rest(k->net, *zi, *zj, n, k->first, k->dfirst, k->made, k->dmade));
    compare((int64_t)n * k->net->width, k->made, k->dmade, k->value, k->slope, a);
  }
  return 0;
}

static int make_checker(bool with_slope, checker *k)
{
  const size_t pairs = k->split ? 1 : (size_t)k->ns * (size_t)k->ns;
  const size_t block = CHECK_BLOCK * (size_t)k->net->width;
  const size_t layer = CHECK_BLOCK * (size_t)k->net->nmlp * (size_t)k->net->middle;
  TS_TRY(TSI_NEW(k->value, pairs * block));
  if (with_slope) TS_TRY(TSI_NEW(k->slope, pairs * block));
  TS_TRY(TSI_NEW(k->made, block));
  TS_TRY(TSI_NEW(k->dmade, block));
  if (!k->split) return 0;
  TS_TRY(TSI_NEW(k->first, layer));
  return TSI_NEW(k->dfirst, layer);
}

/* All intervals at one offset between their ends, the slopes too where wanted; `a` keeps what is
 * larger. */
static int check(const tsi_radial_net *net, bool split, int ns, const int *z, int intervals,
                 const double *coef, double offset, bool with_slope, accuracy *a)
{
  checker k = {.net = net, .split = split, .ns = ns, .z = z, .intervals = intervals, .coef = coef};
  int status = make_checker(with_slope, &k);
  for (int first = 0; first < intervals && !status; first += CHECK_BLOCK) {
    const int n = intervals - first < CHECK_BLOCK ? intervals - first : CHECK_BLOCK;
    double r[CHECK_BLOCK];
    for (int i = 0; i < n; ++i)
      r[i] = (first + i + offset) * (net->cutoff / intervals);
    status = (split ? check_split : check_pairs)(&k, first, n, offset, r, a);
  }
  double *const room[] = {k.value, k.slope, k.made, k.dmade, k.first, k.dfirst};
  for (int i = 0; i < 6; ++i)
    free(room[i]);
  return status;
}

static double relative(double error, double largest)
{
  return largest > 0.0 ? error / largest : error;
}

/* ---- one stage ------------------------------------------------------------------------------- */

typedef struct work {
  const ts_model_desc *desc;
  const ts_weights *weights;
  ts_radial_set *set;
  uint64_t most;  /* bytes of all tables of pairs */
  bool too_large; /* they would take more */
  int stage;
  int ns;                        /* the first elements of the set that are looked at */
  int intervals;                 /* of the stage's grid, as far as known */
  int fitted[TS_MAX_LAYERS + 1]; /* of each table as it is */
  accuracy reached[TS_MAX_LAYERS + 1];
} work;

static int table_count(const work *w)
{
  return w->set->stage[w->stage].nlayers + (w->stage == 0);
}

/* The tables of a stage in order: layers, then the embedding. */
static int table_at(const work *w, int index, tsi_radial_net *net, ts_radial_table **table)
{
  ts_radial_stage *stage = &w->set->stage[w->stage];
  const bool layer = index < stage->nlayers;
  *table = layer ? &stage->layer[index] : &stage->embed;
  TS_TRY(tsi_radial_net_init(w->desc, w->weights, w->stage, layer ? index : -1, net));
  (*table)->width = net->width;
  (*table)->nets = net->nmlp;
  (*table)->middle = net->middle;
  return 0;
}

/* The grid is w->intervals now: do the tables of all pairs fit, those of other stages as far as
 * they are known included? */
static int set_grid(work *w)
{
  ts_radial_stage *stage = &w->set->stage[w->stage];
  stage->step = stage->cutoff / w->intervals;
  stage->nodes = w->intervals + 6;
  w->too_large = !w->set->split && ts_radial_bytes(w->set) > w->most;
  return w->too_large ? TS_ERR_MEMORY : 0;
}

/* Fit a table on the grid as it is now and look midway, where errors are largest. */
static int fit_table(work *w, int index)
{
  const ts_radial_set *set = w->set;
  tsi_radial_net net;
  ts_radial_table *table;
  TS_TRY(set_grid(w));
  TS_TRY(table_at(w, index, &net, &table));
  free(table->coef);
  TS_TRY(fit(&net, set->split, w->ns, set->species, w->intervals, &table->coef));
  w->fitted[index] = w->intervals;
  w->reached[index] = (accuracy){0};
  return check(&net, set->split, w->ns, set->species, w->intervals, table->coef, 0.5, false,
               &w->reached[index]);
}

/* Errors fall with the sixth power of the step; aim a little below the tolerance. */
static int refined(int intervals, double error, double tolerance)
{
  double factor = pow(error / (0.6 * tolerance), 1.0 / 6.0);
  factor = fmin(fmax(factor, 1.06), 2.5);
  return (int)fmin(ceil(intervals * factor), MAX_INTERVALS);
}

/* Refine the grid until one table is good on it, or until round-off stops the improvement. */
static int refine_for(work *w, int index)
{
  const double tolerance = w->set->tolerance;
  double before = INFINITY;
  for (;;) {
    TS_TRY(fit_table(w, index));
    const double error = relative(w->reached[index].error, w->reached[index].largest);
    if (!isfinite(error))
      return tsi_fail(TS_ERR_INPUT,
                      "a radial network of stage %d (table %d) is not finite: the weights overflow",
                      w->stage, index);
    const bool stuck = error < 1e-8 && error > 0.3 * before;
    if (error <= 0.9 * tolerance || stuck || w->intervals == MAX_INTERVALS) return 0;
    w->intervals = refined(w->intervals, error, tolerance);
    before = error;
  }
}

/* Bring a table to the final grid and state its error at three places of each interval. */
static int finish_table(work *w, int index)
{
  const ts_radial_set *set = w->set;
  tsi_radial_net net;
  ts_radial_table *table;
  accuracy *a = &w->reached[index];
  if (w->fitted[index] != w->intervals) TS_TRY(fit_table(w, index));
  TS_TRY(table_at(w, index, &net, &table));
  for (int i = 0; i < 2; ++i)
    TS_TRY(check(&net, set->split, w->ns, set->species, w->intervals, table->coef, i ? 0.76 : 0.24,
                 i == 0, a));
  table->error = relative(a->error, a->largest);
  table->slope_error = relative(a->slope_error, a->slope_largest);
  return 0;
}

/* The grid that is good for all tables of a stage, found from the first `ns` elements; from what is
 * known of it on. */
static int find_grid(work *w, int stage_, int ns)
{
  ts_radial_stage *stage = &w->set->stage[stage_];
  tsi_radial_net net;
  ts_radial_table *table;
  const int coarse = 2 * w->desc->bases > 32 ? 2 * w->desc->bases : 32;
  w->stage = stage_;
  w->ns = ns;
  w->intervals = stage->nodes ? stage->nodes - 6 : coarse;
  stage->cutoff = w->desc->stage[stage_].cutoff;
  stage->nlayers = w->desc->stage[stage_].nlayers;
  for (int i = 0; i < table_count(w); ++i)
    TS_TRY(table_at(w, i, &net, &table));
  for (int i = 0; i < table_count(w); ++i)
    TS_TRY(refine_for(w, i));
  return 0;
}

static int build_stages(work *w)
{
  const int ns = w->set->nspecies;
  for (int s = 0; s < w->set->nstages && ns > FEW && !w->set->split; ++s)
    TS_TRY(find_grid(w, s, FEW));
  for (int s = 0; s < w->set->nstages; ++s) {
    TS_TRY(find_grid(w, s, ns));
    for (int i = 0; i < table_count(w); ++i)
      TS_TRY(finish_table(w, i));
  }
  return 0;
}

/* ---- the set --------------------------------------------------------------------------------- */

static int check_arguments(int nspecies, const int *species, double tolerance)
{
  if (nspecies < 1 || nspecies > TS_MAX_ELEMENT)
    return tsi_fail(TS_ERR_ARG, "%d species; expected 1 to %d", nspecies, TS_MAX_ELEMENT);
  for (int i = 0; i < nspecies; ++i)
    if (species[i] < 0 || species[i] >= TS_MAX_ELEMENT)
      return tsi_fail(TS_ERR_ARG, "atomic number %d; expected less than %d", species[i],
                      TS_MAX_ELEMENT);
  if (!(tolerance > 0.0))
    return tsi_fail(TS_ERR_ARG, "radial tolerance %g; expected more than 0", tolerance);
  return 0;
}

static void release_stages(ts_radial_set *set)
{
  for (int i = 0; i < TS_MAX_STAGES; ++i) {
    for (int l = 0; l < TS_MAX_LAYERS; ++l)
      free(set->stage[i].layer[l].coef);
    free(set->stage[i].embed.coef);
  }
  memset(set->stage, 0, sizeof set->stage);
}

int ts_radial_build(const ts_model_desc *desc, const ts_weights *weights, int nspecies,
                    const int *species, double tolerance, uint64_t most, ts_radial_set **out)
{
  *out = NULL;
  TS_TRY(check_arguments(nspecies, species, tolerance));
  TS_TRY(TSI_NEW(*out, 1));
  ts_radial_set *set = *out;
  work w = {.desc = desc, .weights = weights, .set = set, .most = most};
  set->nspecies = nspecies;
  memcpy(set->species, species, (size_t)nspecies * sizeof *species);
  set->tolerance = tolerance;
  set->nstages = desc->nstages;
  int status = build_stages(&w);
  if (w.too_large) {
    release_stages(set);
    set->split = true;
    status = build_stages(&w);
  }
  if (status) ts_radial_destroy(out);
  return status;
}

uint64_t ts_radial_bytes(const ts_radial_set *set)
{
  uint64_t numbers = 0;
  for (int s = 0; s < set->nstages; ++s) {
    const ts_radial_stage *stage = &set->stage[s];
    uint64_t width = (uint64_t)stage->embed.width;
    for (int l = 0; l < stage->nlayers; ++l)
      width += (uint64_t)stage->layer[l].width;
    numbers += width * (uint64_t)stage->nodes;
  }
  return numbers * (uint64_t)(set->nspecies * set->nspecies) * sizeof(double);
}

void ts_radial_destroy(ts_radial_set **set)
{
  if (!*set) return;
  release_stages(*set);
  free(*set);
  *set = NULL;
}

int ts_radial_exact(const ts_model_desc *desc, const ts_weights *weights, int stage, int layer,
                    int zi, int zj, int64_t nr, const double *r, double *value, double *slope)
{
  tsi_radial_net net;
  TS_TRY(tsi_radial_net_init(desc, weights, stage, layer, &net));
  return tsi_radial_net_sample(&net, 1, &zi, 1, &zj, nr, r, value, slope);
}
