/* SPDX-License-Identifier: MIT
 *
 * The matrix engine: row blocks of activations against constant weights.  A weight is packed once
 * at load into whatever form its back end likes; kernels only ask for x W and dy W^T.  Back ends
 * are tables of functions: `packed` (ours, one per instruction set, models/packed_cpu.c), `amx3`
 * and its kin (bf16 tiles, models/amx.c) and `cblas`; others (GPUs) slot in beside them. */
#ifndef TS_MATRIX_H
#define TS_MATRIX_H

#include "runtime/types.h"

typedef struct ts_matrix ts_matrix;

typedef struct ts_matrix_ops {
  const char *name;
  /** Pack w [in,out] double, row-major, into m->packed.  \return 0 or TS_ERR_MEMORY. */
  int (*pack)(ts_matrix *m, const double *w);
  /** y [rows,out] = x [rows,in] W + beta y; strides in elements; beta 0 never reads y. */
  void (*forward)(const ts_matrix *m, int rows, const void *x, int ldx, double beta, void *y,
                  int ldy);
  /** dx [rows,in] = dy [rows,out] W^T + beta dx. */
  void (*backward)(const ts_matrix *m, int rows, const void *dy, int lddy, double beta, void *dx,
                   int lddx);
} ts_matrix_ops;

/** A packed weight.  Owned by its model; read by every worker. */
struct ts_matrix {
  const ts_matrix_ops *ops;
  int in, out;
  bool is_double;
  void *packed;
  size_t bytes; /**< of packed */
};

/** Find a back end: "auto" (amx3 in float where there are bf16 tiles, else packed) or a name.
 * \param [in] packed  The packed back end of the kernels in use.
 * \return 0; TS_ERR_INPUT listing the names; TS_ERR_UNSUPPORTED: not on this machine. */
int ts_matrix_ops_find(const char *name, bool is_double, const ts_matrix_ops *packed,
                       const ts_matrix_ops **out);

/** Pack w [in,out] double.  Not collective; copied. */
int ts_matrix_create(const ts_matrix_ops *ops, bool is_double, int in, int out, const double *w,
                     ts_matrix *m);
void ts_matrix_release(ts_matrix *m);

/** Largest error of a back end against double on a fixed 192 x 256 x 256 product, relative to the
 * largest output: what the log states at start. */
double ts_matrix_error(const ts_matrix_ops *ops, bool is_double);

static inline void ts_matrix_forward(const ts_matrix *m, int rows, const void *x, int ldx,
                                     double beta, void *y, int ldy)
{
  m->ops->forward(m, rows, x, ldx, beta, y, ldy);
}

static inline void ts_matrix_backward(const ts_matrix *m, int rows, const void *dy, int lddy,
                                      double beta, void *dx, int lddx)
{
  m->ops->backward(m, rows, dy, lddy, beta, dx, lddx);
}

#endif
