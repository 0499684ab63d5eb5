/* SPDX-License-Identifier: MIT
 *
 * Attention over the edges of a tile, forward.  Nothing is kept per edge: backward computes the
 * scores again.  Sums run in the order of the edge list (global ids), so tile size, workers and
 * scheduler do not change a bit.
 *
 * With s the score, m the largest, p = exp(s - m) env, D = sum p + eps: alpha = p w / D. */
#include "models/attend_impl.h"

/* For every edge: part [count,2H] = score | weight.  top [H] = the largest score (0 if none). */
static TS_INLINE void scores(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                             const real *q, const sender *list, int count, real *part,
                             real *TS_RESTRICT top, real *dot)
{
  const int H = s->heads;
  const real *table = w->table, *edge = b->edge;
  for (int h = 0; h < H; h++)
    top[h] = count ? LOWEST : 0;
  for (int i = 0; i < count; i++) {
    const size_t e = (size_t)list[i].edge;
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    spline_rows(2 * H, table + (size_t)b->node[e] * (size_t)(2 * H),
                edge + e * TS_EDGE_REALS + TS_EDGE_B, score);
    dot_heads(H, s->head_dim, q, list[i].k, dot);
    TS_SIMD
    for (int h = 0; h < H; h++) {
      score[h] *= dot[h];
      top[h] = score[h] > top[h] ? score[h] : top[h];
    }
  }
}

/* Turn scores into alpha, in place of the scores; inverse [H] = 1/D. */
static TS_INLINE void softmax(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                              const sender *list, int count, real *part,
                              const real *TS_RESTRICT top, real *TS_RESTRICT inverse)
{
  const int H = s->heads;
  const real *edge = b->edge;
  memset(inverse, 0, (size_t)H * sizeof *inverse);
  for (int i = 0; i < count; i++) {
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    const real env = edge[(size_t)list[i].edge * TS_EDGE_REALS + TS_EDGE_ENV];
    TS_SIMD
    for (int h = 0; h < H; h++) {
      score[h] = real_exp(score[h] - top[h]) * env;
      inverse[h] += score[h];
    }
  }
  if (w->floor == TS_FLOOR_ABSOLUTE) {
    TS_SIMD
    for (int h = 0; h < H; h++)
      inverse[h] = 1 / (inverse[h] + FLOOR * real_exp(-top[h]));
  } else {
    TS_SIMD
    for (int h = 0; h < H; h++)
      inverse[h] = 1 / (inverse[h] + FLOOR);
  }
  for (int i = 0; i < count; i++) {
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    TS_SIMD
    for (int h = 0; h < H; h++)
      score[h] *= score[H + h] * inverse[h];
  }
}

static TS_INLINE void attend(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                             const void *q, const void *const *kv, const ts_saved *saved,
                             void *aggregate, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)A * (size_t)C, degree = (size_t)largest_degree(b);
  char *scratch = scratch_;
  real *part = scratch_take(&scratch, degree * (size_t)(2 * H));
  real *dot = scratch_take(&scratch, (size_t)H);
  real *sum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  sender *list = (sender *)(void *)scratch;
  real *stats = saved->stats;
  value_queue queue = {.R = R, .C = C, .H = H, .stride = stride, .sum = sum};

  for (int a = 0; a < b->n; a++) {
    real *top = stats + (size_t)a * (size_t)H, *inverse = top + (size_t)A * (size_t)H;
    const int count = list_senders(s, b, kv, a, list);
    scores(s, w, b, (const real *)q + (size_t)a * (size_t)(H * s->head_dim), list, count, part, top,
           dot);
    softmax(s, w, b, list, count, part, top, inverse);
    memset(sum, 0, (size_t)rows * (size_t)C * sizeof *sum);
    for (int i = 0; i < count; i++) {
      const real *alpha = part + (size_t)i * (size_t)(2 * H);
      if (w->order == TS_ORDER_ZERO) {
        queue_add(&queue, alpha, list[i].v);
      } else {
        accumulate_first(R, C, H, stride,
                         (const real *)b->edge + (size_t)list[i].edge * TS_EDGE_REALS + TS_EDGE_U,
                         alpha, list[i].v, sum);
      }
    }
    queue_flush(&queue);
    scatter(rows, C, stride, sum, (real *)aggregate + (size_t)a * (size_t)C);
  }
  clear_padding(rows, A, b->n, C, aggregate);
}

void TS_K(attend)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                  const void *const *kv, const ts_saved *saved, void *aggregate, void *scratch)
{
  if (ts_layer_is_plain(w)) {
    TS_SIZED(s, attend(sized, w, b, q, kv, saved, aggregate, scratch));
  } else {
    TS_K(form)(s, w, b, q, kv, aggregate, scratch);
  }
}
