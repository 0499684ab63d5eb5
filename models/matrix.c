/* SPDX-License-Identifier: MIT
 *
 * The list of back ends and the CBLAS one.  CBLAS has no way to keep a packed operand, so "packing"
 * is a cast into one contiguous row-major array; one thread per call (workers are the parallelism).
 */
#include "models/matrix.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/amx.h"
#include "models/kernels.h"
#include "runtime/error.h"
#include "runtime/memory.h"

static int cblas_pack(ts_matrix *m, const double *w)
{
  const size_t count = (size_t)m->in * (size_t)m->out;
  const size_t real = m->is_double ? sizeof(double) : sizeof(float);
  TS_TRY(tsi_alloc(count, real, &m->packed));
  m->bytes = count * real;
  if (m->is_double) {
    memcpy(m->packed, w, count * sizeof(double));
  } else {
    float *packed = m->packed;
    for (size_t i = 0; i < count; i++)
      packed[i] = (float)w[i];
  }
  return 0;
}

static void cblas_forward(const ts_matrix *m, int rows, const void *x, int ldx, double beta,
                          void *y, int ldy)
{
  if (m->is_double)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, m->out, m->in, 1.0, x, ldx,
                m->packed, m->out, beta, y, ldy);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, m->out, m->in, 1.0f, x, ldx,
                m->packed, m->out, (float)beta, y, ldy);
}

static void cblas_backward(const ts_matrix *m, int rows, const void *dy, int lddy, double beta,
                           void *dx, int lddx)
{
  if (m->is_double)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, m->in, m->out, 1.0, dy, lddy,
                m->packed, m->out, beta, dx, lddx);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, m->in, m->out, 1.0f, dy, lddy,
                m->packed, m->out, (float)beta, dx, lddx);
}

static const ts_matrix_ops cblas_ops = {
    .name = "cblas", .pack = cblas_pack, .forward = cblas_forward, .backward = cblas_backward};

/* amx, amx2 or amx3: bf16 numbers that a float is split into; 0: none of them. */
static int parts_of(const char *name)
{
  if (strncmp(name, "amx", 3)) return 0;
  return !name[3] ? 1 : (name[3] == '2' || name[3] == '3') && !name[4] ? name[3] - '0' : 0;
}

int ts_matrix_ops_find(const char *name, bool is_double, const ts_matrix_ops *packed,
                       const ts_matrix_ops **out)
{
  const int parts = parts_of(name);
  *out = NULL;
  if (!strcmp(name, "auto") && !is_double && packed == ts_kernels_find(false, "auto")->packed)
    *out = ts_amx_ops(3); /* of the best kernels, not of those that stand for older processors */
  if (!*out && (!strcmp(name, "auto") || !strcmp(name, packed->name))) *out = packed;
  if (!strcmp(name, cblas_ops.name)) *out = &cblas_ops;
  if (parts && is_double)
    return tsi_fail(TS_ERR_INPUT,
                    "execution.matrix \"%s\" computes in float only; expected auto, packed or "
                    "cblas with precision double",
                    name);
  if (parts) {
    *out = ts_amx_ops(parts);
    if (!*out)
      return tsi_fail(TS_ERR_UNSUPPORTED,
                      "execution.matrix \"%s\" needs bf16 tiles (AMX), which this processor or "
                      "system does not offer; expected auto, packed or cblas",
                      name);
  }
  if (*out) return 0;
  return tsi_fail(
      TS_ERR_INPUT,
      "execution.matrix \"%s\" is not known; expected auto, packed, cblas, amx, amx2 or "
      "amx3",
      name);
}

int ts_matrix_create(const ts_matrix_ops *ops, bool is_double, int in, int out, const double *w,
                     ts_matrix *m)
{
  *m = (ts_matrix){.ops = ops, .in = in, .out = out, .is_double = is_double};
  return ops->pack(m, w);
}

void ts_matrix_release(ts_matrix *m)
{
  free(m->packed);
  m->packed = NULL;
}

/* A fixed pseudo-random number in [-1, 1). */
static double probe(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1.0;
}

static double element(const void *array, bool is_double, size_t i)
{
  return is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

double ts_matrix_error(const ts_matrix_ops *ops, bool is_double)
{
  enum { ROWS = 192, IN = 256, OUT = 256 };
  double *w = NULL;
  void *x = NULL, *y = NULL;
  ts_matrix m = {0};
  const size_t size = is_double ? sizeof(double) : sizeof(float);
  double worst = 0, scale = 0;
  uint64_t state = 1;
  if (TSI_NEW(w, IN * OUT) || tsi_alloc(ROWS * IN, size, &x) || tsi_alloc(ROWS * OUT, size, &y))
    goto done;
  for (int i = 0; i < IN * OUT; i++)
    w[i] = (float)probe(&state);
  for (size_t i = 0; i < ROWS * IN; i++) {
    if (is_double)
      ((double *)x)[i] = probe(&state);
    else
      ((float *)x)[i] = (float)probe(&state);
  }
  if (ts_matrix_create(ops, is_double, IN, OUT, w, &m)) goto done;
  ts_matrix_forward(&m, ROWS, x, IN, 0.0, y, OUT);
  for (int r = 0; r < ROWS; r++)
    for (int o = 0; o < OUT; o++) {
      long double sum = 0;
      for (int i = 0; i < IN; i++)
        sum += (long double)element(x, is_double, (size_t)r * IN + i) * w[i * OUT + o];
      worst = fmax(worst, fabs((double)(sum - element(y, is_double, (size_t)r * OUT + o))));
      scale = fmax(scale, fabs((double)sum));
    }
done:
  ts_matrix_release(&m);
  free(w);
  free(x);
  free(y);
  return scale > 0 ? worst / scale : NAN;
}
