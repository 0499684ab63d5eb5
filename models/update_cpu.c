/* SPDX-License-Identifier: MIT
 *
 * The second half of a layer, for one tile: output map of the aggregate, residual, norm, gated
 * feed-forward, residual.  First order: the aggregate is sum_j alpha_ij u_ij (x) V_j, three planes
 * of a feature; the Clebsch-Gordan paths act on it once per atom, so no edge ever sees a rotation
 * matrix and no absolute position enters. */
#include "models/clebsch.h"
#include "models/kernels_impl.h"

/* Direction of a path product. */
typedef enum direction { FORWARD, BACKWARD } direction;

/* t [2 l3+1, A, paths C] from M [3,R,A,C] (FORWARD), or M += the transpose (BACKWARD). */
static void paths(const ts_shape *s, int l3, direction way, real *M, real *t)
{
  const int A = s->atoms, C = s->channels, rows3 = 2 * l3 + 1;
  const size_t stride = (size_t)A * (size_t)C, plane = (size_t)s->rows * stride;
  int degree[TS_CLEBSCH_PATHS];
  const int count = ts_clebsch_paths(l3, s->lmax, degree);
  if (way == FORWARD) memset(t, 0, (size_t)rows3 * (size_t)count * stride * sizeof *t);
  for (int path = 0; path < count; path++) {
    const int l1 = degree[path];
    double G[TS_CLEBSCH_MAX];
    ts_clebsch_gordan(l1, l3, G);
    for (int m1 = 0; m1 < 2 * l1 + 1; m1++)
      for (int k = 0; k < 3; k++)
        for (int m3 = 0; m3 < rows3; m3++) {
          const real g = (real)G[(m1 * 3 + k) * rows3 + m3];
          if (g == 0) continue;
          real *from = M + (size_t)k * plane + (size_t)(l1 * l1 + m1) * stride;
          real *to = t + (size_t)m3 * (size_t)count * stride + (size_t)(path * C);
          for (int a = 0; a < A; a++) {
            real *TS_RESTRICT x = from + (size_t)a * (size_t)C;
            real *TS_RESTRICT y = to + (size_t)a * (size_t)(count * C);
            if (way == FORWARD) {
              TS_SIMD
              for (int c = 0; c < C; c++)
                y[c] += g * x[c];
            } else {
              TS_SIMD
              for (int c = 0; c < C; c++)
                x[c] += g * y[c];
            }
          }
        }
  }
}

/* The widest path product, in columns of [A,C]: 2 l3+1 rows times the paths of l3. */
static size_t widest_paths(const ts_shape *s)
{
  size_t most = 0;
  for (int l3 = 0; l3 <= s->lmax; l3++) {
    int degree[TS_CLEBSCH_PATHS];
    const size_t width = (size_t)(2 * l3 + 1) * (size_t)ts_clebsch_paths(l3, s->lmax, degree);
    most = width > most ? width : most;
  }
  return most;
}

/* o [R,A,C] = output map of the aggregate. */
static void output_map(const ts_shape *s, const ts_layer *w, const real *aggregate, real *o,
                       char *scratch)
{
  if (w->order == TS_ORDER_ZERO) {
    so3_forward(s, &w->out, aggregate, o);
    return;
  }
  const size_t A = (size_t)s->atoms, W = (size_t)s->wide;
  real *t = scratch_take(&scratch, widest_paths(s) * A * (size_t)s->channels);
  real *wide = scratch_take(&scratch, (size_t)s->rows * A * W);
  for (int l = 0; l <= s->lmax; l++) {
    const ts_matrix *path = &w->path[l];
    paths(s, l, FORWARD, (real *)aggregate, t);
    ts_matrix_forward(path, (2 * l + 1) * s->atoms, t, path->in, 0.0,
                      wide + (size_t)(l * l) * A * W, s->wide);
  }
  so3_forward(s, &w->out, wide, o);
}

static void output_map_back(const ts_shape *s, const ts_layer *w, const real *o, real *daggregate,
                            char *scratch)
{
  if (w->order == TS_ORDER_ZERO) {
    so3_backward(s, &w->out, o, 0.0, daggregate);
    return;
  }
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, W = (size_t)s->wide;
  real *t = scratch_take(&scratch, widest_paths(s) * A * C);
  real *wide = scratch_take(&scratch, (size_t)s->rows * A * W);
  so3_backward(s, &w->out, o, 0.0, wide);
  memset(daggregate, 0, (size_t)(3 * s->rows) * A * C * sizeof *daggregate);
  for (int l = 0; l <= s->lmax; l++) {
    const ts_matrix *path = &w->path[l];
    ts_matrix_backward(path, (2 * l + 1) * s->atoms, wide + (size_t)(l * l) * A * W, s->wide, 0.0,
                       t, path->in);
    paths(s, l, BACKWARD, daggregate, t);
  }
}

/* x = a + b over a whole feature. */
static void add(const ts_shape *s, const real *TS_RESTRICT a, const real *TS_RESTRICT b,
                real *TS_RESTRICT x)
{
  const int count = s->rows * s->atoms * s->channels;
  TS_SIMD
  for (int i = 0; i < count; i++)
    x[i] = a[i] + b[i];
}

/* y [R,A,C]: degree 0 is SiLU of its gate, the others their rows times a sigmoid. */
static void gated(const ts_shape *s, const ts_layer *w, const real *x, const real *gates, real *y)
{
  const int A = s->atoms, C = s->channels;
  const real silu = (real)w->silu_scale, sigmoid = (real)w->sigmoid_scale;
  for (int a = 0; a < A; a++) {
    const real *TS_RESTRICT g = gates + (size_t)a * (size_t)((s->lmax + 1) * C);
    real *TS_RESTRICT y0 = y + (size_t)a * (size_t)C;
    TS_SIMD
    for (int c = 0; c < C; c++)
      y0[c] = silu * real_silu(g[c]);
    for (int l = 1; l <= s->lmax; l++) {
      const real *TS_RESTRICT gl = g + l * C;
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const size_t at = ((size_t)r * (size_t)A + (size_t)a) * (size_t)C;
        const real *TS_RESTRICT in = x + at;
        real *TS_RESTRICT out = y + at;
        TS_SIMD
        for (int c = 0; c < C; c++)
          out[c] = sigmoid * real_sigmoid(gl[c]) * in[c];
      }
    }
  }
}

/* From dy: dx of degrees >= 1 in place over dy, and dg [A,(L+1)C]. */
static void gated_back(const ts_shape *s, const ts_layer *w, const real *x, const real *gates,
                       real *dy, real *dg)
{
  const int A = s->atoms, C = s->channels;
  const real silu = (real)w->silu_scale, sigmoid = (real)w->sigmoid_scale;
  for (int a = 0; a < A; a++) {
    const size_t gate_at = (size_t)a * (size_t)((s->lmax + 1) * C);
    const real *TS_RESTRICT g = gates + gate_at;
    real *TS_RESTRICT d = dg + gate_at;
    const real *TS_RESTRICT y0 = dy + (size_t)a * (size_t)C;
    TS_SIMD
    for (int c = 0; c < C; c++)
      d[c] = silu * real_silu_slope(g[c]) * y0[c];
    for (int l = 1; l <= s->lmax; l++) {
      const real *TS_RESTRICT gl = g + l * C;
      real *TS_RESTRICT dl = d + l * C;
      memset(dl, 0, (size_t)C * sizeof *dl);
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const size_t at = ((size_t)r * (size_t)A + (size_t)a) * (size_t)C;
        const real *TS_RESTRICT in = x + at;
        real *TS_RESTRICT y = dy + at;
        TS_SIMD
        for (int c = 0; c < C; c++) {
          const real open = real_sigmoid(gl[c]);
          dl[c] += sigmoid * y[c] * in[c] * open * (1 - open);
          y[c] *= sigmoid * open;
        }
      }
    }
  }
}

void TS_K(update)(const ts_shape *s, const ts_layer *w, const void *h, const void *aggregate,
                  const ts_saved *saved, void *h_out, void *scratch_)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, R = (size_t)s->rows;
  const int gates = (s->lmax + 1) * s->channels;
  char *scratch = scratch_;
  real *n = scratch_take(&scratch, R * A * C);
  real *x = saved->ffn, *middle = saved->middle;

  output_map(s, w, aggregate, n, scratch);
  add(s, h, n, middle);
  TS_K(norm)(s, &w->norm_ffn, middle, n);
  so3_forward(s, &w->ffn_1, n, x);
  ts_matrix_forward(&w->gate, s->atoms, x, s->channels, 0.0, saved->gates, gates);
  for (size_t a = 0; a < A; a++) {
    real *TS_RESTRICT row = (real *)saved->gates + a * (size_t)gates;
    const real *TS_RESTRICT bias = w->gate_bias;
    TS_SIMD
    for (int c = 0; c < gates; c++)
      row[c] += bias[c];
  }
  gated(s, w, x, saved->gates, n);
  so3_forward(s, &w->ffn_2, n, h_out);
  add(s, middle, h_out, n);
  memcpy(h_out, n, R * A * C * sizeof *n);
}

void TS_K(update_back)(const ts_shape *s, const ts_layer *w, const ts_saved *saved, void *dh,
                       void *daggregate, void *scratch_)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, R = (size_t)s->rows;
  const int gates = (s->lmax + 1) * s->channels;
  char *scratch = scratch_;
  real *dx = scratch_take(&scratch, R * A * C);
  real *dn = scratch_take(&scratch, R * A * C);
  real *dg = scratch_take(&scratch, A * (size_t)gates);

  so3_backward(s, &w->ffn_2, dh, 0.0, dx);
  gated_back(s, w, saved->ffn, saved->gates, dx, dg);
  ts_matrix_backward(&w->gate, s->atoms, dg, gates, 0.0, dx, s->channels);
  so3_backward(s, &w->ffn_1, dx, 0.0, dn);
  TS_K(norm_back)(s, &w->norm_ffn, saved->middle, dn, dh);
  output_map_back(s, w, dh, daggregate, scratch);
}
