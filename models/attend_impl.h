/* SPDX-License-Identifier: MIT
 *
 * Pieces of attention that forward and backward share.  Everything is inlined into the three bodies
 * of each kernel (see TS_SIZED): with heads and channels as literals the short loops over them
 * become a few vector instructions, which is worth a factor of two at small widths. */
#ifndef TS_ATTEND_IMPL_H
#define TS_ATTEND_IMPL_H

#include "models/kernels_impl.h"

static const real FLOOR = (real)1e-3;   /* eps of the softmax */
static const real LOWEST = (real)-1e30; /* below any score */

/* dot [H] = sum over d of q k, heads innermost. */
#define DOT_HEADS(d)                      \
  TS_SIMD                                 \
  for (int h = 0; h < H; h++) {           \
    real sum = q[h] * k[h];               \
    for (int x = 1; x < (d); x++)         \
      sum += q[x * H + h] * k[x * H + h]; \
    dot[h] = sum;                         \
  }

static TS_INLINE void dot_heads(int H, int d, const real *TS_RESTRICT q, const real *TS_RESTRICT k,
                                real *TS_RESTRICT dot)
{
  if (d == 8) { /* literal widths keep the sum in a register */
    DOT_HEADS(8)
  } else if (d == 4) {
    DOT_HEADS(4)
  } else {
    memset(dot, 0, (size_t)H * sizeof *dot);
    for (int x = 0; x < d; x++) {
      TS_SIMD
      for (int h = 0; h < H; h++)
        dot[h] += q[x * H + h] * k[x * H + h];
    }
  }
}

/* y [d,H] += a [H] x [d,H]. */
static TS_INLINE void add_heads(int H, int d, const real *TS_RESTRICT a, const real *TS_RESTRICT x,
                                real *TS_RESTRICT y)
{
  for (int i = 0; i < d; i++) {
    TS_SIMD
    for (int h = 0; h < H; h++)
      y[i * H + h] += a[h] * x[i * H + h];
  }
}

/* Copy one atom's rows of a feature ([rows,A,C]) to or from a contiguous [rows,C]. */
static TS_INLINE void gather(int rows, int C, size_t stride, const real *from, real *to)
{
  for (int r = 0; r < rows; r++)
    memcpy(to + r * C, from + (size_t)r * stride, (size_t)C * sizeof *to);
}

static TS_INLINE void scatter(int rows, int C, size_t stride, const real *from, real *to)
{
  for (int r = 0; r < rows; r++)
    memcpy(to + (size_t)r * stride, from + r * C, (size_t)C * sizeof *to);
}

/* sum [R,C] += alpha [H] v of four edges, or of one: four share one load and store of the sum. */
static TS_INLINE void accumulate4(int R, int C, int H, const size_t stride[4],
                                  const real *const alpha[4], const real *const v[4],
                                  real *TS_RESTRICT sum)
{
  const real *TS_RESTRICT a0 = alpha[0], *TS_RESTRICT a1 = alpha[1], *TS_RESTRICT a2 = alpha[2],
                          *TS_RESTRICT a3 = alpha[3];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c += H) {
      const size_t row = (size_t)r;
      const real *TS_RESTRICT v0 = v[0] + row * stride[0] + c,
                              *TS_RESTRICT v1 = v[1] + row * stride[1] + c,
                              *TS_RESTRICT v2 = v[2] + row * stride[2] + c,
                              *TS_RESTRICT v3 = v[3] + row * stride[3] + c;
      real *TS_RESTRICT out = sum + r * C + c;
      TS_SIMD
      for (int h = 0; h < H; h++)
        out[h] += (a0[h] * v0[h] + a1[h] * v1[h]) + (a2[h] * v2[h] + a3[h] * v3[h]);
    }
}

static TS_INLINE void accumulate1(int R, int C, int H, size_t stride, const real *TS_RESTRICT alpha,
                                  const real *v, real *TS_RESTRICT sum)
{
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c += H) {
      const real *TS_RESTRICT x = v + (size_t)r * stride + (size_t)c;
      real *TS_RESTRICT out = sum + r * C + c;
      TS_SIMD
      for (int h = 0; h < H; h++)
        out[h] += alpha[h] * x[h];
    }
}

/* Up to four weighted values on their way into a sum; what they point to stays until the flush.
 * A value's rows are its stride apart. */
typedef struct value_queue {
  int R, C, H, count;
  size_t stride[4];
  const real *alpha[4], *v[4];
  real *sum; /* [R,C] */
} value_queue;

static TS_INLINE void queue_flush(value_queue *q)
{
  for (int k = 0; k < q->count; k++)
    accumulate1(q->R, q->C, q->H, q->stride[k], q->alpha[k], q->v[k], q->sum);
  q->count = 0;
}

static TS_INLINE void queue_add(value_queue *q, const real *alpha, const real *v, size_t stride)
{
  q->stride[q->count] = stride;
  q->alpha[q->count] = alpha;
  q->v[q->count++] = v;
  if (q->count < 4) return;
  accumulate4(q->R, q->C, q->H, q->stride, q->alpha, q->v, q->sum);
  q->count = 0;
}

/* sum [3,R,C] += u (x) alpha v. */
static TS_INLINE void accumulate_first(int R, int C, int H, size_t stride,
                                       const real *TS_RESTRICT u, const real *TS_RESTRICT alpha,
                                       const real *v, real *sum)
{
  const real ux = u[0], uy = u[1], uz = u[2];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c += H) {
      const real *TS_RESTRICT x = v + (size_t)r * stride + (size_t)c;
      real *TS_RESTRICT s0 = sum + r * C + c, *TS_RESTRICT s1 = s0 + R * C,
                        *TS_RESTRICT s2 = s1 + R * C;
      TS_SIMD
      for (int h = 0; h < H; h++) {
        const real t = alpha[h] * x[h];
        s0[h] += ux * t;
        s1[h] += uy * t;
        s2[h] += uz * t;
      }
    }
}

/* The active edges of one receiver and where their senders' keys and values are. */
typedef struct sender {
  int edge;
  const real *k, *v;
  size_t stride; /* between the rows of v */
} sender;

static TS_INLINE int list_senders(const ts_shape *s, const ts_edge_block *b, ts_half half,
                                  const void *const *kv, int a, sender *list)
{
  const size_t Hd = (size_t)s->heads * (size_t)s->head_dim, C = (size_t)s->channels;
  const int first = half == TS_HALF_REMOTE ? b->local : 0;
  const int last = half == TS_HALF_LOCAL ? b->local : TS_SLOT_BLOCKS;
  int count = 0;
  for (int e = b->row[a]; e < b->row[a + 1];
       e++) { /* which are kept is hard to foresee: no branch */
    const int block = b->sender[e] >> TS_SLOT_BITS;
    list[count].edge = e;
    count += (b->active[e] != 0) & (block >= first) & (block < last);
  }
  for (int i = 0; i < count; i++) {
    const int e = list[i].edge, block = b->sender[e] >> TS_SLOT_BITS;
    const size_t row = (size_t)(b->sender[e] & (TS_SLOT_ROWS - 1)), rows = (size_t)b->rows[block];
    const real *k = kv[block];
    list[i] = (sender){e, k + row * Hd, k + rows * Hd + row * C, rows * C};
  }
  return count;
}

/* Where radial functions are split: those of all of a receiver's edges, value [count,W] in rows
 * `stride` apart and, if it is not NULL, slope [count,W]. */
static TS_INLINE void split_radial(const ts_radial *f, const ts_edge_block *b, const sender *list,
                                   int count, real *value, int stride, real *slope, real *room)
{
  int edge[TS_RADIAL_BLOCK];
  if (!f->split) return;
  for (int i = 0; i < count; i += TS_RADIAL_BLOCK) {
    const int n = count - i < TS_RADIAL_BLOCK ? count - i : TS_RADIAL_BLOCK;
    for (int k = 0; k < n; k++)
      edge[k] = list[i + k].edge;
    TS_K(radial)
    (f, b, n, edge, value + (size_t)i * (size_t)stride, stride,
     slope ? slope + (size_t)i * (size_t)f->width : NULL, room);
  }
}

/* The coefficients of an edge's interval, where they are not. */
static TS_INLINE const real *radial_rows(const ts_radial *f, const ts_edge_block *b, int width,
                                         size_t edge)
{
  return (const real *)f->table + (size_t)b->node[edge] * (size_t)width;
}

static TS_INLINE int largest_degree(const ts_edge_block *b)
{
  int most = 0;
  for (int a = 0; a < b->n; a++)
    most = b->row[a + 1] - b->row[a] > most ? b->row[a + 1] - b->row[a] : most;
  return most;
}

/* z [H] = sums of a [C] over each head's channels, c mod H. */
static TS_INLINE void fold_heads(int H, int C, const real *TS_RESTRICT a, real *TS_RESTRICT z)
{
  TS_SIMD
  for (int h = 0; h < H; h++) {
    real sum = a[h];
    for (int c = H; c < C; c += H)
      sum += a[c + h];
    z[h] = sum;
  }
}

/* a [C] = (added to, if `more`) sum over rows of x [R,C] v; R is a literal. */
static TS_INLINE void dot_some(int R, bool more, int C, size_t stride, const real *TS_RESTRICT x,
                               const real *TS_RESTRICT v, real *TS_RESTRICT a)
{
  TS_SIMD
  for (int c = 0; c < C; c++) {
    real sum = more ? a[c] : 0;
    for (int r = 0; r < R; r++)
      sum += x[r * C + c] * v[(size_t)r * stride + (size_t)c];
    a[c] = sum;
  }
}

/* a [C] = sum over rows of x [R,C] v; R is 4, 9 or 16. */
static TS_INLINE void dot_rows(int R, int C, size_t stride, const real *x, const real *v, real *a)
{
  if (R == 9) {
    dot_some(9, false, C, stride, x, v, a);
    return;
  }
  dot_some(4, false, C, stride, x, v, a);
  for (int r = 4; r < R; r += 4)
    dot_some(4, true, C, stride, x + r * C, v + (size_t)r * stride, a);
}

/* Per edge of one receiver, all [H]: what the second pass of backward reads.  With alpha the weight
 * of a value, share is alpha / (weight env). */
enum { GATE, WEIGHT, DOT, SHARE, DALPHA, PARTS };

/* dalpha [H] of one edge from the gradient of the aggregate (local [rows,C]); first order also
 * adds to du [3]. */
static TS_INLINE void alpha_back(const ts_shape *s, const ts_layer *w, const real *dsum,
                                 const sender *from, const real *edge, real *part, real *z,
                                 real *du)
{
  const int H = s->heads, C = s->channels, R = s->rows;
  const size_t stride = from->stride;
  real *dalpha = part + DALPHA * H;
  if (w->order == TS_ORDER_ZERO) {
    dot_rows(R, C, stride, dsum, from->v, z);
    fold_heads(H, C, z, dalpha);
    return;
  }
  const real *u = edge + TS_EDGE_U;
  const real env = edge[TS_EDGE_ENV], ux = u[0], uy = u[1], uz = u[2];
  real x = 0, y = 0, dz = 0;
  real *a = z + 3 * H;
  for (int k = 0; k < 3; k++) {
    dot_rows(R, C, stride, dsum + k * R * C, from->v, a);
    fold_heads(H, C, a, z + k * H);
  }
#pragma omp simd reduction(+ : x, y, dz)
  for (int h = 0; h < H; h++) {
    const real alpha = part[SHARE * H + h] * part[WEIGHT * H + h] * env;
    x += alpha * z[h];
    y += alpha * z[H + h];
    dz += alpha * z[2 * H + h];
    dalpha[h] = ux * z[h] + uy * z[H + h] + uz * z[2 * H + h];
  }
  du[0] += x;
  du[1] += y;
  du[2] += dz;
}

/* Zero the rows of atoms that are not there, in [rows,A,width]. */
static TS_INLINE void clear_padding(int rows, int A, int n, int width, real *x)
{
  for (int r = 0; r < rows && n < A; r++)
    memset(x + ((size_t)r * (size_t)A + (size_t)n) * (size_t)width, 0,
           (size_t)(A - n) * (size_t)width * sizeof *x);
}

#endif
