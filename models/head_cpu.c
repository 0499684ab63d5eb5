/* SPDX-License-Identifier: MIT
 *
 * The energy head of a tile, and the gradient that starts the backward pass.  The head reads degree
 * 0 alone, so the final join of the two stages (cluster merge) is computed for that degree only. */
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

void TS_K(head)(const ts_shape *s, const ts_head *w, int n, const void *hshort, const void *hlast,
                double *energy, void *dshort, void *dlast, void *scratch_)
{
  const int A = s->atoms, C = s->channels;
  const size_t plane = (size_t)A * (size_t)C, all = (size_t)s->rows * plane;
  const bool cluster = w->merge == TS_MERGE_CLUSTER;
  char *scratch = scratch_;
  real *g = scratch_take(&scratch, all), *dg = scratch_take(&scratch, all);
  real *x = scratch_take(&scratch, plane), *d = scratch_take(&scratch, plane);
  real *z[2] = {scratch_take(&scratch, plane), scratch_take(&scratch, plane)};
  const real *last = w->last;

  TS_K(norm)(s, &w->norm, hlast, g);
  if (cluster) {
    ts_matrix_forward(&w->join[0], A, hshort, C, 0.0, x, C);
    ts_matrix_forward(&w->join[1], A, g, C, 1.0, x, C);
    bias_all(A, C, w->join_bias, x);
  } else {
    memcpy(x, g, plane * sizeof *x);
  }
  for (int k = 0; k < 2; k++) {
    ts_matrix_forward(&w->mlp[k], A, x, C, 0.0, z[k], C);
    bias_all(A, C, w->mlp_bias[k], z[k]);
    silu_all(plane, z[k], x);
  }
  memset(d, 0, plane * sizeof *d);
  for (int a = 0; a < A; a++)
    energy[a] = 0;
  for (int a = 0; a < n; a++) {
    real *TS_RESTRICT row = d + (size_t)a * (size_t)C;
    const real *TS_RESTRICT value = x + (size_t)a * (size_t)C;
    double sum = w->last_bias;
    for (int c = 0; c < C; c++) {
      sum += (double)last[c] * (double)value[c];
      row[c] = (real)w->energy_scale * last[c];
    }
    energy[a] = w->energy_scale * sum;
  }
  for (int k = 1; k >= 0; k--) {
    silu_back_all(plane, z[k], d);
    ts_matrix_backward(&w->mlp[k], A, d, C, 0.0, x, C);
    memcpy(d, x, plane * sizeof *d);
  }
  memset(dlast, 0, all * sizeof(real));
  memset(dg, 0, all * sizeof(real));
  if (cluster) {
    memset(dshort, 0, all * sizeof(real));
    ts_matrix_backward(&w->join[0], A, d, C, 0.0, dshort, C);
    ts_matrix_backward(&w->join[1], A, d, C, 0.0, dg, C);
  } else {
    memcpy(dg, d, plane * sizeof *d);
  }
  TS_K(norm_back)(s, &w->norm, hlast, dg, dlast);
}
