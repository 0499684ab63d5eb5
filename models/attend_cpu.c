/* SPDX-License-Identifier: MIT
 *
 * Attention over the edges of a tile: forward by receiver, backward by receiver (queries, radial
 * functions, distances) and by sender (keys, values).  Nothing is kept per edge between the passes:
 * backward computes the scores again from q, k and the tables, which costs less than moving them,
 * and leaves per edge only the two factors that the senders need.  Sums run in the order of the
 * edge list (global ids), so tile size, workers and scheduler do not change a bit.
 *
 * With s the score, m the largest, p = exp(s - m) env, D = sum p + eps: alpha = p w / D.
 * Backward, with S = sum dalpha alpha:  dw = dalpha p/D,  ds = p/D (dalpha w - S), and where eps is
 * scaled by the largest score ("max"), that score takes -eps S / D more (docs/model.md). */
#include "models/kernels_impl.h"

static const real EPSILON = (real)1e-3;

/* dot [H] = sum over d of q k, heads innermost. */
#define DOT_HEADS(d)                      \
  TS_SIMD                                 \
  for (int h = 0; h < H; h++) {           \
    real sum = q[h] * k[h];               \
    for (int x = 1; x < (d); x++)         \
      sum += q[x * H + h] * k[x * H + h]; \
    dot[h] = sum;                         \
  }

static inline void dot_heads(int H, int d, const real *TS_RESTRICT q, const real *TS_RESTRICT k,
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
static inline void add_heads(int H, int d, const real *TS_RESTRICT a, const real *TS_RESTRICT x,
                             real *TS_RESTRICT y)
{
  for (int i = 0; i < d; i++) {
    TS_SIMD
    for (int h = 0; h < H; h++)
      y[i * H + h] += a[h] * x[i * H + h];
  }
}

/* Channel c belongs to head c mod H. */
static inline void expand_heads(int H, int C, const real *TS_RESTRICT a, real *TS_RESTRICT out)
{
  for (int c = 0; c < C; c += H)
    memcpy(out + c, a, (size_t)H * sizeof *out);
}

static inline void fold_heads(int H, int C, const real *TS_RESTRICT z, real *TS_RESTRICT out)
{
  memcpy(out, z, (size_t)H * sizeof *out);
  for (int c = H; c < C; c += H) {
    TS_SIMD
    for (int h = 0; h < H; h++)
      out[h] += z[c + h];
  }
}

/* Copy one atom's rows of a feature ([rows,A,C]) to or from a contiguous [rows,C]. */
static inline void gather(int rows, int C, size_t stride, const real *from, real *to)
{
  for (int r = 0; r < rows; r++)
    memcpy(to + r * C, from + (size_t)r * stride, (size_t)C * sizeof *to);
}

static inline void scatter(int rows, int C, size_t stride, const real *from, real *to)
{
  for (int r = 0; r < rows; r++)
    memcpy(to + (size_t)r * stride, from + r * C, (size_t)C * sizeof *to);
}

/* sum [R,C] += the four values, each weighted per channel: one load and store of the sum for four
 * multiply-adds. */
static inline void accumulate4(int R, int C, size_t stride, const real *TS_RESTRICT weight,
                               const real *const v[4], real *TS_RESTRICT sum)
{
  for (int r = 0; r < R; r++) {
    const real *TS_RESTRICT v0 = v[0] + (size_t)r * stride,
                            *TS_RESTRICT v1 = v[1] + (size_t)r * stride;
    const real *TS_RESTRICT v2 = v[2] + (size_t)r * stride,
                            *TS_RESTRICT v3 = v[3] + (size_t)r * stride;
    const real *TS_RESTRICT w1 = weight + C, *TS_RESTRICT w2 = w1 + C, *TS_RESTRICT w3 = w2 + C;
    real *TS_RESTRICT out = sum + r * C;
    TS_SIMD
    for (int c = 0; c < C; c++)
      out[c] += (weight[c] * v0[c] + w1[c] * v1[c]) + (w2[c] * v2[c] + w3[c] * v3[c]);
  }
}

/* A queue of up to four weighted values on their way into a sum. */
typedef struct value_queue {
  int R, C, H, count;
  size_t stride;
  real *weight; /* [4,C] */
  const real *v[4];
  real *sum; /* [R,C] */
} value_queue;

static inline void queue_flush(value_queue *q)
{
  if (q->count == 0) return;
  for (int k = q->count; k < 4; k++) {
    memset(q->weight + k * q->C, 0, (size_t)q->C * sizeof(real));
    q->v[k] = q->v[0];
  }
  accumulate4(q->R, q->C, q->stride, q->weight, q->v, q->sum);
  q->count = 0;
}

static inline void queue_add(value_queue *q, const real *alpha, const real *v)
{
  expand_heads(q->H, q->C, alpha, q->weight + q->count * q->C);
  q->v[q->count++] = v;
  if (q->count == 4) queue_flush(q);
}

/* sum [3,R,C] += u (x) alpha v. */
static inline void accumulate_first(int R, int C, size_t stride, const real *TS_RESTRICT u,
                                    const real *TS_RESTRICT weight, const real *v, real *sum)
{
  const real ux = u[0], uy = u[1], uz = u[2];
  for (int r = 0; r < R; r++) {
    const real *TS_RESTRICT x = v + (size_t)r * stride;
    real *TS_RESTRICT s0 = sum + r * C, *TS_RESTRICT s1 = s0 + R * C, *TS_RESTRICT s2 = s1 + R * C;
    TS_SIMD
    for (int c = 0; c < C; c++) {
      const real t = weight[c] * x[c];
      s0[c] += ux * t;
      s1[c] += uy * t;
      s2[c] += uz * t;
    }
  }
}

/* The active edges of one receiver and where their senders' keys and values are. */
typedef struct sender {
  int edge;
  const real *k, *v;
} sender;

static int list_senders(const ts_shape *s, const ts_edge_block *b, const void *const *kv, int a,
                        sender *list)
{
  const int A = s->atoms;
  const size_t Hd = (size_t)s->heads * (size_t)s->head_dim;
  int count = 0;
  for (int e = b->row[a]; e < b->row[a + 1]; e++) {
    if (!b->active[e]) continue;
    const int tile = b->sender[e] / A, slot = b->sender[e] % A;
    const real *k = kv[tile];
    list[count++] =
        (sender){e, k + (size_t)slot * Hd, k + (size_t)A * Hd + (size_t)slot * (size_t)s->channels};
  }
  return count;
}

static int largest_degree(const ts_edge_block *b)
{
  int most = 0;
  for (int a = 0; a < b->n; a++)
    most = b->row[a + 1] - b->row[a] > most ? b->row[a + 1] - b->row[a] : most;
  return most;
}

/* Zero the rows of atoms that are not there, in [rows,A,width]. */
static void clear_padding(int rows, int A, int n, int width, real *x)
{
  for (int r = 0; r < rows && n < A; r++)
    memset(x + ((size_t)r * (size_t)A + (size_t)n) * (size_t)width, 0,
           (size_t)(A - n) * (size_t)width * sizeof *x);
}

/* For every edge: part [count,2H] = score | weight.  top [H] = the largest score (0 if none). */
static void scores(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const real *q,
                   const sender *list, int count, real *part, real *TS_RESTRICT top, real *dot)
{
  const int H = s->heads;
  const real *table = w->table, *edge = b->edge;
  for (int i = 0; i < count; i++) {
    const size_t e = (size_t)list[i].edge;
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    spline_rows(2 * H, table + (size_t)b->node[e] * (size_t)(2 * H),
                edge + e * TS_EDGE_REALS + TS_EDGE_B, score);
    dot_heads(H, s->head_dim, q, list[i].k, dot);
    TS_SIMD
    for (int h = 0; h < H; h++) {
      score[h] *= dot[h];
      top[h] = i == 0 || score[h] > top[h] ? score[h] : top[h];
    }
  }
  if (count == 0) memset(top, 0, (size_t)H * sizeof *top);
}

/* Turn scores into alpha, in place of the scores; inverse [H] = 1/D. */
static void softmax(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                    const sender *list, int count, real *part, const real *TS_RESTRICT top,
                    real *TS_RESTRICT inverse)
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
      inverse[h] = 1 / (inverse[h] + EPSILON * real_exp(-top[h]));
  } else {
    TS_SIMD
    for (int h = 0; h < H; h++)
      inverse[h] = 1 / (inverse[h] + EPSILON);
  }
  for (int i = 0; i < count; i++) {
    real *TS_RESTRICT score = part + (size_t)i * (size_t)(2 * H);
    TS_SIMD
    for (int h = 0; h < H; h++)
      score[h] *= score[H + h] * inverse[h];
  }
}

void TS_K(attend)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                  const void *const *kv, const ts_saved *saved, void *aggregate, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)A * (size_t)C, degree = (size_t)largest_degree(b);
  char *scratch = scratch_;
  real *part = scratch_take(&scratch, degree * (size_t)(2 * H));
  real *dot = scratch_take(&scratch, (size_t)H);
  real *weight = scratch_take(&scratch, (size_t)(4 * C));
  real *sum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  sender *list = (sender *)(void *)scratch;
  real *stats = saved->stats;
  value_queue queue = {.R = R, .C = C, .H = H, .stride = stride, .weight = weight, .sum = sum};

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
        expand_heads(H, C, alpha, weight);
        accumulate_first(R, C, stride,
                         (const real *)b->edge + (size_t)list[i].edge * TS_EDGE_REALS + TS_EDGE_U,
                         weight, list[i].v, sum);
      }
    }
    queue_flush(&queue);
    scatter(rows, C, stride, sum, (real *)aggregate + (size_t)a * (size_t)C);
  }
  clear_padding(rows, A, b->n, C, aggregate);
}

/* z [C] = sum over rows of x v. */
static inline void multiply_rows(int R, int C, size_t stride, const real *TS_RESTRICT x,
                                 const real *v, real *TS_RESTRICT z)
{
  for (int r = 0; r < R; r++) {
    const real *TS_RESTRICT y = v + (size_t)r * stride, *TS_RESTRICT t = x + r * C;
    if (r == 0) {
      TS_SIMD
      for (int c = 0; c < C; c++)
        z[c] = t[c] * y[c];
    } else {
      TS_SIMD
      for (int c = 0; c < C; c++)
        z[c] += t[c] * y[c];
    }
  }
}

/* Per edge of one receiver, all [H]: what the second pass of backward reads. */
enum { GATE, WEIGHT, DOT, SHARE, DALPHA, PARTS };

/* dalpha [H] of one edge from the gradient of the aggregate (local [rows,C]); first order also
 * adds to du [3]. */
static void alpha_back(const ts_shape *s, const ts_layer *w, const real *dsum, const sender *from,
                       const real *edge, real *part, real *z, real *du)
{
  const int H = s->heads, C = s->channels, R = s->rows;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  real *dalpha = part + DALPHA * H;
  if (w->order == TS_ORDER_ZERO) {
    multiply_rows(R, C, stride, dsum, from->v, z);
    fold_heads(H, C, z, dalpha);
    return;
  }
  const real *u = edge + TS_EDGE_U;
  real *TS_RESTRICT total = z, *TS_RESTRICT zb = z + C, *TS_RESTRICT alpha = zb + C;
  TS_SIMD
  for (int h = 0; h < H; h++)
    alpha[h] = part[SHARE * H + h] * part[WEIGHT * H + h] * edge[TS_EDGE_ENV];
  memset(total, 0, (size_t)C * sizeof *total);
  for (int k = 0; k < 3; k++) {
    multiply_rows(R, C, stride, dsum + k * R * C, from->v, zb);
    real pull = 0;
    for (int c = 0; c < C; c += H) {
#pragma omp simd reduction(+ : pull)
      for (int h = 0; h < H; h++) {
        pull += alpha[h] * zb[c + h];
        total[c + h] += u[k] * zb[c + h];
      }
    }
    du[k] += pull;
  }
  fold_heads(H, C, total, dalpha);
}

/* First pass: parts of every edge, S [H] = sum dalpha alpha, top [H] and how often it is reached.
 */
static void back_gather(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const real *q,
                        const real *dsum, const sender *list, int count, const real *stats_top,
                        const real *stats_inverse, real *parts, real *TS_RESTRICT S,
                        real *TS_RESTRICT top, real *TS_RESTRICT ties, real *z, real *grad)
{
  const int H = s->heads;
  memset(S, 0, (size_t)H * sizeof *S);
  memset(ties, 0, (size_t)H * sizeof *ties);
  for (int i = 0; i < count; i++) {
    const size_t e = (size_t)list[i].edge;
    const real *x = (const real *)b->edge + e * TS_EDGE_REALS;
    real *TS_RESTRICT p = parts + (size_t)i * (size_t)(PARTS * H);
    const real env = x[TS_EDGE_ENV];
    spline_rows(2 * H, (const real *)w->table + (size_t)b->node[e] * (size_t)(2 * H), x + TS_EDGE_B,
                p);
    dot_heads(H, s->head_dim, q, list[i].k, p + DOT * H);
    TS_SIMD
    for (int h = 0; h < H; h++) {
      const real score = p[GATE * H + h] * p[DOT * H + h];
      p[SHARE * H + h] = real_exp(score - stats_top[h]) * stats_inverse[h];
      const bool first = i == 0 || score > top[h];
      ties[h] = first ? 1 : (score == top[h] ? ties[h] + 1 : ties[h]);
      top[h] = first ? score : top[h];
    }
    alpha_back(s, w, dsum, &list[i], x, p, z, grad + 4 * e);
    TS_SIMD
    for (int h = 0; h < H; h++)
      S[h] += p[DALPHA * H + h] * p[SHARE * H + h] * p[WEIGHT * H + h] * env;
  }
}

/* Second pass, one edge: shares for the sender, dq, and the pull on the distance. */
static void back_edge(const ts_shape *s, const ts_layer *w, const ts_edge_block *b,
                      const sender *from, real *TS_RESTRICT p, const real *TS_RESTRICT S,
                      const real *TS_RESTRICT top, const real *TS_RESTRICT ties,
                      const real *TS_RESTRICT inverse, real *dq, real *TS_RESTRICT share,
                      real *grad)
{
  const int H = s->heads;
  const size_t e = (size_t)from->edge;
  const real *x = (const real *)b->edge + e * TS_EDGE_REALS;
  const real env = x[TS_EDGE_ENV], floor = w->floor == TS_FLOOR_MAX ? EPSILON : 0;
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
  grad[3] += spline_pull(2 * H, (const real *)w->table + (size_t)b->node[e] * (size_t)(2 * H),
                         x + TS_EDGE_DB, p) +
             denv * x[TS_EDGE_DENV];
}

void TS_K(attend_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q_,
                       const void *const *kv, const ts_saved *saved, const void *daggregate,
                       void *dq_, void *share, void *grad_, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms, Hd = H * s->head_dim;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)A * (size_t)C, degree = (size_t)largest_degree(b);
  char *scratch = scratch_;
  real *parts = scratch_take(&scratch, degree * (size_t)(PARTS * H));
  real *dsum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  real *z = scratch_take(&scratch, (size_t)(3 * C));
  real *S = scratch_take(&scratch, (size_t)(3 * H)), *top = S + H, *ties = top + H;
  sender *list = (sender *)(void *)scratch;
  real *grad = grad_, *dq = dq_;

  memset(dq, 0, (size_t)A * (size_t)Hd * sizeof *dq);
  for (int a = 0; a < b->n; a++) {
    const real *stats_top = (const real *)saved->stats + (size_t)a * (size_t)H;
    const real *inverse = stats_top + (size_t)A * (size_t)H;
    const int count = list_senders(s, b, kv, a, list);
    gather(rows, C, stride, (const real *)daggregate + (size_t)a * (size_t)C, dsum);
    back_gather(s, w, b, (const real *)q_ + (size_t)a * (size_t)Hd, dsum, list, count, stats_top,
                inverse, parts, S, top, ties, z, grad);
    for (int i = 0; i < count; i++)
      back_edge(s, w, b, &list[i], parts + (size_t)i * (size_t)(PARTS * H), S, top, ties, inverse,
                dq + (size_t)a * (size_t)Hd, (real *)share + (size_t)list[i].edge * (size_t)(2 * H),
                grad + 4 * (size_t)list[i].edge);
  }
}

/* dv [R,C] += alpha u . dM of one receiver. */
static inline void send_first(int R, int C, size_t stride, const real *u,
                              const real *TS_RESTRICT weight, const real *dM, real *dv)
{
  const real ux = u[0], uy = u[1], uz = u[2];
  const size_t plane = (size_t)R * stride;
  for (int r = 0; r < R; r++) {
    const real *TS_RESTRICT x = dM + (size_t)r * stride, *TS_RESTRICT y = x + plane,
                            *TS_RESTRICT z = y + plane;
    real *TS_RESTRICT out = dv + r * C;
    TS_SIMD
    for (int c = 0; c < C; c++)
      out[c] += weight[c] * (ux * x[c] + uy * y[c] + uz * z[c]);
  }
}

void TS_K(attend_send_back)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                            const void *const *q, const void *const *daggregate,
                            const void *const *share, const void *const *active,
                            const void *const *edges, void *dkv, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows, A = s->atoms, Hd = H * s->head_dim;
  const size_t stride = (size_t)A * (size_t)C;
  char *scratch = scratch_;
  real *weight = scratch_take(&scratch, (size_t)(4 * C));
  real *sum = scratch_take(&scratch, (size_t)R * (size_t)C);
  real *dk = dkv, *dv = dk + (size_t)A * (size_t)Hd;
  value_queue queue = {.R = R, .C = C, .H = H, .stride = stride, .weight = weight, .sum = sum};

  memset(dk, 0, (size_t)A * (size_t)Hd * sizeof *dk);
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
        queue_add(&queue, alpha, d);
      } else {
        expand_heads(H, C, alpha, weight);
        send_first(R, C, stride, (const real *)edges[t] + e * TS_EDGE_REALS + TS_EDGE_U, weight, d,
                   sum);
      }
    }
    queue_flush(&queue);
    scatter(R, C, stride, sum, dv + (size_t)a * (size_t)C);
  }
  clear_padding(R, A, b->n, C, dv);
}
