/* SPDX-License-Identifier: MIT
 *
 * The energy head of a tile, and the gradient that starts the backward pass.  The usual head reads
 * degree 0 alone, so the final join of the two stages (cluster merge) is computed for that degree
 * only; the sphere head is the mean of a network over the features in 18 directions. */
#include "models/kernels_impl.h"

/* x = SiLU(z), z kept. */
static void silu_all(size_t count, const real *TS_RESTRICT z, real *TS_RESTRICT x)
{
  TS_SIMD
  for (size_t i = 0; i < count; i++)
    x[i] = real_silu(z[i]);
}

static void silu_back_all(size_t count, const real *TS_RESTRICT z, real *TS_RESTRICT d)
{
  TS_SIMD
  for (size_t i = 0; i < count; i++)
    d[i] *= real_silu_slope(z[i]);
}

static void bias_all(int rows, int width, const real *TS_RESTRICT bias, real *x)
{
  for (int a = 0; a < rows; a++) {
    real *TS_RESTRICT row = x + (size_t)a * (size_t)width;
    TS_SIMD
    for (int c = 0; c < width; c++)
      row[c] += bias[c];
  }
}

/* x = the features that the network reads: degrees 0 .. degrees-1 of the join of the stages. */
static void join(const ts_shape *s, const ts_head *w, int degrees, const real *hshort,
                 const real *g, real *x)
{
  const int A = s->atoms, C = s->channels;
  if (w->merge != TS_MERGE_CLUSTER) {
    memcpy(x, g, (size_t)(degrees * degrees) * (size_t)A * (size_t)C * sizeof *x);
    return;
  }
  for (int l = 0; l < degrees; l++) {
    const size_t at = (size_t)(l * l) * (size_t)A * (size_t)C;
    const int rows = (2 * l + 1) * A;
    ts_matrix_forward(&w->join[0].degree[l], rows, hshort + at, C, 0.0, x + at, C);
    ts_matrix_forward(&w->join[1].degree[l], rows, g + at, C, 1.0, x + at, C);
  }
  bias_all(A, C, w->join[0].bias, x);
}

/* The same rows of dshort and dg from dx; their other rows become zero. */
static void join_back(const ts_shape *s, const ts_head *w, int degrees, const real *dx,
                      real *dshort, real *dg)
{
  const int A = s->atoms, C = s->channels;
  const size_t plane = (size_t)A * (size_t)C, all = (size_t)s->rows * plane;
  memset(dg, 0, all * sizeof *dg);
  if (w->merge != TS_MERGE_CLUSTER) {
    memcpy(dg, dx, (size_t)(degrees * degrees) * plane * sizeof *dg);
    return;
  }
  memset(dshort, 0, all * sizeof *dshort);
  for (int l = 0; l < degrees; l++) {
    const size_t at = (size_t)(l * l) * plane;
    const int rows = (2 * l + 1) * A;
    ts_matrix_backward(&w->join[0].degree[l], rows, dx + at, C, 0.0, dshort + at, C);
    ts_matrix_backward(&w->join[1].degree[l], rows, dx + at, C, 0.0, dg + at, C);
  }
}

/* x [points,plane] = features f [rows,plane] seen along fixed directions: values [points,rows]. */
static void look(int points, int rows, size_t plane, const real *values, const real *f, real *x)
{
  memset(x, 0, (size_t)points * plane * sizeof *x);
  for (int p = 0; p < points; p++)
    for (int r = 0; r < rows; r++) {
      const real v = values[p * rows + r], *TS_RESTRICT in = f + (size_t)r * plane;
      real *TS_RESTRICT out = x + (size_t)p * plane;
      TS_SIMD
      for (size_t i = 0; i < plane; i++)
        out[i] += v * in[i];
    }
}

static void look_back(int points, int rows, size_t plane, const real *values, const real *dx,
                      real *df)
{
  memset(df, 0, (size_t)rows * plane * sizeof *df);
  for (int r = 0; r < rows; r++)
    for (int p = 0; p < points; p++) {
      const real v = values[p * rows + r], *TS_RESTRICT in = dx + (size_t)p * plane;
      real *TS_RESTRICT out = df + (size_t)r * plane;
      TS_SIMD
      for (size_t i = 0; i < plane; i++)
        out[i] += v * in[i];
    }
}

/* The network on x [points,A,C], in place; d becomes the gradient of the sum of n energies. */
static void network(const ts_shape *s, const ts_head *w, int n, int points, real *x, real *d,
                    real *const z[2], double *energy)
{
  const int A = s->atoms, C = s->channels, rows = points * A;
  const size_t all = (size_t)rows * (size_t)C;
  const double scale = w->energy_scale / points;
  const real *last = w->last;
  for (int k = 0; k < 2; k++) {
    ts_matrix_forward(&w->mlp[k], rows, x, C, 0.0, z[k], C);
    bias_all(rows, C, w->mlp_bias[k], z[k]);
    silu_all(all, z[k], x);
  }
  memset(d, 0, all * sizeof *d);
  for (int a = 0; a < A; a++)
    energy[a] = 0;
  for (int p = 0; p < points; p++)
    for (int a = 0; a < n; a++) {
      const size_t at = ((size_t)p * (size_t)A + (size_t)a) * (size_t)C;
      real *TS_RESTRICT row = d + at;
      const real *TS_RESTRICT value = x + at;
      double sum = w->last_bias;
      for (int c = 0; c < C; c++) {
        sum += (double)last[c] * (double)value[c];
        row[c] = (real)scale * last[c];
      }
      energy[a] += scale * sum;
    }
  for (int k = 1; k >= 0; k--) {
    silu_back_all(all, z[k], d);
    ts_matrix_backward(&w->mlp[k], rows, d, C, 0.0, x, C);
    memcpy(d, x, all * sizeof *d);
  }
}

void TS_K(head)(const ts_shape *s, const ts_head *w, int n, const void *hshort, const void *hlast,
                double *energy, void *dshort, void *dlast, void *scratch_)
{
  const bool sphere = w->kind == TS_HEAD_SPHERE;
  const int points = sphere ? TS_SPHERE_POINTS : 1, degrees = sphere ? s->lmax + 1 : 1;
  const size_t plane = (size_t)s->atoms * (size_t)s->channels, all = (size_t)s->rows * plane;
  const size_t many = (size_t)points * plane;
  char *scratch = scratch_;
  real *g = scratch_take(&scratch, all), *dg = scratch_take(&scratch, all);
  real *x = scratch_take(&scratch, many), *d = scratch_take(&scratch, many);
  real *z[2] = {scratch_take(&scratch, many), scratch_take(&scratch, many)};

  TS_K(norm)(s, &w->norm, hlast, g);
  if (sphere) {
    join(s, w, degrees, hshort, g, dg);
    look(points, s->rows, plane, w->directions, dg, x);
  } else {
    join(s, w, degrees, hshort, g, x);
  }
  network(s, w, n, points, x, d, z, energy);
  if (sphere) {
    look_back(points, s->rows, plane, w->directions, d, g);
    join_back(s, w, degrees, g, dshort, dg);
  } else {
    join_back(s, w, degrees, d, dshort, dg);
  }
  memset(dlast, 0, all * sizeof(real));
  TS_K(norm_back)(s, &w->norm, hlast, dg, dlast);
}
