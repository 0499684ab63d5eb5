/* SPDX-License-Identifier: MIT
 *
 * The `packed` back end of the matrix engine.  Our weights are constant and our row blocks are thin
 * (a tile's rows times 1, 3 or 5), where a BLAS spends a good part of its time packing the weights
 * again on every call.  Here both W and W^T are packed once, in panels of two vectors' width, each
 * panel contiguous along the summed index; a block of rows keeps its sums in registers.  Sums
 * are made in runs of 64 that are then added, which halves the rounding error of one long sum for a
 * few percent of the time.  Every element is summed in the same order, whatever the number of rows,
 * so the tile size does not change a bit.
 *
 * Cost: the weights twice in memory; one panel (K x 2 vectors) stays in the first or second cache
 * while the rows stream past it. */
#include <stdlib.h>

#include "models/kernels_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define ROWS 12 /* 24 of 32 registers hold sums */
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define ROWS 6 /* 12 of 16 */
#else
#define VECTOR_BYTES 16
#define ROWS 6
#endif

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef real vector __attribute__((vector_size(VECTOR_BYTES)));
typedef real loose_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real))));

enum { LANES = VECTOR_BYTES / sizeof(real), PANEL = 2 * LANES, RUN = 64 };

/* Both directions of one weight. */
typedef struct packed_weight {
  real *forward;  /* [ceil(out/PANEL), in, PANEL] */
  real *backward; /* [ceil(in/PANEL), out, PANEL] */
} packed_weight;

static size_t panels(int width)
{
  return ((size_t)width + PANEL - 1) / PANEL;
}

/* Panels of w [length,width], or of its transpose when `across`; beyond the width: zeros. */
static void fill(real *to, const double *w, int length, int width, bool across)
{
  for (size_t p = 0; p < panels(width); p++)
    for (size_t k = 0; k < (size_t)length; k++)
      for (size_t c = 0; c < PANEL; c++) {
        const size_t column = p * PANEL + c;
        const size_t at = across ? column * (size_t)length + k : k * (size_t)width + column;
        to[(p * (size_t)length + k) * PANEL + c] = column < (size_t)width ? (real)w[at] : 0;
      }
}

static int pack(ts_matrix *m, const double *w)
{
  const size_t there = panels(m->out) * (size_t)m->in * PANEL;
  const size_t back = panels(m->in) * (size_t)m->out * PANEL;
  const size_t head = (sizeof(packed_weight) + TS_ALIGN - 1) / TS_ALIGN * TS_ALIGN;
  const size_t line = TS_ALIGN / sizeof(real);
  const size_t gap = (there + line - 1) / line * line;
  m->bytes = head + (gap + back) * sizeof(real);
  TS_TRY(tsi_alloc(m->bytes, 1, &m->packed));
  packed_weight *packed = m->packed;
  packed->forward = (real *)(void *)((char *)m->packed + head);
  packed->backward = packed->forward + gap;
  fill(packed->forward, w, m->in, m->out, false);
  fill(packed->backward, w, m->out, m->in, true);
  return 0;
}

/* y = sums + beta y for the `columns` of one panel that exist. */
static inline void store(const vector sum[2], real beta, int columns, real *y)
{
  if (columns == PANEL) {
    loose_vector *to = (loose_vector *)(void *)y;
    to[0] = beta == 0 ? sum[0] : sum[0] + beta * to[0];
    to[1] = beta == 0 ? sum[1] : sum[1] + beta * to[1];
    return;
  }
  real part[PANEL];
  memcpy(part, sum, sizeof part);
  for (int c = 0; c < columns; c++)
    y[c] = beta == 0 ? part[c] : part[c] + beta * y[c];
}

/* sum [rows,2] = `rows` (a literal) rows of x times a run of one panel. */
static inline __attribute__((always_inline)) void run_of(const int rows, int length, const real *x,
                                                         size_t ldx, const real *panel,
                                                         vector (*out)[2])
{
  vector sum[ROWS][2];
  UNROLL
  for (int i = 0; i < rows; i++)
    sum[i][0] = sum[i][1] = (vector){0};
  for (int k = 0; k < length; k++) {
    const vector *w = (const vector *)(const void *)(panel + (size_t)k * PANEL);
    const vector w0 = w[0], w1 = w[1];
    UNROLL
    for (int i = 0; i < rows; i++) {
      const real a = x[(size_t)i * ldx + (size_t)k];
      sum[i][0] += a * w0;
      sum[i][1] += a * w1;
    }
  }
  UNROLL
  for (int i = 0; i < rows; i++) {
    out[i][0] = sum[i][0];
    out[i][1] = sum[i][1];
  }
}

/* `rows` (a literal) rows of y, one panel wide. */
static inline __attribute__((always_inline)) void block(const int rows, int length, const real *x,
                                                        size_t ldx, const real *panel, real beta,
                                                        int columns, real *y, size_t ldy)
{
  vector total[ROWS][2];
  run_of(rows, length < RUN ? length : RUN, x, ldx, panel, total);
  for (int k = RUN; k < length; k += RUN) {
    vector sum[ROWS][2];
    run_of(rows, length - k < RUN ? length - k : RUN, x + k, ldx, panel + (size_t)k * PANEL, sum);
    UNROLL
    for (int i = 0; i < rows; i++) {
      total[i][0] += sum[i][0];
      total[i][1] += sum[i][1];
    }
  }
  UNROLL
  for (int i = 0; i < rows; i++)
    store(total[i], beta, columns, y + (size_t)i * ldy);
}

/* y [rows,width] = x [rows,length] times the panels, + beta y. */
static void multiply(const real *panel, int length, int width, int rows, const real *x, int ldx_,
                     double beta_, real *y, int ldy_)
{
  const size_t ldx = (size_t)ldx_, ldy = (size_t)ldy_;
  const real beta = (real)beta_;
  for (int at = 0; at < width; at += PANEL, panel += (size_t)length * PANEL) {
    const int columns = width - at < PANEL ? width - at : PANEL;
    int i = 0;
#define BLOCKS(n)                 \
  for (; i + (n) <= rows; i += n) \
    block(n, length, x + (size_t)i * ldx, ldx, panel, beta, columns, y + (size_t)i * ldy + at, ldy);
    BLOCKS(ROWS)
    BLOCKS(4)
    BLOCKS(1)
#undef BLOCKS
  }
}

static void forward(const ts_matrix *m, int rows, const void *x, int ldx, double beta, void *y,
                    int ldy)
{
  const packed_weight *packed = m->packed;
  multiply(packed->forward, m->in, m->out, rows, x, ldx, beta, y, ldy);
}

static void backward(const ts_matrix *m, int rows, const void *dy, int lddy, double beta, void *dx,
                     int lddx)
{
  const packed_weight *packed = m->packed;
  multiply(packed->backward, m->out, m->in, rows, dy, lddy, beta, dx, lddx);
}

const ts_matrix_ops TS_K(packed_ops) = {
    .name = "packed", .pack = pack, .forward = forward, .backward = backward};
