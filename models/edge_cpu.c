/* SPDX-License-Identifier: MIT
 *
 * Edges before and after the layers: the radial data that every layer of a stage shares, the
 * edge-degree embedding that makes the first features, and the force along an edge at the end.
 * Distances arrive in double; only what is smooth and bounded is rounded to `real`. */
#include "models/kernels_impl.h"
#include "models/radial.h"

/* Envelope and slope, in double and in factors, so that both vanish smoothly at the cutoff: the sum
 * 1 - 21 t^5 + 35 t^6 - 15 t^7 leaves 1e-15 of noise there, which the first norm of an atom with
 * one distant neighbour makes 300 times larger. */
static void envelope(const ts_edge_params *p, double r, double *value, double *slope)
{
  if (p->envelope == TS_ENVELOPE_POLY) {
    const double t = r / p->cutoff, u = 1 - t;
    const bool in = t < 1;
    *value = in ? u * u * u * (1 + t * (3 + t * (6 + t * (10 + t * 15)))) : 0;
    *slope = in ? -105 * t * t * t * t * u * u / p->cutoff : 0;
    return;
  }
  const double width = p->cutoff - p->lower;
  const double t = (2 * r - (p->lower + p->cutoff)) / width;
  const bool in = t > -1 && t < 1;
  *value = in ? (1 - t * t) * (1 - t * t) : 0;
  *slope = in ? -4 * t * (1 - t * t) * 2 / width : 0;
}

void TS_K(edge)(const ts_edge_params *p, int64_t count, const double *geometry,
                const uint8_t *active, const int32_t *pair, int32_t *node, void *edge_)
{
  real *edge = edge_;
  for (int64_t e = 0; e < count; e++) {
    if (!active[e]) continue;
    real *out = edge + e * TS_EDGE_REALS;
    const double *g = geometry + 4 * e;
    const double s = g[3] / p->step;
    const int interval = (int)s;
    double value[6], slope[6], env, denv;
    tsi_bspline5(s - interval, value, slope);
    envelope(p, g[3], &env, &denv);
    node[e] = pair[e] * p->nodes + interval;
    for (int k = 0; k < 6; k++) {
      out[TS_EDGE_B + k] = (real)value[k];
      out[TS_EDGE_DB + k] = (real)(slope[k] / p->step);
    }
    out[TS_EDGE_ENV] = (real)env;
    out[TS_EDGE_DENV] = (real)denv;
    for (int k = 0; k < 3; k++)
      out[TS_EDGE_U + k] = (real)g[k];
    out[TS_EDGE_R] = (real)g[3];
  }
}

void TS_K(edge_force)(int64_t count, const double *geometry, const uint8_t *active,
                      const void *grad_, double *pull)
{
  const real *grad = grad_;
  for (int64_t e = 0; e < count; e++) {
    double *out = pull + 3 * e;
    const double *u = geometry + 4 * e;
    const real *g = grad + 4 * e;
    if (!active[e]) {
      out[0] = out[1] = out[2] = 0;
      continue;
    }
    const double along = g[0] * u[0] + g[1] * u[1] + g[2] * u[2];
    for (int k = 0; k < 3; k++)
      out[k] = (double)g[3] * u[k] + (g[k] - along * u[k]) / u[3];
  }
}

/* Radial functions, edge by edge.  Split ones are made for some active edges at once, ahead. */
typedef struct reader {
  const ts_radial *f;
  const ts_edge_block *b;
  int width;
  real *value, *slope, *room; /* value, slope [TS_RADIAL_BLOCK,W]; slope may be NULL */
  int ahead, at;              /* how many were made; the next */
} reader;

static TS_INLINE reader reader_begin(const ts_radial *f, const ts_edge_block *b, int width,
                                     bool slopes, char **scratch)
{
  const size_t rows = (size_t)width * (f->split ? TS_RADIAL_BLOCK : 1);
  reader r = {.f = f, .b = b, .width = width};
  r.value = scratch_take(scratch, rows);
  if (slopes && f->split) r.slope = scratch_take(scratch, rows);
  r.room = scratch_take(scratch, radial_room(f));
  return r;
}

/* f [W] of the active edge e; the receiver's edges end at `last`. */
static TS_INLINE const real *reader_next(reader *r, int e, int last)
{
  if (!r->f->split) {
    spline_rows(r->width, (const real *)r->f->table + (size_t)r->b->node[e] * (size_t)r->width,
                (const real *)r->b->edge + (size_t)e * TS_EDGE_REALS + TS_EDGE_B, r->value);
    return r->value;
  }
  if (r->at == r->ahead) {
    int edge[TS_RADIAL_BLOCK];
    r->at = r->ahead = 0;
    for (int k = e; k < last && r->ahead < TS_RADIAL_BLOCK; k++)
      if (r->b->active[k]) edge[r->ahead++] = k;
    TS_K(radial)(r->f, r->b, r->ahead, edge, r->value, r->width, r->slope, r->room);
  }
  return r->value + (size_t)r->at++ * (size_t)r->width;
}

/* What a gradient d [W] of the last edge's functions pulls on the distance. */
static TS_INLINE real reader_pull(const reader *r, int e, const real *d)
{
  if (r->f->split)
    return slope_pull(r->width, r->slope + (size_t)(r->at - 1) * (size_t)r->width, d);
  return spline_pull(r->width, (const real *)r->f->table + (size_t)r->b->node[e] * (size_t)r->width,
                     (const real *)r->b->edge + (size_t)e * TS_EDGE_REALS + TS_EDGE_DB, d);
}

static TS_INLINE void embed(const ts_shape *s, double average_degree, const ts_radial *radial,
                            const ts_edge_block *b, void *h_, void *scratch_)
{
  const real *edge = b->edge;
  const int C = s->channels, R = s->rows, width = (s->lmax + 1) * C;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  char *scratch = scratch_;
  real *sum = scratch_take(&scratch, (size_t)R * (size_t)C);
  reader from = reader_begin(radial, b, width, false, &scratch);
  real *h = h_;
  memset(h, 0, (size_t)R * stride * sizeof *h);
  for (int a = 0; a < b->n; a++) {
    memset(sum, 0, (size_t)R * (size_t)C * sizeof *sum);
    for (int e = b->row[a]; e < b->row[a + 1]; e++) {
      if (!b->active[e]) continue;
      const real *x = edge + (size_t)e * TS_EDGE_REALS;
      real Y[TS_ROWS];
      spherical(s->lmax, x + TS_EDGE_U, Y);
      const real *f = reader_next(&from, e, b->row[a + 1]);
      const real scale = x[TS_EDGE_ENV] / (real)average_degree;
      for (int l = 0; l <= s->lmax; l++)
        for (int r = l * l; r < (l + 1) * (l + 1); r++) {
          const real y = Y[r] * scale;
          const real *TS_RESTRICT fl = f + l * C;
          real *TS_RESTRICT out = sum + r * C;
          TS_SIMD
          for (int c = 0; c < C; c++)
            out[c] += y * fl[c];
        }
    }
    for (int r = 0; r < R; r++)
      memcpy(h + (size_t)r * stride + (size_t)a * (size_t)C, sum + r * C, (size_t)C * sizeof *h);
  }
}

void TS_K(embed)(const ts_shape *s, double average_degree, const ts_radial *f,
                 const ts_edge_block *b, void *h, void *scratch)
{
  TS_SIZED(s, embed(sized, average_degree, f, b, h, scratch));
}

static TS_INLINE void embed_back(const ts_shape *s, double average_degree, const ts_radial *radial,
                                 const ts_edge_block *b, const void *dh_, void *grad_,
                                 void *scratch_)
{
  const real *edge = b->edge, *dh = dh_;
  const int C = s->channels, width = (s->lmax + 1) * C;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  char *scratch = scratch_;
  real *df = scratch_take(&scratch, (size_t)width);
  reader from = reader_begin(radial, b, width, true, &scratch);
  real *grad = grad_;
  for (int a = 0; a < b->n; a++)
    for (int e = b->row[a]; e < b->row[a + 1]; e++) {
      if (!b->active[e]) continue;
      const real *x = edge + (size_t)e * TS_EDGE_REALS;
      real Y[TS_ROWS], dY[TS_ROWS], denv = 0;
      spherical(s->lmax, x + TS_EDGE_U, Y);
      const real *f = reader_next(&from, e, b->row[a + 1]);
      memset(df, 0, (size_t)width * sizeof *df);
      const real scale = x[TS_EDGE_ENV] / (real)average_degree;
      for (int l = 0; l <= s->lmax; l++)
        for (int r = l * l; r < (l + 1) * (l + 1); r++) {
          const real *TS_RESTRICT d = dh + (size_t)r * stride + (size_t)a * (size_t)C;
          const real *TS_RESTRICT fl = f + l * C;
          real *TS_RESTRICT out = df + l * C;
          const real y = Y[r] * scale;
          real sum = 0;
#pragma omp simd reduction(+ : sum)
          for (int c = 0; c < C; c++) {
            sum += d[c] * fl[c];
            out[c] += y * d[c];
          }
          dY[r] = sum * scale;
          denv += sum * Y[r];
        }
      real *g = grad + 4 * (size_t)e;
      spherical_back(s->lmax, x + TS_EDGE_U, dY, g);
      g[3] += reader_pull(&from, e, df) + denv / (real)average_degree * x[TS_EDGE_DENV];
    }
}

void TS_K(embed_back)(const ts_shape *s, double average_degree, const ts_radial *f,
                      const ts_edge_block *b, const void *dh, void *grad, void *scratch)
{
  TS_SIZED(s, embed_back(sized, average_degree, f, b, dh, grad, scratch));
}
