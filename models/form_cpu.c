/* SPDX-License-Identifier: MIT
 *
 * Attention in the published code's other forms, forward and backward, in one body for all: scores
 * whose gate sees the receiver's features along the edge ("qkdot", "qkdots"), and weightings
 * without a sum over neighbours ("softplus", "sigmoid").  The default form has kernels of its own
 * (attend_cpu.c); the sender's half of backward is the same for all.
 *
 * With s = gate q.k, f its share (p/D of the softmax, softplus(s) or sigmoid(s)) and alpha = f w e:
 *   ds = e f'(s) (dalpha w - S),  de = f (dalpha w - S),  dw = dalpha f e,
 * where S = sum dalpha alpha for the softmax (f' = f) and 0 for the others.
 *
 * A gate that sees the direction: the D-wide map x [R,D] of the receiver's features is contracted
 * with the spherical harmonics of the edge to invariants z [M], times factors m(r) [M] of the
 * radial network; then a linear map, or a small network, gives H gates.  The receiver's edges are
 * the rows of those products. */
#include "models/attend_impl.h"

enum { SLOPE = PARTS, FORM_PARTS }; /* SLOPE: f'(s) */

/* One receiver at work. */
typedef struct form {
  const ts_shape *s;
  const ts_layer *w;
  const ts_edge_block *b;
  int D, M, T; /* T: width of the radial table */
  const sender *list;
  int count;
  real *parts; /* [count,FORM_PARTS,H] */
  real *table; /* [count,T] */
  real *slope; /* [count,T] where radial functions are split, backward */
  real *room;
  real *local, *dlocal;             /* [R,D] */
  real *z, *x;                      /* [count,M] invariants, and times their factors */
  real *y, *a;                      /* [count,H] "qkdots": before and after layer norm and SiLU */
  real *top, *ties, *inverse, *sum; /* [H] of the softmax; sum: S */
} form;

static real *part_of(const form *f, int i)
{
  return f->parts + (size_t)i * (size_t)(FORM_PARTS * f->s->heads);
}

static const real *edge_of(const form *f, int i)
{
  return (const real *)f->b->edge + (size_t)f->list[i].edge * TS_EDGE_REALS;
}

static const real *rows_of(const form *f, int i)
{
  return radial_rows(&f->w->radial, f->b, f->T, (size_t)f->list[i].edge);
}

/* What a gradient d [T] of the radial functions pulls on the distance. */
static real radial_pull(const form *f, int i, const real *d)
{
  if (f->w->radial.split) return slope_pull(f->T, f->slope + (size_t)i * (size_t)f->T, d);
  return spline_pull(f->T, rows_of(f, i), edge_of(f, i) + TS_EDGE_DB, d);
}

static form begin(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, bool back,
                  char **scratch)
{
  const size_t H = (size_t)s->heads, degree = (size_t)largest_degree(b);
  form f = {.s = s, .w = w, .b = b, .D = s->directed};
  f.M = w->score == TS_SCORE_QKDOT ? f.D * (s->lmax + 1) : w->score == TS_SCORE_QKDOTS ? (int)H : 0;
  f.T = f.M ? (int)H + f.M : 2 * (int)H;
  f.parts = scratch_take(scratch, degree * FORM_PARTS * H);
  f.table = scratch_take(scratch, degree * (size_t)f.T);
  f.local = scratch_take(scratch, (size_t)(s->rows * f.D));
  f.dlocal = scratch_take(scratch, (size_t)(s->rows * f.D));
  f.z = scratch_take(scratch, degree * (size_t)f.M);
  f.x = scratch_take(scratch, degree * (size_t)f.M);
  f.y = scratch_take(scratch, degree * H);
  f.a = scratch_take(scratch, degree * H);
  f.top = scratch_take(scratch, 4 * H);
  f.ties = f.top + H;
  f.inverse = f.top + 2 * H;
  f.sum = f.top + 3 * H;
  if (back && w->radial.split) f.slope = scratch_take(scratch, degree * (size_t)f.T);
  f.room = scratch_take(scratch, radial_room(&w->radial));
  return f;
}

/* ---- gates ----------------------------------------------------------------------------------- */

#define INTEGRAL ((real)0.28209479177387814) /* 1/sqrt(4 pi) */

/* "qkdot": harmonics whose squares integrate to one; "qkdots": of the edge vector itself, so that
 * degree l grows as r^l. */
static real harmonic_scale(const form *f, int l, real r)
{
  if (f->w->score == TS_SCORE_QKDOT) return INTEGRAL;
  return l == 0 ? 1 : l == 1 ? r : l == 2 ? r * r : r * r * r;
}

static void harmonics(const form *f, const real *edge, real Y[TS_ROWS])
{
  spherical(f->s->lmax, edge + TS_EDGE_U, Y);
  for (int l = 0; l <= f->s->lmax; l++)
    for (int r = l * l; r < (l + 1) * (l + 1); r++)
      Y[r] *= harmonic_scale(f, l, edge[TS_EDGE_R]);
}

/* grad (du, dr) += from dY of the harmonics Y above. */
static void harmonics_back(const form *f, const real *edge, const real Y[TS_ROWS], real dY[TS_ROWS],
                           real *grad)
{
  const real distance = edge[TS_EDGE_R];
  for (int l = 0; l <= f->s->lmax; l++)
    for (int r = l * l; r < (l + 1) * (l + 1); r++) {
      if (f->w->score == TS_SCORE_QKDOTS) grad[3] += dY[r] * Y[r] * (real)l / distance;
      dY[r] *= harmonic_scale(f, l, distance);
    }
  spherical_back(f->s->lmax, edge + TS_EDGE_U, dY, grad);
}

/* Invariants of degree l: the first, and how many of its D are used. */
static int columns(const form *f, int l)
{
  const int left = f->M - l * f->D;
  return left < 0 ? 0 : left < f->D ? left : f->D;
}

static void contract(const form *f, const real Y[TS_ROWS], const real *factor, real *TS_RESTRICT z,
                     real *TS_RESTRICT x)
{
  memset(z, 0, (size_t)f->M * sizeof *z);
  for (int l = 0; l <= f->s->lmax; l++)
    for (int r = l * l; r < (l + 1) * (l + 1); r++) {
      const real *TS_RESTRICT in = f->local + r * f->D;
      TS_SIMD
      for (int c = 0; c < columns(f, l); c++)
        z[l * f->D + c] += Y[r] * in[c];
    }
  TS_SIMD
  for (int m = 0; m < f->M; m++)
    x[m] = z[m] * factor[m];
}

static void bias_rows(int rows, int width, int stride, const real *TS_RESTRICT bias, real *x)
{
  for (int i = 0; i < rows; i++)
    for (int c = 0; c < width; c++)
      x[(size_t)i * (size_t)stride + (size_t)c] += bias[c];
}

/* GATE and WEIGHT of every edge. */
static void gates(const form *f)
{
  const int H = f->s->heads, stride = FORM_PARTS * H;
  const ts_invariant *map = &f->w->gate_map;
  const ts_radial *radial = &f->w->radial;
  split_radial(radial, f->b, f->list, f->count, f->M ? f->table : f->parts, f->M ? f->T : stride,
               f->slope, f->room);
  if (!f->M) {
    for (int i = 0; i < f->count && !radial->split; i++)
      spline_rows(2 * H, rows_of(f, i), edge_of(f, i) + TS_EDGE_B, part_of(f, i));
    return;
  }
  for (int i = 0; i < f->count; i++) {
    real *table = f->table + (size_t)i * (size_t)f->T, Y[TS_ROWS];
    const size_t at = (size_t)i * (size_t)f->M;
    if (!radial->split) spline_rows(f->T, rows_of(f, i), edge_of(f, i) + TS_EDGE_B, table);
    memcpy(part_of(f, i) + WEIGHT * H, table, (size_t)H * sizeof *table);
    harmonics(f, edge_of(f, i), Y);
    contract(f, Y, table + H, f->z + at, f->x + at);
  }
  if (f->w->score == TS_SCORE_QKDOT) {
    ts_matrix_forward(&map->first, f->count, f->x, f->M, 0.0, f->parts, stride);
    bias_rows(f->count, H, stride, map->first_bias, f->parts);
    return;
  }
  ts_matrix_forward(&map->first, f->count, f->x, f->M, 0.0, f->y, H);
  bias_rows(f->count, H, H, map->first_bias, f->y);
  layer_silu(f->count, H, map->norm_weight, map->norm_bias, f->y, f->a);
  ts_matrix_forward(&map->last, f->count, f->a, H, 0.0, f->parts, stride);
  bias_rows(f->count, H, stride, map->last_bias, f->parts);
}

/* One edge, from the gradients of x (in place: of z) and of the weights. */
static void contract_back(const form *f, int i, real *grad)
{
  const int H = f->s->heads, D = f->D;
  const real *edge = edge_of(f, i), *z = f->z + (size_t)i * (size_t)f->M;
  real *table = f->table + (size_t)i * (size_t)f->T, *d = f->x + (size_t)i * (size_t)f->M;
  real Y[TS_ROWS], dY[TS_ROWS];
  for (int m = 0; m < f->M; m++) {
    const real dx = d[m];
    d[m] = dx * table[H + m];
    table[H + m] = dx * z[m];
  }
  memcpy(table, part_of(f, i) + WEIGHT * H, (size_t)H * sizeof *table);
  grad[3] += radial_pull(f, i, table);
  harmonics(f, edge, Y);
  for (int l = 0; l <= f->s->lmax; l++)
    for (int r = l * l; r < (l + 1) * (l + 1); r++) {
      const real *TS_RESTRICT in = f->local + r * D, *TS_RESTRICT dz = d + l * D;
      real *TS_RESTRICT out = f->dlocal + r * D;
      real sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int c = 0; c < columns(f, l); c++) {
        sum += in[c] * dz[c];
        out[c] += Y[r] * dz[c];
      }
      dY[r] = sum;
    }
  harmonics_back(f, edge, Y, dY, grad);
}

/* From the gradients of GATE and WEIGHT, in their places, to dlocal and the edges' grad [E,4]. */
static void gates_back(const form *f, real *grad)
{
  const int H = f->s->heads, stride = FORM_PARTS * H;
  const ts_invariant *map = &f->w->gate_map;
  if (!f->M) {
    for (int i = 0; i < f->count; i++)
      grad[4 * (size_t)f->list[i].edge + 3] += radial_pull(f, i, part_of(f, i));
    return;
  }
  if (f->w->score == TS_SCORE_QKDOT) {
    ts_matrix_backward(&map->first, f->count, f->parts, stride, 0.0, f->x, f->M);
  } else {
    ts_matrix_backward(&map->last, f->count, f->parts, stride, 0.0, f->a, H);
    layer_silu_back(f->count, H, map->norm_weight, map->norm_bias, f->y, f->a);
    ts_matrix_backward(&map->first, f->count, f->a, H, 0.0, f->x, f->M);
  }
  for (int i = 0; i < f->count; i++)
    contract_back(f, i, grad + 4 * (size_t)f->list[i].edge);
}

/* ---- weights of the values ------------------------------------------------------------------- */

/* SHARE and SLOPE of the softmax, and top, ties, inverse. */
static void softmax(const form *f)
{
  const int H = f->s->heads;
  for (int h = 0; h < H; h++) {
    f->top[h] = f->count ? LOWEST : 0;
    f->ties[h] = f->inverse[h] = 0;
  }
  for (int i = 0; i < f->count; i++) {
    const real *p = part_of(f, i);
    for (int h = 0; h < H; h++) {
      const real score = p[SHARE * H + h];
      f->ties[h] = score > f->top[h] ? 1 : score == f->top[h] ? f->ties[h] + 1 : f->ties[h];
      f->top[h] = score > f->top[h] ? score : f->top[h];
    }
  }
  for (int i = 0; i < f->count; i++) {
    const real *p = part_of(f, i), env = edge_of(f, i)[TS_EDGE_ENV];
    for (int h = 0; h < H; h++)
      f->inverse[h] += real_exp(p[SHARE * H + h] - f->top[h]) * env;
  }
  for (int h = 0; h < H; h++)
    f->inverse[h] =
        1 / (f->inverse[h] +
             FLOOR * (f->w->floor == TS_FLOOR_ABSOLUTE ? real_exp(-f->top[h]) : (real)1));
  for (int i = 0; i < f->count; i++) {
    real *p = part_of(f, i);
    for (int h = 0; h < H; h++) {
      /* backward has no other use for the slope, so its sign tells where the largest score is */
      const bool largest = p[SHARE * H + h] == f->top[h];
      p[SHARE * H + h] = real_exp(p[SHARE * H + h] - f->top[h]) * f->inverse[h];
      p[SLOPE * H + h] = largest ? -p[SHARE * H + h] : p[SHARE * H + h];
    }
  }
}

static real softplus(real x)
{
  const double y = (double)real_exp(x < 0 ? x : -x);
  return (x > 0 ? x : 0) + (real)log1p(y);
}

/* DOT, SHARE and SLOPE of every edge; q [d,H]. */
static void shares(const form *f, const real *q)
{
  const int H = f->s->heads;
  for (int i = 0; i < f->count; i++) {
    real *p = part_of(f, i);
    dot_heads(H, f->s->head_dim, q, f->list[i].k, p + DOT * H);
    for (int h = 0; h < H; h++)
      p[SHARE * H + h] = p[GATE * H + h] * p[DOT * H + h];
    for (int h = 0; h < H && f->w->weighting != TS_WEIGHTING_SOFTMAX; h++) {
      const real score = p[SHARE * H + h], s = real_sigmoid(score);
      const bool plus = f->w->weighting == TS_WEIGHTING_SOFTPLUS;
      p[SHARE * H + h] = plus ? softplus(score) : s;
      p[SLOPE * H + h] = plus ? s : s * (1 - s);
    }
  }
  if (f->w->weighting == TS_WEIGHTING_SOFTMAX) softmax(f);
}

/* ---- forward --------------------------------------------------------------------------------- */

static void look(form *f, const void *const *kv, const real *q, int a, sender *list)
{
  const ts_shape *s = f->s;
  const size_t A = (size_t)s->atoms, Hd = (size_t)(s->heads * s->head_dim);
  f->count = list_senders(s, f->b, TS_HALF_BOTH, kv, a, list);
  f->list = list;
  gather(s->rows, f->D, A * (size_t)f->D, q + A * Hd + (size_t)a * (size_t)f->D, f->local);
  if (!f->count) return;
  gates(f);
  shares(f, q + (size_t)a * Hd);
}

void TS_K(form)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                const void *const *kv, void *aggregate, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  char *scratch = scratch_;
  form f = begin(s, w, b, false, &scratch);
  real *sum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  sender *list = (sender *)(void *)scratch;
  value_queue queue = {.R = R, .C = C, .H = H, .sum = sum};
  for (int a = 0; a < b->n; a++) {
    look(&f, kv, q, a, list);
    memset(sum, 0, (size_t)rows * (size_t)C * sizeof *sum);
    for (int i = 0; i < f.count; i++) {
      real *p = part_of(&f, i);
      const real *edge = edge_of(&f, i);
      for (int h = 0; h < H; h++)
        p[h] = p[SHARE * H + h] * p[WEIGHT * H + h] * edge[TS_EDGE_ENV];
      if (w->order == TS_ORDER_ZERO)
        queue_add(&queue, p, list[i].v, list[i].stride);
      else
        accumulate_first(R, C, H, list[i].stride, edge + TS_EDGE_U, p, list[i].v, sum);
    }
    queue_flush(&queue);
    scatter(rows, C, stride, sum, (real *)aggregate + (size_t)a * (size_t)C);
  }
  clear_padding(rows, s->atoms, b->n, C, aggregate);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* One edge: shares for the sender, dq, the gradients of GATE and WEIGHT, and the envelope's pull.
 */
static void back_edge(const form *f, int i, real *dq, real *share, real *grad)
{
  const int H = f->s->heads;
  const bool softmax_ = f->w->weighting == TS_WEIGHTING_SOFTMAX;
  const real *edge = edge_of(f, i), env = edge[TS_EDGE_ENV];
  const real floor = softmax_ && f->w->floor == TS_FLOOR_MAX ? FLOOR : 0;
  real *p = part_of(f, i), denv = 0;
  for (int h = 0; h < H; h++) {
    const real gate = p[GATE * H + h], weight = p[WEIGHT * H + h], raw = p[SHARE * H + h];
    const real slope = p[SLOPE * H + h], dalpha = p[DALPHA * H + h];
    const real pull = dalpha * weight - f->sum[h];
    denv += raw * pull;
    real ds = (softmax_ ? raw : slope) * pull * env;
    if (softmax_ && slope < 0) ds -= floor * f->inverse[h] * f->sum[h] / f->ties[h];
    share[h] = raw * env * weight;
    share[H + h] = ds * gate;
    p[GATE * H + h] = ds * p[DOT * H + h];
    p[WEIGHT * H + h] = dalpha * raw * env;
  }
  grad[3] += denv * edge[TS_EDGE_DENV];
  add_heads(H, f->s->head_dim, share + H, f->list[i].k, dq);
}

static void back_receiver(const form *f, const real *dsum, real *z, real *dq, real *share,
                          real *grad)
{
  const int H = f->s->heads;
  memset(f->sum, 0, (size_t)H * sizeof *f->sum);
  for (int i = 0; i < f->count; i++) {
    real *p = part_of(f, i);
    const real *edge = edge_of(f, i);
    alpha_back(f->s, f->w, dsum, &f->list[i], edge, p, z, grad + 4 * (size_t)f->list[i].edge);
    for (int h = 0; h < H && f->w->weighting == TS_WEIGHTING_SOFTMAX; h++)
      f->sum[h] += p[DALPHA * H + h] * p[SHARE * H + h] * p[WEIGHT * H + h] * edge[TS_EDGE_ENV];
  }
  for (int i = 0; i < f->count; i++)
    back_edge(f, i, dq, share + (size_t)f->list[i].edge * (size_t)(2 * H),
              grad + 4 * (size_t)f->list[i].edge);
  gates_back(f, grad);
}

void TS_K(form_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                     const void *const *kv, const void *daggregate, void *dq_, void *share,
                     void *grad, void *scratch_)
{
  const int H = s->heads, C = s->channels, R = s->rows;
  const int rows = w->order == TS_ORDER_FIRST ? 3 * R : R;
  const size_t A = (size_t)s->atoms, Hd = (size_t)(H * s->head_dim), D = (size_t)s->directed;
  char *scratch = scratch_;
  form f = begin(s, w, b, true, &scratch);
  real *dsum = scratch_take(&scratch, (size_t)rows * (size_t)C);
  real *z = scratch_take(&scratch, (size_t)(3 * H + C));
  sender *list = (sender *)(void *)scratch;
  real *dq = dq_;
  memset(dq, 0, A * (Hd + (size_t)R * D) * sizeof *dq);
  for (int a = 0; a < b->n; a++) {
    look(&f, kv, q, a, list);
    if (!f.count) continue;
    gather(rows, C, A * (size_t)C, (const real *)daggregate + (size_t)a * (size_t)C, dsum);
    memset(f.dlocal, 0, (size_t)R * D * sizeof *f.dlocal);
    back_receiver(&f, dsum, z, dq + (size_t)a * Hd, share, grad);
    scatter(R, (int)D, A * D, f.dlocal, dq + A * Hd + (size_t)a * D);
  }
}
