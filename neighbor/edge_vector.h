/* SPDX-License-Identifier: MIT
 *
 * The one place that says how long an edge is.  Search and measurement both call it, so that they
 * agree to the last bit about r <= limit: three differences, three shifts, one sum, one root, in
 * double and in this order (the build turns contraction off).  Antisymmetric exactly: exchanging i
 * and j and the sign of S negates every component. */
#ifndef TS_EDGE_VECTOR_H
#define TS_EDGE_VECTOR_H

#include <math.h>
#include <stdbool.h>

/** d = (xi - xj) - s [Å]; returns its length. */
static inline double tsi_edge_vector(const double xi[3], const double xj[3], const double s[3],
                                     double d[3])
{
  d[0] = (xi[0] - xj[0]) - s[0];
  d[1] = (xi[1] - xj[1]) - s[1];
  d[2] = (xi[2] - xj[2]) - s[2];
  return sqrt((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2]);
}

/** The range that edges are found, and marked active, in: closed at both ends. */
static inline bool tsi_edge_in_range(double r, double lower, double upper)
{
  return lower <= r && r <= upper;
}

#endif
