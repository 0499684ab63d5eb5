/* SPDX-License-Identifier: MIT
 *
 * Queries, keys and values of a tile.  A query (or key) is an invariant of the feature: per degree
 * the dot product over rows of two linear maps, then a small network.  The four linear maps (a and
 * b, for query and key) read the same normalised feature, so they are one product with 4F columns;
 * it is three quarters of a layer's arithmetic.  Its output [R,A,4F] is kept for backward, or, to
 * save memory, computed again there. */
#include "models/kernels_impl.h"

/* n [R,A,C] = norm(h), plus the system's vector on degree 0. */
static void normalise(const ts_shape *s, const ts_layer *w, const real *h, real *n)
{
  TS_K(norm)(s, &w->norm_1, h, n);
  if (!w->system) return;
  for (int a = 0; a < s->atoms; a++) {
    const real *TS_RESTRICT system = w->system;
    real *TS_RESTRICT row = n + (size_t)a * (size_t)s->channels;
    TS_SIMD
    for (int c = 0; c < s->channels; c++)
      row[c] += system[c];
  }
}

/* inv [A,(L+1)F] of map m (0 query, 1 key): sums over each degree's rows of a b. */
static void contract(const ts_shape *s, const real *pairs, int m, real *inv)
{
  const int F = s->hidden, A = s->atoms;
  for (int a = 0; a < A; a++)
    for (int l = 0; l <= s->lmax; l++) {
      real *TS_RESTRICT out = inv + ((size_t)a * (size_t)(s->lmax + 1) + (size_t)l) * (size_t)F;
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const real *TS_RESTRICT x =
            pairs + ((size_t)r * (size_t)A + (size_t)a) * (size_t)(4 * F) + (size_t)(2 * m * F);
        const real *TS_RESTRICT y = x + F;
        if (r == l * l) {
          TS_SIMD
          for (int f = 0; f < F; f++)
            out[f] = x[f] * y[f];
        } else {
          TS_SIMD
          for (int f = 0; f < F; f++)
            out[f] += x[f] * y[f];
        }
      }
    }
}

static void add_bias(int rows, int width, const real *TS_RESTRICT bias, real *x)
{
  for (int a = 0; a < rows; a++) {
    real *TS_RESTRICT row = x + (size_t)a * (size_t)width;
    TS_SIMD
    for (int c = 0; c < width; c++)
      row[c] += bias[c];
  }
}

void TS_K(project)(const ts_shape *s, const ts_layer *w, const void *h, void *q, void *kv,
                   const ts_saved *saved, void *scratch_)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, F = (size_t)s->hidden;
  const size_t R = (size_t)s->rows, L1 = (size_t)s->lmax + 1;
  const int Hd = s->heads * s->head_dim;
  char *scratch = scratch_;
  real *n = scratch_take(&scratch, R * A * C);
  real *inv = scratch_take(&scratch, A * L1 * F);
  real *y = scratch_take(&scratch, A * F);
  real *pairs = saved->pairs ? saved->pairs : scratch_take(&scratch, R * A * 4 * F);
  real *out[2] = {q, kv};

  normalise(s, w, h, n);
  so3_forward(s, &w->pairs, n, pairs);
  for (int m = 0; m < 2; m++) {
    const ts_invariant *map = &w->map[m];
    real *x = (real *)saved->hidden + (size_t)m * A * F;
    contract(s, pairs, m, inv);
    ts_matrix_forward(&map->first, s->atoms, inv, (int)(L1 * F), 0.0, x, (int)F);
    add_bias(s->atoms, (int)F, map->first_bias, x);
    layer_silu(s->atoms, (int)F, map->norm_weight, map->norm_bias, x, y);
    ts_matrix_forward(&map->last, s->atoms, y, (int)F, 0.0, out[m], Hd);
    add_bias(s->atoms, Hd, map->last_bias, out[m]);
  }
  so3_forward(s, &w->value, n, (real *)kv + A * (size_t)Hd);
  if (s->directed) so3_forward(s, &w->directed, n, (real *)q + A * (size_t)Hd);
}

/* d(a b): swap the two halves of each map's columns, each times the gradient of its product. */
static void contract_back(const ts_shape *s, int m, const real *dinv, real *pairs)
{
  const int F = s->hidden, A = s->atoms;
  for (int l = 0; l <= s->lmax; l++)
    for (int r = l * l; r < (l + 1) * (l + 1); r++)
      for (int a = 0; a < A; a++) {
        const real *TS_RESTRICT d =
            dinv + ((size_t)a * (size_t)(s->lmax + 1) + (size_t)l) * (size_t)F;
        real *TS_RESTRICT x =
            pairs + ((size_t)r * (size_t)A + (size_t)a) * (size_t)(4 * F) + (size_t)(2 * m * F);
        real *TS_RESTRICT y = x + F;
        TS_SIMD
        for (int f = 0; f < F; f++) {
          const real t = x[f];
          x[f] = d[f] * y[f];
          y[f] = d[f] * t;
        }
      }
}

void TS_K(project_back)(const ts_shape *s, const ts_layer *w, const void *h, const void *dq,
                        const void *dkv, const ts_saved *saved, void *dh, void *scratch_)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, F = (size_t)s->hidden;
  const size_t R = (size_t)s->rows, L1 = (size_t)s->lmax + 1;
  const int Hd = s->heads * s->head_dim;
  char *scratch = scratch_;
  real *n = scratch_take(&scratch, R * A * C);
  real *dinv = scratch_take(&scratch, A * L1 * F);
  real *dy = scratch_take(&scratch, A * F);
  real *pairs = saved->pairs;
  const real *out[2] = {dq, dkv};

  if (!pairs) {
    pairs = scratch_take(&scratch, R * A * 4 * F);
    normalise(s, w, h, n);
    so3_forward(s, &w->pairs, n, pairs);
  }
  for (int m = 0; m < 2; m++) {
    const ts_invariant *map = &w->map[m];
    ts_matrix_backward(&map->last, s->atoms, out[m], Hd, 0.0, dy, (int)F);
    layer_silu_back(s->atoms, (int)F, map->norm_weight, map->norm_bias,
                    (const real *)saved->hidden + (size_t)m * A * F, dy);
    ts_matrix_backward(&map->first, s->atoms, dy, (int)F, 0.0, dinv, (int)(L1 * F));
    contract_back(s, m, dinv, pairs);
  }
  real *dn = n;
  so3_backward(s, &w->pairs, pairs, 0.0, dn);
  so3_backward(s, &w->value, (const real *)dkv + A * (size_t)Hd, 1.0, dn);
  if (s->directed) so3_backward(s, &w->directed, (const real *)dq + A * (size_t)Hd, 1.0, dn);
  TS_K(norm_back)(s, &w->norm_1, h, dn, dh);
}
