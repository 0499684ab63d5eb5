/* SPDX-License-Identifier: MIT
 *
 * Harmonics and Clebsch-Gordan blocks from symmetric traceless tensors.  Row m of degree l is a
 * harmonic polynomial p_m of a vector, homogeneous of degree l; written p_m(v) = S_m[i,j,..] v_i
 * v_j .. with a symmetric S_m of length one, the S_m are an orthonormal basis of the symmetric
 * traceless tensors of rank l.  A feature of degree l is such a tensor, and its products with a
 * vector u are those of tensor algebra:
 *
 *   l3 = l1 + 1:  the traceless part of the product,           G = (S_c . u) . S_a
 *   l3 = l1 - 1:  u contracted with an index,                  G = (S_a . u) . S_c  sqrt(n3/n1)
 *   l3 = l1:      u turns the tensor like an angular velocity,  G = S_c . (u x S_a)  sqrt(l/(l+1))
 *
 * with n = 2l+1; the factors make the squares of every output row sum to one.  Order of the rows
 * and signs follow the published code, whose blocks come out of complex coefficients and a change
 * of basis (tests/test_clebsch_blocks.c compares). */
#include "models/clebsch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 3, TERMS = 3, TENSOR = 27 }; /* highest rank; monomials of a row; components */

/* factor x^at[0] y^at[1] z^at[2] */
typedef struct monomial {
  int factor, at[3];
} monomial;

/* The rows of degrees 1, 2 and 3, y the polar axis, before normalisation; a factor of 0 ends a row.
 */
static const monomial polynomial[RANK][2 * RANK + 1][TERMS] = {
    {{{1, {1, 0, 0}}}, {{1, {0, 1, 0}}}, {{1, {0, 0, 1}}}},
    {{{1, {1, 0, 1}}},
     {{1, {1, 1, 0}}},
     {{2, {0, 2, 0}}, {-1, {2, 0, 0}}, {-1, {0, 0, 2}}},
     {{1, {0, 1, 1}}},
     {{1, {0, 0, 2}}, {-1, {2, 0, 0}}}},
    {{{3, {1, 0, 2}}, {-1, {3, 0, 0}}},
     {{1, {1, 1, 1}}},
     {{4, {1, 2, 0}}, {-1, {3, 0, 0}}, {-1, {1, 0, 2}}},
     {{2, {0, 3, 0}}, {-3, {2, 1, 0}}, {-3, {0, 1, 2}}},
     {{4, {0, 2, 1}}, {-1, {2, 0, 1}}, {-1, {0, 0, 3}}},
     {{1, {0, 1, 2}}, {-1, {2, 1, 0}}},
     {{1, {0, 0, 3}}, {-3, {2, 0, 1}}}}};

/* 3^l */
static int components(int l)
{
  return l == 0 ? 1 : l == 1 ? 3 : l == 2 ? 9 : TENSOR;
}

/* S_m of degree l [3^l]: each monomial spread evenly over the orders of its indices. */
static void tensor(int l, int m, double S[TENSOR])
{
  static const int arrangements[RANK + 1] = {1, 1, 2, 6}; /* l! */
  const int size = components(l);
  double square = 0.0;
  for (int i = 0; i < size; ++i) {
    int count[3] = {0};
    for (int k = i, axis = 0; axis < l; ++axis, k /= 3)
      ++count[k % 3];
    S[i] = 0.0;
    for (const monomial *t = polynomial[l - 1][m]; t < polynomial[l - 1][m] + TERMS; ++t)
      if (t->factor && !memcmp(t->at, count, sizeof count)) {
        int orders = arrangements[l];
        for (int axis = 0; axis < 3; ++axis)
          orders /= arrangements[count[axis]];
        S[i] = (double)t->factor / orders;
      }
    square += S[i] * S[i];
  }
  for (int i = 0; i < size; ++i)
    S[i] /= sqrt(square);
}

static double dot(int size, const double *S, const double *T)
{
  double sum = 0.0;
  for (int i = 0; i < size; ++i)
    sum += S[i] * T[i];
  return sum;
}

/* All rows of a degree. */
static void tensors(int l, double S[2 * RANK + 1][TENSOR])
{
  for (int m = 0; m < 2 * l + 1; ++m)
    tensor(l, m, S[m]);
}

/* One number of a block of degrees l1, l3 >= 1, but for its factor.  A's and C's first index is the
 * slowest, so fixing it leaves a run of components. */
static double product(int l1, int l3, const double *A, int b, const double *C)
{
  const int low = l1 < l3 ? l1 : l3, run = components(low);
  if (l1 < l3) return dot(run, C + run * b, A);
  if (l1 > l3) return dot(run, A + run * b, C);
  const int part = components(l1 - 1), k = part * ((b + 1) % 3), m = part * ((b + 2) % 3);
  return dot(part, C + k, A + m) - dot(part, C + m, A + k);
}

void ts_clebsch_gordan(int l1, int l3, double *G)
{
  double A[2 * RANK + 1][TENSOR], C[2 * RANK + 1][TENSOR];
  assert(l1 >= 0 && l1 <= RANK && l3 >= 0 && l3 <= RANK && abs(l1 - l3) <= 1 && l1 + l3 > 0);
  if (l1 == 0 || l3 == 0) { /* a scalar scales the vector; or the dot product */
    for (int i = 0; i < 9; ++i)
      G[i] = i % 4 ? 0.0 : l1 == 0 ? 1.0 : sqrt(1.0 / 3.0);
    return;
  }
  const double factor = l1 < l3   ? 1.0
                        : l1 > l3 ? sqrt((2.0 * l3 + 1.0) / (2.0 * l1 + 1.0))
                                  : sqrt(l1 / (l1 + 1.0));
  tensors(l1, A);
  tensors(l3, C);
  for (int a = 0; a < 2 * l1 + 1; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 2 * l3 + 1; ++c) {
        const double g = factor * product(l1, l3, A[a], b, C[c]);
        *G++ = fabs(g) < 1e-12 ? 0.0 : g; /* terms that cancel */
      }
}

int ts_clebsch_paths(int l3, int lmax, int l1[TS_CLEBSCH_PATHS])
{
  int count = 0;
  for (int l = l3 > 0 ? l3 - 1 : 1; l <= l3 + 1 && l <= lmax; ++l)
    l1[count++] = l;
  return count;
}

/* (2l+1)!!/l!: |Y_l|^2 = 2l+1 for a unit vector. */
static double square_scale(int l)
{
  return l == 1 ? 3.0 : l == 2 ? 7.5 : 17.5;
}

void ts_harmonics(int lmax, const double v[3], double *Y)
{
  assert(lmax >= 0 && lmax <= RANK);
  *Y++ = 1.0;
  for (int l = 1; l <= lmax; ++l)
    for (int m = 0; m < 2 * l + 1; ++m) {
      double S[TENSOR], sum = 0.0;
      tensor(l, m, S);
      for (int i = 0; i < components(l); ++i) {
        double term = S[i];
        for (int k = i, axis = 0; axis < l; ++axis, k /= 3)
          term *= v[k % 3];
        sum += term;
      }
      *Y++ = sqrt(square_scale(l)) * sum;
    }
}
