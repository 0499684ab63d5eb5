/* SPDX-License-Identifier: MIT
 *
 * Attention, backward: by receiver (queries, radial functions, distances) and by sender (keys,
 * values).  Scores are computed again from q, k and the tables, which costs less than moving them;
 * per edge only the two factors that the senders need are left behind.
 *
 * With S = sum dalpha alpha:  dw = dalpha p/D,  ds = p/D (dalpha w - S), and where eps is scaled by
 * the largest score ("max"), that score takes -eps S / D more (docs/model.md). */
#include "models/attend_impl.h"

/* First pass: parts of every edge, S [H] = sum dalpha alpha, top [H] and how often it is reached.
 */
static TS_INLINE void back_gather(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                                  const real *q, const real *dsum, const sender *list, int count,
                                  const real *stats_top, const real *stats_inverse, real *parts,
                                  real *TS_RESTRICT S, real *TS_RESTRICT top,
                                  real *TS_RESTRICT ties, real *z, real *grad)
{
  const int H = s->heads;
  memset(S, 0, (size_t)H * sizeof *S);
  memset(ties, 0, (size_t)H * sizeof *ties);
  for (int h = 0; h < H; h++)
    top[h] = LOWEST;
  for (int i = 0; i < count; i++) {
    const size_t e = (size_t)list[i].edge;
    const real *x = (const real *)b->edge + e * TS_EDGE_REALS;
    real *TS_RESTRICT p = parts + (size_t)i * (size_t)(PARTS * H);
    const real env = x[TS_EDGE_ENV];
    if (!w->radial.split)
      spline_rows(2 * H, radial_rows(&w->radial, b, 2 * H, e), x + TS_EDGE_B, p);
    dot_heads(H, s->head_dim, q, list[i].k, p + DOT * H);
    TS_SIMD
    for (int h = 0; h < H; h++) {
      const real score = p[GATE * H + h] * p[DOT * H + h];
      p[SHARE * H + h] = real_exp(score - stats_top[h]) * stats_inverse[h];
    }
    TS_SIMD
    for (int h = 0; h < H; h++) {
      const real score = p[GATE * H + h] * p[DOT * H + h], most = top[h];
      const real again = score == most ? ties[h] + 1 : ties[h];
      ties[h] = score > most ? 1 : again;
      top[h] = score > most ? score : most;
    }
    alpha_back(s, w, dsum, &list[i], x, p, z, grad + 4 * e);
    TS_SIMD
    for (int h = 0; h < H; h++)
      S[h] += p[DALPHA * H + h] * p[SHARE * H + h] * p[WEIGHT * H + h] * env;
  }
}

/* Second pass, one edge: shares for the sender, dq, and the pull on the distance. */
static TS_INLINE void back_edge(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                                const sender *from, real *TS_RESTRICT p, const real *TS_RESTRICT S,
                                const real *TS_RESTRICT top, const real *TS_RESTRICT ties,
                                const real *TS_RESTRICT inverse, const real *slope, real *dq,
                                real *TS_RESTRICT share, real *grad)
{
  const int H = s->heads;
  const size_t e = (size_t)from->edge;
  const real *x = (const real *)b->edge + e * TS_EDGE_REALS;
  const real env = x[TS_EDGE_ENV], floor = w->floor == TS_FLOOR_MAX ? FLOOR : 0;
  real denv = 0;
#pragma omp simd reduction(+ : denv)
  for (int h = 0; h < H; h++) {
    const real gate = p[GATE * H + h], weight = p[WEIGHT * H + h], dot = p[DOT * H + h];
    const real raw = p[SHARE * H + h], dalpha = p[DALPHA * H + h];
    const real pull = raw * (dalpha * weight - S[h]);
    denv += pull;
    real ds = pull * env;
    ds -= gate * dot == top[h] ? floor * inverse[h] * S[h] / ties[h] : 0;
    share[h] = raw * env * weight;
    share[H + h] = ds * gate;
    p[GATE * H + h] = ds * dot;
    p[WEIGHT * H + h] = dalpha * raw * env;
  }
  add_heads(H, s->head_dim, share + H, from->k, dq);
  const real pull =
      w->radial.split ? slope_pull(2 * H, slope, p)
                      : spline_pull(2 * H, radial_rows(&w->radial, b, 2 * H, e), x + TS_EDGE_DB, p);
  grad[3] += pull + denv * x[TS_EDGE_DENV];
}

static TS_INLINE void attend_back(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                                  const void *q_, const void *const *kv, const ts_saved *saved,
                                  const void *daggregate, void *dq_, void *share, void *grad_,
                                  void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms, Hd = H * s->head_dim;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)A * (size_t)C, degree = (size_t)largest_degree(b);
  char *scratch = scratch_;
  real *parts = scratch_take(&scratch, degree * (size_t)(PARTS * H));
  real *dsum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  real *z = scratch_take(&scratch, (size_t)(3 * H + C));
  real *S = scratch_take(&scratch, (size_t)(3 * H)), *top = S + H, *ties = top + H;
  real *slopes = scratch_take(&scratch, w->radial.split ? degree * (size_t)(2 * H) : 0);
  real *room = scratch_take(&scratch, radial_room(&w->radial));
  sender *list = (sender *)(void *)scratch;
  real *grad = grad_, *dq = dq_;

  memset(dq, 0, (size_t)A * (size_t)Hd * sizeof *dq);
  for (int a = 0; a < b->n; a++) {
    const real *stats_top = (const real *)saved->stats + (size_t)a * (size_t)H;
    const real *inverse = stats_top + (size_t)A * (size_t)H;
    const int count = list_senders(s, b, TS_HALF_BOTH, kv, a, list);
    gather(rows, C, stride, (const real *)daggregate + (size_t)a * (size_t)C, dsum);
    split_radial(&w->radial, b, list, count, parts, PARTS * H, slopes, room);
    back_gather(s, w, b, (const real *)q_ + (size_t)a * (size_t)Hd, dsum, list, count, stats_top,
                inverse, parts, S, top, ties, z, grad);
    for (int i = 0; i < count; i++)
      back_edge(s, w, b, &list[i], parts + (size_t)i * (size_t)(PARTS * H), S, top, ties, inverse,
                slopes + (w->radial.split ? (size_t)i * (size_t)(2 * H) : 0),
                dq + (size_t)a * (size_t)Hd, (real *)share + (size_t)list[i].edge * (size_t)(2 * H),
                grad + 4 * (size_t)list[i].edge);
  }
}

void TS_K(attend_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                       const void *const *kv, const ts_saved *saved, const void *daggregate,
                       void *dq, void *share, void *grad, void *scratch)
{
  if (ts_layer_is_plain(w)) {
    TS_SIZED(s, attend_back(sized, w, b, q, kv, saved, daggregate, dq, share, grad, scratch));
  } else {
    TS_K(form_back)(s, w, b, q, kv, daggregate, dq, share, grad, scratch);
  }
}

/* dv [R,C] += alpha u . dM of one receiver. */
static TS_INLINE void send_first(int R, int C, int H, size_t stride, const real *u,
                                 const real *TS_RESTRICT alpha, const real *dM, real *dv)
{
  const real ux = u[0], uy = u[1], uz = u[2];
  const size_t plane = (size_t)R * stride;
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c += H) {
      const real *TS_RESTRICT x = dM + (size_t)r * stride + (size_t)c, *TS_RESTRICT y = x + plane,
                              *TS_RESTRICT z = y + plane;
      real *TS_RESTRICT out = dv + r * C + c;
      TS_SIMD
      for (int h = 0; h < H; h++)
        out[h] += alpha[h] * (ux * x[h] + uy * y[h] + uz * z[h]);
    }
}

static TS_INLINE void attend_send_back(const ts_shape *s, const ts_layer *w,
                                       const ts_sender_block *b, const void *const *q,
                                       const void *const *daggregate, const void *const *share,
                                       const void *const *active, const void *const *edges,
                                       void *dkv, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, rows = b->rows, Hd = H * s->head_dim;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  char *scratch = scratch_;
  real *sum = scratch_take(&scratch, (size_t)R * (size_t)C);
  real *dk = dkv, *dv = dk + (size_t)rows * (size_t)Hd;
  value_queue queue = {.R = R, .C = C, .H = H, .sum = sum};

  memset(dk, 0, (size_t)rows * (size_t)Hd * sizeof *dk);
  for (int a = 0; a < b->n; a++) {
    memset(sum, 0, (size_t)R * (size_t)C * sizeof *sum);
    for (int i = b->column[a]; i < b->column[a + 1]; i++) {
      const int t = b->tile[i];
      const size_t e = (size_t)b->edge[i], to = (size_t)b->receiver[i];
      if (!((const uint8_t *)active[t])[e]) continue;
      const real *alpha = (const real *)share[t] + e * (size_t)(2 * H);
      const real *d = (const real *)daggregate[t] + to * (size_t)C;
      add_heads(H, s->head_dim, alpha + H, (const real *)q[t] + to * (size_t)Hd,
                dk + (size_t)a * (size_t)Hd);
      if (w->order == TS_ORDER_ZERO) {
        queue_add(&queue, alpha, d, stride);
      } else {
        send_first(R, C, H, stride, (const real *)edges[t] + e * TS_EDGE_REALS + TS_EDGE_U, alpha,
                   d, sum);
      }
    }
    queue_flush(&queue);
    scatter(R, C, (size_t)rows * (size_t)C, sum, dv + (size_t)a * (size_t)C);
  }
  clear_padding(R, rows, b->n, C, dv);
}

void TS_K(attend_send_back)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                            const void *const *q, const void *const *daggregate,
                            const void *const *share, const void *const *active,
                            const void *const *edges, void *dkv, void *scratch)
{
  TS_SIZED(s, attend_send_back(sized, w, b, q, daggregate, share, active, edges, dkv, scratch));
}
