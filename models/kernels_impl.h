/* SPDX-License-Identifier: MIT
 *
 * What the kernel sources share: small inline pieces, and the prototypes of the functions that
 * kernel_table_cpu.c collects.  Included only by sources compiled per precision and ISA. */
#ifndef TS_KERNELS_IMPL_H
#define TS_KERNELS_IMPL_H

#include "models/kernels.h"
#include "models/real.h"

void TS_K(edge)(const ts_edge_params *p, int64_t count, const double *geometry,
                const uint8_t *active, const int32_t *pair, int32_t *node, void *edge);
void TS_K(embed)(const ts_shape *s, double average_degree, const ts_radial *f,
                 const ts_edge_block *b, void *h, void *scratch);
void TS_K(embed_back)(const ts_shape *s, double average_degree, const ts_radial *f,
                      const ts_edge_block *b, const void *dh, void *grad, void *scratch);
/* Split radial functions of the edges edge[0..n), n <= TS_RADIAL_BLOCK: value [n,W] in rows
 * `stride` apart and, where it is not NULL, slope [n,W]; room real [radial_room]. */
void TS_K(radial)(const ts_radial *f, const ts_edge_block *b, int n, const int *edge, void *value,
                  int stride, void *slope, void *room);
void TS_K(project)(const ts_shape *s, const ts_layer *w, const void *h, void *q, void *kv,
                   const ts_saved *saved, void *scratch);
void TS_K(project_back)(const ts_shape *s, const ts_layer *w, const void *h, const void *dq,
                        const void *dkv, const ts_saved *saved, void *dh, void *scratch);
void TS_K(attend)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, ts_half half,
                  const void *q, const void *const *kv, const ts_saved *saved, void *aggregate,
                  void *scratch);
void TS_K(attend_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                       const void *const *kv, const ts_saved *saved, const void *daggregate,
                       void *dq, void *share, void *grad, void *scratch);
void TS_K(attend_send_back)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                            const void *const *q, const void *const *daggregate,
                            const void *const *share, const void *const *active,
                            const void *const *edges, void *dkv, void *scratch);
bool TS_K(attend_send_fixed)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                             const void *const *q, const void *const *daggregate,
                             const void *const *share, const void *const *active,
                             const void *const *edges, int64_t *fixed, void *scratch);
void TS_K(settle)(const ts_shape *s, int n, int rows, const int64_t *fixed, void *dkv);
void TS_K(pack)(const ts_shape *s, int n, const int32_t *slot, const void *const *kv, void *out);
void TS_K(add_returned)(const ts_shape *s, int n, const int32_t *slot, const int32_t *row,
                        const int32_t *rows, const void *const *blocks, void *dkv);
void TS_K(form)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                const void *const *kv, void *aggregate, void *scratch);
void TS_K(form_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                     const void *const *kv, const void *daggregate, void *dq, void *share,
                     void *grad, void *scratch);
void TS_K(update)(const ts_shape *s, const ts_layer *w, const void *h, const void *aggregate,
                  const ts_saved *saved, void *h_out, void *scratch);
void TS_K(update_back)(const ts_shape *s, const ts_layer *w, const ts_saved *saved, void *dh,
                       void *daggregate, void *scratch);
void TS_K(norm)(const ts_shape *s, const ts_norm *w, const void *h, void *out);
void TS_K(norm_back)(const ts_shape *s, const ts_norm *w, const void *h, const void *dout,
                     void *dh);
void TS_K(head)(const ts_shape *s, const ts_head *w, int n, const void *hshort, const void *hlast,
                double *energy, void *dshort, void *dlast, void *scratch);
void TS_K(edge_force)(int64_t count, const double *geometry, const uint8_t *active,
                      const void *grad, double *pull);

extern const ts_matrix_ops TS_K(packed_ops);

#define TS_INLINE inline __attribute__((always_inline))

/* A shape whose sizes are literals, where `s` has them. */
static TS_INLINE bool shape_fits(const ts_shape *s, int heads, int head_dim, int channels,
                                 ts_shape *out)
{
  if (s->heads != heads || s->head_dim != head_dim || s->channels != channels || s->lmax != 2)
    return false;
  *out = (ts_shape){.atoms = s->atoms,
                    .channels = channels,
                    .heads = heads,
                    .head_dim = head_dim,
                    .lmax = 2,
                    .rows = 9,
                    .hidden = heads * head_dim / 2,
                    .wide = s->wide,
                    .directed = s->directed,
                    .radial = s->radial};
  return true;
}

/* `call` with `sized` in place of the shape: a body of its own for the published width and for that
 * of the example potential, and one for all others. */
#define TS_SIZED(s, call)                          \
  do {                                             \
    ts_shape fixed_;                               \
    const ts_shape *sized = &fixed_;               \
    if (shape_fits(s, 128, 8, 256, &fixed_)) {     \
      call;                                        \
    } else if (shape_fits(s, 8, 8, 32, &fixed_)) { \
      call;                                        \
    } else {                                       \
      sized = s;                                   \
      call;                                        \
    }                                              \
  } while (0)

/* y [rows,in->out] of one SO(3)-linear map: each degree's rows are one matrix. */
static inline void so3_forward(const ts_shape *s, const ts_so3 *w, const real *x, real *y)
{
  const int in = w->degree[0].in, out = w->degree[0].out, A = s->atoms;
  for (int l = 0; l <= s->lmax; l++)
    ts_matrix_forward(&w->degree[l], (2 * l + 1) * A, x + (size_t)(l * l * A) * (size_t)in, in, 0.0,
                      y + (size_t)(l * l * A) * (size_t)out, out);
  if (!w->bias) return;
  for (int a = 0; a < A; a++) {
    real *TS_RESTRICT row = y + (size_t)a * (size_t)out;
    const real *TS_RESTRICT bias = w->bias;
    TS_SIMD
    for (int c = 0; c < out; c++)
      row[c] += bias[c];
  }
}

static inline void so3_backward(const ts_shape *s, const ts_so3 *w, const real *dy, double beta,
                                real *dx)
{
  const int in = w->degree[0].in, out = w->degree[0].out, A = s->atoms;
  for (int l = 0; l <= s->lmax; l++)
    ts_matrix_backward(&w->degree[l], (2 * l + 1) * A, dy + (size_t)(l * l * A) * (size_t)out, out,
                       beta, dx + (size_t)(l * l * A) * (size_t)in, in);
}

/* Mean and 1/deviation of x [F]. */
static inline void layer_statistics(int F, const real *TS_RESTRICT x, real *mean, real *inverse)
{
  real sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
  for (int f = 0; f < F; f++)
    sum += x[f];
  const real m = sum / (real)F;
#pragma omp simd reduction(+ : square)
  for (int f = 0; f < F; f++)
    square += (x[f] - m) * (x[f] - m);
  *mean = m;
  *inverse = (real)1 / (real)sqrt(square / (real)F + (real)1e-5);
}

/* y = SiLU(layer norm(x)) of every row; x [rows,F], scale and shift [F]. */
static inline void layer_silu(int rows, int F, const void *scale, const void *shift, const real *x,
                              real *y)
{
  const real *TS_RESTRICT g = scale, *TS_RESTRICT b = shift;
  for (int a = 0; a < rows; a++) {
    const real *TS_RESTRICT in = x + (size_t)a * (size_t)F;
    real *TS_RESTRICT out = y + (size_t)a * (size_t)F;
    real mean, inverse;
    layer_statistics(F, in, &mean, &inverse);
    TS_SIMD
    for (int f = 0; f < F; f++)
      out[f] = real_silu((in[f] - mean) * inverse * g[f] + b[f]);
  }
}

/* dx of the same, over dy in place. */
static inline void layer_silu_back(int rows, int F, const void *scale, const void *shift,
                                   const real *x, real *dy)
{
  const real *TS_RESTRICT g = scale, *TS_RESTRICT b = shift;
  for (int a = 0; a < rows; a++) {
    const real *TS_RESTRICT in = x + (size_t)a * (size_t)F;
    real *TS_RESTRICT d = dy + (size_t)a * (size_t)F;
    real mean, inverse, sum = 0, product = 0;
    layer_statistics(F, in, &mean, &inverse);
#pragma omp simd reduction(+ : sum, product)
    for (int f = 0; f < F; f++) {
      const real t = (in[f] - mean) * inverse;
      d[f] *= real_silu_slope(t * g[f] + b[f]) * g[f];
      sum += d[f];
      product += d[f] * t;
    }
    sum /= (real)F;
    product /= (real)F;
    TS_SIMD
    for (int f = 0; f < F; f++)
      d[f] = inverse * (d[f] - sum - (in[f] - mean) * inverse * product);
  }
}

#define SQRT3 ((real)1.7320508075688772)
#define SQRT5 ((real)2.23606797749979)
#define SQRT15 ((real)3.872983346207417)
#define SQRT7_4 ((real)1.3228756555322954) /* sqrt(7)/2 */
#define SQRT105 ((real)10.246950765959598)
#define SQRT42_4 ((real)1.6201851746019651) /* sqrt(42)/4 */
#define SQRT70_4 ((real)2.091650066335189)  /* sqrt(70)/4 */

/* Real spherical harmonics up to degree lmax <= 3, |Y_l|^2 = 2l+1, y the polar axis
 * (models/clebsch.h has the order of the rows). */
static TS_INLINE void spherical(int lmax, const real *u, real *Y)
{
  const real x = u[0], y = u[1], z = u[2];
  Y[0] = 1;
  Y[1] = SQRT3 * x;
  Y[2] = SQRT3 * y;
  Y[3] = SQRT3 * z;
  if (lmax < 2) return;
  Y[4] = SQRT15 * x * z;
  Y[5] = SQRT15 * x * y;
  Y[6] = SQRT5 * (y * y - (x * x + z * z) / 2);
  Y[7] = SQRT15 * y * z;
  Y[8] = SQRT15 / 2 * (z * z - x * x);
  if (lmax < 3) return;
  Y[9] = SQRT70_4 * x * (3 * z * z - x * x);
  Y[10] = SQRT105 * x * y * z;
  Y[11] = SQRT42_4 * x * (4 * y * y - x * x - z * z);
  Y[12] = SQRT7_4 * y * (2 * y * y - 3 * (x * x + z * z));
  Y[13] = SQRT42_4 * z * (4 * y * y - x * x - z * z);
  Y[14] = SQRT105 / 2 * y * (z * z - x * x);
  Y[15] = SQRT70_4 * z * (z * z - 3 * x * x);
}

/* The part of degree 3 in the function below; dY [7]. */
static TS_INLINE void spherical_back_3(const real *u, const real *dY, real *du)
{
  const real x = u[0], y = u[1], z = u[2], xx = x * x, yy = y * y, zz = z * z;
  const real a = SQRT70_4 * dY[0], b = SQRT105 * dY[1], c = SQRT42_4 * dY[2], d = SQRT7_4 * dY[3];
  const real e = SQRT42_4 * dY[4], f = SQRT105 / 2 * dY[5], g = SQRT70_4 * dY[6];
  du[0] += 3 * a * (zz - xx) + b * y * z + c * (4 * yy - 3 * xx - zz) - 6 * d * x * y -
           2 * e * x * z - 2 * f * x * y - 6 * g * x * z;
  du[1] += b * x * z + 8 * c * x * y + 3 * d * (2 * yy - xx - zz) + 8 * e * y * z + f * (zz - xx);
  du[2] += 6 * a * x * z + b * x * y - 2 * c * x * z - 6 * d * y * z + e * (4 * yy - xx - 3 * zz) +
           2 * f * y * z + 3 * g * (zz - xx);
}

/* du += d(Y.dY)/du of the same polynomials. */
static TS_INLINE void spherical_back(int lmax, const real *u, const real *dY, real *du)
{
  const real x = u[0], y = u[1], z = u[2];
  if (lmax < 2) {
    for (int k = 0; k < 3; k++)
      du[k] += SQRT3 * dY[1 + k];
    return;
  }
  du[0] += SQRT3 * dY[1] + SQRT15 * (z * dY[4] + y * dY[5] - x * dY[8]) - SQRT5 * x * dY[6];
  du[1] += SQRT3 * dY[2] + SQRT15 * (x * dY[5] + z * dY[7]) + SQRT5 * 2 * y * dY[6];
  du[2] += SQRT3 * dY[3] + SQRT15 * (x * dY[4] + y * dY[7] + z * dY[8]) - SQRT5 * z * dY[6];
  if (lmax > 2) spherical_back_3(u, dY + 9, du);
}

/* Reals that TS_K(radial) needs, if it is called for f at all. */
static inline size_t radial_room(const ts_radial *f)
{
  return f->split ? (size_t)(4 * TS_RADIAL_BLOCK * f->middle) : 0;
}

/* out [width] = sum over 6 spline rows, `stride` apart, of weight[k] table[k,width]. */
static TS_INLINE void spline_part(int width, int stride, const real *TS_RESTRICT table,
                                  const real *TS_RESTRICT weight, real *TS_RESTRICT out)
{
  const real *TS_RESTRICT t1 = table + stride, *TS_RESTRICT t2 = t1 + stride,
                          *TS_RESTRICT t3 = t2 + stride, *TS_RESTRICT t4 = t3 + stride,
                          *TS_RESTRICT t5 = t4 + stride;
  TS_SIMD
  for (int c = 0; c < width; c++)
    out[c] = weight[0] * table[c] + weight[1] * t1[c] + weight[2] * t2[c] + weight[3] * t3[c] +
             weight[4] * t4[c] + weight[5] * t5[c];
}

static TS_INLINE void spline_rows(int width, const real *table, const real *weight, real *out)
{
  spline_part(width, width, table, weight, out);
}

/* sum of slope[c] d[c]: the same from slopes. */
static TS_INLINE real slope_pull(int width, const real *TS_RESTRICT slope,
                                 const real *TS_RESTRICT d)
{
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < width; c++)
    sum += slope[c] * d[c];
  return sum;
}

/* sum over rows and columns of slope[k] table[k,c] d[c]: what a gradient of the outputs pulls on
 * the distance. */
static TS_INLINE real spline_pull(int width, const real *TS_RESTRICT table,
                                  const real *TS_RESTRICT slope, const real *TS_RESTRICT d)
{
  const real *TS_RESTRICT t1 = table + width, *TS_RESTRICT t2 = t1 + width,
                          *TS_RESTRICT t3 = t2 + width, *TS_RESTRICT t4 = t3 + width,
                          *TS_RESTRICT t5 = t4 + width;
  real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < width; c++)
    sum += d[c] * (slope[0] * table[c] + slope[1] * t1[c] + slope[2] * t2[c] + slope[3] * t3[c] +
                   slope[4] * t4[c] + slope[5] * t5[c]);
  return sum;
}

#endif
