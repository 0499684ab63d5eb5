/* SPDX-License-Identifier: MIT
 *
 * The blocks from closed forms.  A degree-2 feature is a symmetric traceless matrix in the
 * orthonormal basis T_m below, a degree-1 feature a vector; the products with a vector u are then
 * the ones of vector algebra (scaling, dot and cross product, matrix times vector, commutator with
 * the rotation about u), each divided by the length that makes an output row's squares sum to one.
 * Signs follow the published Wigner coefficients. */
#include "models/clebsch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The Levi-Civita symbol. */
static double epsilon(int a, int b, int c)
{
  return (a - b) * (b - c) * (c - a) / 2.0;
}

/* T_m, rows of degree 2: xz, xy, y^2-(x^2+z^2)/2, yz, (z^2-x^2)/2; Frobenius norm one. */
static void traceless(int m, double T[3][3])
{
  const double half = sqrt(0.5), sixth = sqrt(1.0 / 6.0);
  memset(T, 0, 9 * sizeof(double));
  switch (m) {
    case 0:
      T[0][2] = T[2][0] = half;
      break;
    case 1:
      T[0][1] = T[1][0] = half;
      break;
    case 2:
      T[0][0] = T[2][2] = -sixth, T[1][1] = 2.0 * sixth;
      break;
    case 3:
      T[1][2] = T[2][1] = half;
      break;
    default:
      T[0][0] = -half, T[2][2] = half;
      break;
  }
}

static void from_vector_to_2(double *G)
{
  for (int c = 0; c < 5; ++c) {
    double T[3][3];
    traceless(c, T);
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        G[(a * 3 + b) * 5 + c] = T[a][b];
  }
}

static void from_2_to_vector(double *G)
{
  for (int a = 0; a < 5; ++a) {
    double T[3][3];
    traceless(a, T);
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 3; ++c)
        G[(a * 3 + b) * 3 + c] = sqrt(0.6) * T[b][c];
  }
}

/* trace(T_c (E_b T_a - T_a E_b)) with (E_b)_kl = epsilon_bkl. */
static double commutator(int a, int b, int c)
{
  double A[3][3], C[3][3], sum = 0.0;
  traceless(a, A);
  traceless(c, C);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < 3; ++l)
        sum += C[i][k] * (epsilon(b, k, l) * A[l][i] - A[k][l] * epsilon(b, l, i));
  return sum;
}

static void from_2_to_2(double *G)
{
  for (int a = 0; a < 5; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 5; ++c)
        G[(a * 3 + b) * 5 + c] = commutator(a, b, c) / sqrt(6.0);
}

static void from_vector_to_vector(double *G)
{
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 3; ++c)
        G[(a * 3 + b) * 3 + c] = sqrt(0.5) * epsilon(a, b, c);
}

void ts_clebsch_gordan(int l1, int l3, double *G)
{
  assert(l1 >= 0 && l1 <= 2 && l3 >= 0 && l3 <= 2 && abs(l1 - l3) <= 1 && l1 + l3 > 0);
  if (l1 == 0 || l3 == 0) { /* a scalar scales the vector; or the dot product */
    for (int i = 0; i < 9; ++i)
      G[i] = i % 4 ? 0.0 : l1 == 0 ? 1.0 : sqrt(1.0 / 3.0);
  } else if (l1 == 1 && l3 == 1) {
    from_vector_to_vector(G);
  } else if (l1 == 1) {
    from_vector_to_2(G);
  } else if (l3 == 1) {
    from_2_to_vector(G);
  } else {
    from_2_to_2(G);
  }
}

int ts_clebsch_paths(int l3, int lmax, int l1[TS_CLEBSCH_PATHS])
{
  int count = 0;
  for (int l = l3 > 0 ? l3 - 1 : 1; l <= l3 + 1 && l <= lmax; ++l)
    l1[count++] = l;
  return count;
}
