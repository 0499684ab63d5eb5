/* SPDX-License-Identifier: MIT
 *
 * Radial functions whose first layer is split by element: where tables of all pairs of elements
 * would be too large (models/radial.h), the networks are evaluated on every edge, a block of edges
 * at a time so that their layers are products of matrices.  The distance's part of the first layer
 * is a spline; from there on values and slopes by the distance are carried side by side, so that
 * the slope is that of the value. */
#include "models/kernels_impl.h"

/* The first layer of n edges: x [2n,m], values and then, if `slopes`, slopes. */
static void first_layer(const ts_radial *f, const ts_edge_block *b, int net, int n, const int *edge,
                        bool slopes, real *x)
{
  const int m = f->middle, width = f->nets * m;
  for (int i = 0; i < n; i++) {
    const int pair = b->node[edge[i]] / f->nodes, interval = b->node[edge[i]] % f->nodes;
    const real *weight = (const real *)b->edge + (size_t)edge[i] * TS_EDGE_REALS;
    const real *rows = (const real *)f->table + (size_t)interval * (size_t)width + net * m;
    const real *TS_RESTRICT to =
        (const real *)f->receiver + (size_t)(pair / f->species) * (size_t)width + net * m;
    const real *TS_RESTRICT from =
        (const real *)f->sender + (size_t)(pair % f->species) * (size_t)width + net * m;
    real *TS_RESTRICT value = x + (size_t)i * (size_t)m;
    spline_part(m, width, rows, weight + TS_EDGE_B, value);
    if (slopes) spline_part(m, width, rows, weight + TS_EDGE_DB, x + (size_t)(n + i) * (size_t)m);
    TS_SIMD
    for (int c = 0; c < m; c++)
      value[c] += to[c] + from[c];
  }
}

/* Layer norm and SiLU of x [m] and, where given, of the slope dx, in place. */
static void norm_silu(int m, const real *TS_RESTRICT scale, const real *TS_RESTRICT shift,
                      real *TS_RESTRICT x, real *TS_RESTRICT dx)
{
  real mean, inverse;
  layer_statistics(m, x, &mean, &inverse);
  if (dx) {
    real sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (int c = 0; c < m; c++) {
      sum += dx[c];
      product += dx[c] * (x[c] - mean);
    }
    sum /= (real)m;
    product *= inverse * inverse / (real)m;
    TS_SIMD
    for (int c = 0; c < m; c++) {
      const real t = (x[c] - mean) * inverse * scale[c] + shift[c];
      dx[c] = (dx[c] - sum - (x[c] - mean) * product) * inverse * scale[c] * real_silu_slope(t);
    }
  }
  TS_SIMD
  for (int c = 0; c < m; c++)
    x[c] = real_silu((x[c] - mean) * inverse * scale[c] + shift[c]);
}

static void add_bias(int n, int width, int stride, const real *TS_RESTRICT bias, real *y)
{
  for (int i = 0; i < n; i++) {
    real *TS_RESTRICT row = y + (size_t)i * (size_t)stride;
    TS_SIMD
    for (int c = 0; c < width; c++)
      row[c] += bias[c];
  }
}

void TS_K(radial)(const ts_radial *f, const ts_edge_block *b, int n, const int *edge, void *value,
                  int stride, void *slope, void *room)
{
  const int m = f->middle;
  real *x = room, *y = x + 2 * TS_RADIAL_BLOCK * m;
  for (int net = 0, column = 0; net < f->nets; column += f->rest[net++].third.out) {
    const ts_radial_rest *w = &f->rest[net];
    real *out = (real *)value + column;
    first_layer(f, b, net, n, edge, slope != NULL, x);
    for (int i = 0; i < n; i++)
      norm_silu(m, w->scale[0], w->shift[0], x + i * m, slope ? x + (n + i) * m : NULL);
    ts_matrix_forward(&w->second, slope ? 2 * n : n, x, m, 0.0, y, m);
    add_bias(n, m, m, w->second_bias, y);
    for (int i = 0; i < n; i++)
      norm_silu(m, w->scale[1], w->shift[1], y + i * m, slope ? y + (n + i) * m : NULL);
    ts_matrix_forward(&w->third, n, y, m, 0.0, out, stride);
    add_bias(n, w->third.out, stride, w->third_bias, out);
    if (slope) ts_matrix_forward(&w->third, n, y + n * m, m, 0.0, (real *)slope + column, f->width);
  }
}
