/* SPDX-License-Identifier: MIT
 *
 * The portable inner loops and the choice among all.  Distances of a block are formed first, in a
 * loop that any compiler turns into vector code; the selection advances its output only past
 * members, so it has no branch to mispredict. */
#include "neighbor/scan.h"

#include <math.h>

/* max(low - x, x - high, 0), exactly; without a choice, so that the loop around it is vectorised.
 */
static inline float box_gap(float x, float low, float high)
{
  const float below = low - x, above = x - high;
  return 0.5f * ((below + fabsf(below)) + (above + fabsf(above)));
}

static void keep_portable(const tsi_points *in, const tsi_box *box, float far, tsi_points *out)
{
  const tsi_box b = *box;
  float *ox = out->x, *oy = out->y, *oz = out->z;
  int32_t *oid = out->id, n = 0;
  for (int32_t block = 0; block < in->n; block += TSI_LANES) {
    const float *x = in->x + block, *y = in->y + block, *z = in->z + block;
    const int32_t *id = in->id + block;
    float r2[TSI_LANES];
    for (int k = 0; k < TSI_LANES; k++) {
      const float dx = box_gap(x[k], b.low[0], b.high[0]);
      const float dy = box_gap(y[k], b.low[1], b.high[1]);
      const float dz = box_gap(z[k], b.low[2], b.high[2]);
      r2[k] = dx * dx + dy * dy + dz * dz;
    }
    for (int k = 0; k < TSI_LANES; k++) {
      ox[n] = x[k];
      oy[n] = y[k];
      oz[n] = z[k];
      oid[n] = id[k];
      n += r2[k] <= far;
    }
  }
  out->n = n;
  tsi_points_pad(out);
}

static int32_t near_portable(const tsi_points *in, const float p[3], const tsi_bounds *bounds,
                             int32_t *hit, int32_t *unsure, int32_t *nunsure)
{
  const tsi_bounds b = *bounds;
  const float px = p[0], py = p[1], pz = p[2];
  int32_t n = 0, nu = 0;
  for (int32_t block = 0; block < in->n; block += TSI_LANES) {
    const float *x = in->x + block, *y = in->y + block, *z = in->z + block;
    const int32_t *id = in->id + block, first = n;
    float r2[TSI_LANES];
    int open = 0;
    for (int k = 0; k < TSI_LANES; k++) {
      const float dx = x[k] - px, dy = y[k] - py, dz = z[k] - pz;
      r2[k] = dx * dx + dy * dy + dz * dz;
    }
    for (int k = 0; k < TSI_LANES; k++)
      open |= (r2[k] < b.sure_low) | ((r2[k] > b.sure_high) & (r2[k] <= b.far));
    for (int k = 0; k < TSI_LANES; k++) {
      hit[n] = id[k];
      n += r2[k] <= b.far;
    }
    for (int k = 0, at = first; k < TSI_LANES && open; k++) {
      if (!(r2[k] <= b.far)) continue;
      if (r2[k] < b.sure_low || r2[k] > b.sure_high) unsure[nu++] = at;
      at++;
    }
  }
  *nunsure = nu;
  return n;
}

const tsi_scan tsi_scan_portable = {"portable", keep_portable, near_portable};

const tsi_scan *const *tsi_scan_list(int *count)
{
#if defined(__x86_64__)
  static const tsi_scan *const all[] = {&tsi_scan_avx512, &tsi_scan_avx2, &tsi_scan_portable};
  int first = 2;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) first = 1;
  if (first == 1 && __builtin_cpu_supports("avx512f")) first = 0;
  *count = 3 - first;
  return all + first;
#else
  static const tsi_scan *const all[] = {&tsi_scan_portable};
  *count = 1;
  return all;
#endif
}
