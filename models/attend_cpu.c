/* SPDX-License-Identifier: MIT
 *
 * Attention over the edges of a tile, forward.  Nothing is kept per edge: backward computes the
 * scores again.  Sums run in the order of the edge list (global ids), so tile size, workers and
 * scheduler do not change a bit.
 *
 * With s the score, m the largest, p = exp(s - m) env, D = sum p + eps: alpha = p w / D. */
#include "models/attend_impl.h"

/* For every edge: part [count,2H] = score | weight.  top [H] = the largest score. */
static TS_INLINE void scores(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                             const real *q, const sender *list, int count, real *part,
                             real *TS_RESTRICT top, real *dot, real *room)
{
  const int H = s->heads;
  const real *edge = b->edge;
  split_radial(&w->radial, b, list, count, part, 2 * H, NULL, room);
  for (int h = 0; h < H; h++)
    top[h] = LOWEST;
  for (int i = 0; i < count; i++) {
    const size_t e = (size_t)list[i].edge;
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    if (!w->radial.split)
      spline_rows(2 * H, radial_rows(&w->radial, b, 2 * H, e), edge + e * TS_EDGE_REALS + TS_EDGE_B,
                  score);
    dot_heads(H, s->head_dim, q, list[i].k, dot);
    TS_SIMD
    for (int h = 0; h < H; h++) {
      score[h] *= dot[h];
      top[h] = score[h] > top[h] ? score[h] : top[h];
    }
  }
}

/* Turn scores into p weight, in place of the scores; sum [H] += p. */
static TS_INLINE void exponentials(const ts_shape *s, const ts_edge_block *b, const sender *list,
                                   int count, real *part, const real *TS_RESTRICT top,
                                   real *TS_RESTRICT sum)
{
  const int H = s->heads;
  const real *edge = b->edge;
  for (int i = 0; i < count; i++) {
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    const real env = edge[(size_t)list[i].edge * TS_EDGE_REALS + TS_EDGE_ENV];
    TS_SIMD
    for (int h = 0; h < H; h++) {
      score[h] = real_exp(score[h] - top[h]) * env;
      sum[h] += score[h];
    }
  }
}

/* inverse [H]: sum on entry, 1/D on return. */
static TS_INLINE void invert(const ts_layer *w, int H, const real *TS_RESTRICT top,
                             real *TS_RESTRICT inverse)
{
  if (w->floor == TS_FLOOR_ABSOLUTE) {
    TS_SIMD
    for (int h = 0; h < H; h++)
      inverse[h] = 1 / (inverse[h] + FLOOR * real_exp(-top[h]));
  } else {
    TS_SIMD
    for (int h = 0; h < H; h++)
      inverse[h] = 1 / (inverse[h] + FLOOR);
  }
}

/* part's p into alpha. */
static TS_INLINE void weigh(int H, int count, real *part, const real *TS_RESTRICT inverse)
{
  for (int i = 0; i < count; i++) {
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    TS_SIMD
    for (int h = 0; h < H; h++)
      score[h] *= score[H + h] * inverse[h];
  }
}

/* values [n] *= scale [H], n a multiple of H. */
static TS_INLINE void scale_heads(int H, int n, const real *TS_RESTRICT scale, real *values)
{
  for (int x = 0; x < n; x += H) {
    real *TS_RESTRICT v = values + x;
    TS_SIMD
    for (int h = 0; h < H; h++)
      v[h] *= scale[h];
  }
}

/* The remote half begins with what the local half left: `top` becomes the larger of both, and sum
 * [H] and the values [rows,C] are scaled to it. */
static TS_INLINE void merge(const ts_shape *s, int rows, const real *TS_RESTRICT local,
                            real *TS_RESTRICT top, real *TS_RESTRICT sum, real *values,
                            real *TS_RESTRICT scale)
{
  const int H = s->heads, C = s->channels;
  TS_SIMD
  for (int h = 0; h < H; h++) {
    top[h] = local[h] > top[h] ? local[h] : top[h];
    scale[h] = real_exp(local[h] - top[h]);
    sum[h] *= scale[h];
  }
  scale_heads(H, rows * C, scale, values);
}

static TS_INLINE void attend(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                             ts_half half, const void *q, const void *const *kv,
                             const ts_saved *saved, void *aggregate, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)A * (size_t)C, degree = (size_t)largest_degree(b);
  char *scratch = scratch_;
  real *part = scratch_take(&scratch, degree * (size_t)(2 * H));
  real *dot = scratch_take(&scratch, (size_t)H), *one = scratch_take(&scratch, (size_t)H);
  real *local = scratch_take(&scratch, (size_t)H);
  real *sum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  real *room = scratch_take(&scratch, radial_room(&w->radial));
  sender *list = (sender *)(void *)scratch;
  real *stats = saved->stats;
  value_queue queue = {.R = R, .C = C, .H = H, .sum = sum};
  for (int h = 0; h < H; h++)
    one[h] = 1;

  for (int a = 0; a < b->n; a++) {
    real *top = stats + (size_t)a * (size_t)H, *inverse = top + (size_t)A * (size_t)H;
    real *to = (real *)aggregate + (size_t)a * (size_t)C;
    const int count = list_senders(s, b, half, kv, a, list);
    if (half == TS_HALF_REMOTE) memcpy(local, top, (size_t)H * sizeof *local);
    scores(s, w, b, (const real *)q + (size_t)a * (size_t)(H * s->head_dim), list, count, part, top,
           dot, room);
    if (half == TS_HALF_REMOTE) {
      gather(rows, C, stride, to, sum);
      merge(s, rows, local, top, inverse, sum, dot);
    } else {
      memset(sum, 0, (size_t)rows * (size_t)C * sizeof *sum);
      memset(inverse, 0, (size_t)H * sizeof *inverse);
    }
    if (half != TS_HALF_LOCAL && top[0] == LOWEST) memset(top, 0, (size_t)H * sizeof *top);
    exponentials(s, b, list, count, part, top, inverse);
    if (half != TS_HALF_LOCAL) invert(w, H, top, inverse);
    weigh(H, count, part, half == TS_HALF_BOTH ? inverse : one);
    for (int i = 0; i < count; i++) {
      const real *alpha = part + (size_t)i * (size_t)(2 * H);
      if (w->order == TS_ORDER_ZERO) {
        queue_add(&queue, alpha, list[i].v, list[i].stride);
      } else {
        accumulate_first(R, C, H, list[i].stride,
                         (const real *)b->edge + (size_t)list[i].edge * TS_EDGE_REALS + TS_EDGE_U,
                         alpha, list[i].v, sum);
      }
    }
    queue_flush(&queue);
    if (half == TS_HALF_REMOTE) scale_heads(H, rows * C, inverse, sum);
    scatter(rows, C, stride, sum, to);
  }
  clear_padding(rows, A, b->n, C, aggregate);
}

void TS_K(attend)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, ts_half half,
                  const void *q, const void *const *kv, const ts_saved *saved, void *aggregate,
                  void *scratch)
{
  if (ts_layer_is_plain(w)) {
    TS_SIZED(s, attend(sized, w, b, half, q, kv, saved, aggregate, scratch));
  } else {
    TS_K(form)(s, w, b, q, kv, aggregate, scratch);
  }
}
