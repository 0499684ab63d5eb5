/* SPDX-License-Identifier: MIT
 *
 * Keys, values and their gradients between ranks: rows packed for a peer, rows that a peer returned
 * added to where they came from, and the sums of integers that make gradients independent of how
 * the atoms are spread over ranks. */
#include "models/attend_impl.h"

/* fixed [width] += x, as integers; false where one is out of range or not a number. */
static bool add_fixed(int width, const real *x, int64_t *fixed)
{
  const double unit = (double)((int64_t)1 << TS_FIXED_BITS), limit = 4e18 / unit;
  bool in_range = true;
  for (int i = 0; i < width; i++) {
    const double value = (double)x[i];
    in_range = in_range && value > -limit && value < limit;
    const int64_t term = value > -limit && value < limit ? (int64_t)rint(value * unit) : 0;
    in_range = !__builtin_add_overflow(fixed[i], term, &fixed[i]) && in_range;
  }
  return in_range;
}

/* One entry at a time through the kernel above, so that what is added does not depend on which
 * entries it is added with. */
bool TS_K(attend_send_fixed)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                             const void *const *q, const void *const *daggregate,
                             const void *const *share, const void *const *active,
                             const void *const *edges, int64_t *fixed, void *scratch_)
{
  const int width = (int)ts_kv_width(s);
  const int32_t column[2] = {0, 1};
  char *scratch = scratch_;
  real *term = scratch_take(&scratch, (size_t)width);
  bool in_range = true;
  for (int a = 0; a < b->n; a++)
    for (int i = b->column[a]; i < b->column[a + 1]; i++) {
      const ts_sender_block one = {.n = 1,
                                   .rows = 1,
                                   .column = column,
                                   .tile = b->tile + i,
                                   .receiver = b->receiver + i,
                                   .edge = b->edge + i};
      if (!((const uint8_t *)active[b->tile[i]])[b->edge[i]]) continue;
      TS_K(attend_send_back)(s, w, &one, q, daggregate, share, active, edges, term, scratch);
      in_range = add_fixed(width, term, fixed + (size_t)a * (size_t)width) && in_range;
    }
  return in_range;
}

/* A row of keys and values in a block of `rows` rows, as [d H] and [R,C] apart. */
typedef struct kv_row {
  real *k, *v;
  size_t stride; /* between the rows of v */
} kv_row;

static kv_row row_of(const ts_shape *s, void *block, size_t rows, size_t row)
{
  const size_t Hd = (size_t)(s->heads * s->head_dim), C = (size_t)s->channels;
  real *k = block;
  return (kv_row){k + row * Hd, k + rows * Hd + row * C, rows * C};
}

void TS_K(settle)(const ts_shape *s, int n, int rows, const int64_t *fixed, void *dkv)
{
  const double unit = 1.0 / (double)((int64_t)1 << TS_FIXED_BITS);
  const size_t Hd = (size_t)(s->heads * s->head_dim), C = (size_t)s->channels;
  memset(dkv, 0, (size_t)rows * ts_kv_width(s) * sizeof(real));
  for (int a = 0; a < n; a++) {
    const kv_row to = row_of(s, dkv, (size_t)rows, (size_t)a);
    for (size_t i = 0; i < Hd; i++)
      to.k[i] = (real)((double)*fixed++ * unit);
    for (int r = 0; r < s->rows; r++)
      for (size_t c = 0; c < C; c++)
        to.v[(size_t)r * to.stride + c] = (real)((double)*fixed++ * unit);
  }
}

void TS_K(pack)(const ts_shape *s, int n, const int32_t *slot, const void *const *kv, void *out)
{
  const size_t Hd = (size_t)(s->heads * s->head_dim), C = (size_t)s->channels;
  for (int i = 0; i < n; i++) {
    const kv_row to = row_of(s, out, (size_t)n, (size_t)i);
    const kv_row from = row_of(s, (void *)(uintptr_t)kv[slot[i] >> TS_SLOT_BITS], (size_t)s->atoms,
                               (size_t)(slot[i] & (TS_SLOT_ROWS - 1)));
    memcpy(to.k, from.k, Hd * sizeof(real));
    for (int r = 0; r < s->rows; r++)
      memcpy(to.v + (size_t)r * to.stride, from.v + (size_t)r * from.stride, C * sizeof(real));
  }
}

void TS_K(add_returned)(const ts_shape *s, int n, const int32_t *slot, const int32_t *row,
                        const int32_t *rows, const void *const *blocks, void *dkv)
{
  const size_t Hd = (size_t)(s->heads * s->head_dim), C = (size_t)s->channels;
  for (int i = 0; i < n; i++) {
    const int block = slot[i] >> TS_SLOT_BITS;
    const kv_row to = row_of(s, dkv, (size_t)s->atoms, (size_t)row[i]);
    const kv_row from = row_of(s, (void *)(uintptr_t)blocks[block], (size_t)rows[block],
                               (size_t)(slot[i] & (TS_SLOT_ROWS - 1)));
    for (size_t k = 0; k < Hd; k++)
      to.k[k] += from.k[k];
    for (int r = 0; r < s->rows; r++)
      for (size_t c = 0; c < C; c++)
        to.v[(size_t)r * to.stride + c] += from.v[(size_t)r * from.stride + c];
  }
}
