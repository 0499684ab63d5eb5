/* SPDX-License-Identifier: MIT
 *
 * Lengths, directions, the active mask and fingerprints. */
#include "neighbor/geometry.h"

#include <math.h>

#include "neighbor/edge_vector.h"

void ts_edges_measure(const ts_edges *edges, const double (*x)[3], ts_lidx first, ts_lidx last,
                      double lower, double cutoff, double *geometry, uint8_t *active,
                      double *closest, int64_t *closest_edge)
{
  double least = INFINITY;
  int64_t least_edge = -1;
  for (ts_lidx i = first; i < last; i++)
    for (int64_t edge = edges->row[i]; edge < edges->row[i + 1]; edge++) {
      const int64_t k = edge - edges->row[first];
      double d[3];
      const double r =
          tsi_edge_vector(x[i], x[edges->sender[edge]], edges->shift_vector[edges->shift[edge]], d);
      const double inverse = r > 0 ? 1 / r : 0;
      geometry[4 * k + 0] = d[0] * inverse;
      geometry[4 * k + 1] = d[1] * inverse;
      geometry[4 * k + 2] = d[2] * inverse;
      geometry[4 * k + 3] = r;
      active[k] = r > 0 && tsi_edge_in_range(r, lower, cutoff);
      if (r < least) {
        least = r;
        least_edge = edge;
      }
    }
  if (closest) *closest = least;
  if (closest_edge) *closest_edge = least_edge;
}

/* A bijection of 64 bits that spreads every bit over all others (the finaliser of splitmix64). */
static uint64_t mix(uint64_t z)
{
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

uint64_t ts_edges_hash(const ts_edges *edges, const uint8_t *active, const ts_gidx *gid,
                       const int32_t (*image)[3])
{
  static const int32_t zero[3];
  uint64_t sum = 0;
  for (ts_lidx i = 0; i < edges->n; i++) {
    const uint64_t start = mix((uint64_t)gid[i] + 0x9e3779b97f4a7c15ULL);
    const int32_t *ni = image ? image[i] : zero;
    for (int64_t edge = edges->row[i]; edge < edges->row[i + 1]; edge++) {
      if (active && !active[edge]) continue;
      const ts_lidx j = edges->sender[edge];
      const int16_t *s = edges->shift_image[edges->shift[edge]];
      const int32_t *nj = image ? image[j] : zero;
      uint64_t h = mix(start + (uint64_t)gid[j]);
      for (int k = 0; k < 3; k++)
        h = mix(h + (uint64_t)((int64_t)s[k] + ni[k] - nj[k]));
      sum += h;
    }
  }
  return sum;
}

double ts_displacement_max(ts_lidx n, const double (*x)[3], const double (*reference)[3],
                           ts_lidx *atom)
{
  double most = -1;
  ts_lidx which = -1;
  for (ts_lidx i = 0; i < n; i++) {
    double d2 = 0;
    for (int k = 0; k < 3; k++)
      d2 += (x[i][k] - reference[i][k]) * (x[i][k] - reference[i][k]);
    if (d2 <= most) continue; /* false for NaN too */
    which = i;
    most = d2;
    if (!isfinite(d2)) break;
  }
  if (atom) *atom = which;
  return which < 0 ? 0 : isfinite(most) ? sqrt(most) : INFINITY;
}
