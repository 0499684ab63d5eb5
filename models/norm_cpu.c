/* SPDX-License-Identifier: MIT
 *
 * The equivariant RMS norm: degree 0 is centred over the channels, then all rows of an atom are
 * divided by one RMS in which every degree counts alike.  Cheap (two passes over a feature), so
 * backward recomputes the statistics instead of keeping them. */
#include "models/kernels_impl.h"

static const real EPSILON = (real)1e-5;

/* Mean of row 0 and 1/RMS of atom a. */
static void statistics(const ts_shape *s, const real *h, int a, real *mean, real *inverse)
{
  const int C = s->channels;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  const real *h0 = h + (size_t)a * (size_t)C;
  real sum = 0, total = 0;
#pragma omp simd reduction(+ : sum)
  for (int c = 0; c < C; c++)
    sum += h0[c];
  const real m = sum / (real)C;
  for (int l = 0; l <= s->lmax; l++) {
    real square = 0;
    for (int r = l * l; r < (l + 1) * (l + 1); r++) {
      const real *x = h0 + (size_t)r * stride;
      const real shift = r == 0 ? m : 0;
#pragma omp simd reduction(+ : square)
      for (int c = 0; c < C; c++)
        square += (x[c] - shift) * (x[c] - shift);
    }
    total += square / (real)((2 * l + 1) * (s->lmax + 1));
  }
  *mean = m;
  *inverse = (real)1 / (real)sqrt(total / (real)C + EPSILON);
}

void TS_K(norm)(const ts_shape *s, const ts_norm *w, const void *h_, void *out_)
{
  const real *h = h_, *weight = w->weight, *bias = w->bias;
  real *out = out_;
  const int C = s->channels;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  for (int a = 0; a < s->atoms; a++) {
    real mean, inverse;
    statistics(s, h, a, &mean, &inverse);
    for (int l = 0; l <= s->lmax; l++) {
      const real *TS_RESTRICT g = weight + (size_t)l * (size_t)C;
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const size_t at = (size_t)r * stride + (size_t)a * (size_t)C;
        const real *TS_RESTRICT x = h + at;
        real *TS_RESTRICT y = out + at;
        const real shift = r == 0 ? mean : 0;
        TS_SIMD
        for (int c = 0; c < C; c++)
          y[c] = (x[c] - shift) * inverse * g[c];
      }
    }
    real *TS_RESTRICT y = out + (size_t)a * (size_t)C;
    TS_SIMD
    for (int c = 0; c < C; c++)
      y[c] += bias[c];
  }
}

/* With x the centred input, s = 1/RMS and g = dout w:  dx = g s - x s^3 (g.x) balance / C, and the
 * centring takes the mean of dx off row 0. */
void TS_K(norm_back)(const ts_shape *s, const ts_norm *w, const void *h_, const void *dout_,
                     void *dh_)
{
  const real *h = h_, *dout = dout_, *weight = w->weight;
  real *dh = dh_;
  const int C = s->channels;
  const size_t stride = (size_t)s->atoms * (size_t)C;
  for (int a = 0; a < s->atoms; a++) {
    real mean, inverse, product = 0;
    statistics(s, h, a, &mean, &inverse);
    for (int l = 0; l <= s->lmax; l++) {
      const real *TS_RESTRICT g = weight + (size_t)l * (size_t)C;
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const size_t at = (size_t)r * stride + (size_t)a * (size_t)C;
        const real *TS_RESTRICT x = h + at, *TS_RESTRICT d = dout + at;
        const real shift = r == 0 ? mean : 0;
#pragma omp simd reduction(+ : product)
        for (int c = 0; c < C; c++)
          product += d[c] * g[c] * (x[c] - shift);
      }
    }
    const real pull = product * inverse * inverse * inverse / (real)C;
    for (int l = 0; l <= s->lmax; l++) {
      const real *TS_RESTRICT g = weight + (size_t)l * (size_t)C;
      const real balanced = pull / (real)((2 * l + 1) * (s->lmax + 1));
      for (int r = l * l; r < (l + 1) * (l + 1); r++) {
        const size_t at = (size_t)r * stride + (size_t)a * (size_t)C;
        const real *TS_RESTRICT x = h + at, *TS_RESTRICT d = dout + at;
        real *TS_RESTRICT y = dh + at;
        real centre = 0;
        const real shift = r == 0 ? mean : 0;
        if (r == 0) {
#pragma omp simd reduction(+ : centre)
          for (int c = 0; c < C; c++)
            centre += d[c] * g[c] * inverse - (x[c] - shift) * balanced;
          centre /= (real)C;
        }
        TS_SIMD
        for (int c = 0; c < C; c++)
          y[c] += d[c] * g[c] * inverse - (x[c] - shift) * balanced - centre;
      }
    }
  }
}
