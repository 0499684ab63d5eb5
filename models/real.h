/* SPDX-License-Identifier: MIT
 *
 * One kernel source, two precisions, several instruction sets.  A kernel source is compiled once
 * per pair (TS_KERNEL_DOUBLE, TS_KERNEL_ISA); `real` is its scalar and TS_K(name) gives its symbols
 * a suffix of their own, collected in a table by kernel_table_cpu.c.  Loops are written for the
 * vectoriser: plain arrays, unit strides, `restrict`, no calls.  That is why exp is written out
 * here: a call per element of the softmax and the gates would cost a tenth of the step. */
#ifndef TS_REAL_H
#define TS_REAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if TS_KERNEL_DOUBLE
typedef double real;
#define TS_K_PRECISION d
#else
typedef float real;
#define TS_K_PRECISION f
#endif

#define TS_K_PASTE2(name, precision, isa) tsi_##name##_##precision##_##isa
#define TS_K_PASTE(name, precision, isa) TS_K_PASTE2(name, precision, isa)
#define TS_K(name) TS_K_PASTE(name, TS_K_PRECISION, TS_KERNEL_ISA)

#define TS_RESTRICT __restrict__
#define TS_SIMD _Pragma("omp simd")

/* exp by 2^n * p(x - n ln 2): 1 ulp in double, 2 ulp in float; clamped where the result would leave
 * the normal range, so that it is 0 to rounding (never a NaN) for very negative x. */
#if TS_KERNEL_DOUBLE
static inline double real_exp(double x)
{
  const double c = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
  const double t = c * 1.4426950408889634;
  const int32_t n = (int32_t)(t + (t < 0 ? -0.5 : 0.5));
  const double r = (c - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868099e-09;
  p = p * r + 2.5052108385441719e-08;
  p = p * r + 2.7557319223985891e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333332e-03;
  p = p * r + 4.1666666666666664e-02;
  p = p * r + 1.6666666666666666e-01;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  union {
    int64_t i;
    double f;
  } scale = {.i = ((int64_t)n + 1023) << 52};
  return p * scale.f;
}
#else
static inline float real_exp(float x)
{
  const float c = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float t = c * 1.44269504f;
  const int32_t n = (int32_t)(t + (t < 0 ? -0.5f : 0.5f));
  const float m = (float)n;
  const float r = (c - m * 0.693359375f) + m * 2.12194440e-4f;
  float p = 1.9841270e-4f;
  p = p * r + 1.3888889e-3f;
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666668e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  union {
    int32_t i;
    float f;
  } scale = {.i = (n + 127) << 23};
  return p * scale.f;
}
#endif

static inline real real_sigmoid(real x)
{
  return (real)1 / ((real)1 + real_exp(-x));
}

static inline real real_silu(real x)
{
  return x * real_sigmoid(x);
}

/* d silu / dx */
static inline real real_silu_slope(real x)
{
  const real s = real_sigmoid(x);
  return s * ((real)1 + x * ((real)1 - s));
}

/* The next `count` reals of a task's scratch, on a 64-byte line. */
static inline real *scratch_take(char **scratch, size_t count)
{
  real *piece = (real *)(void *)*scratch;
  *scratch += (count * sizeof(real) + 63) / 64 * 64;
  return piece;
}

#endif
