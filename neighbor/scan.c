/* SPDX-License-Identifier: MIT
 *
 * The portable inner loops and the choice among all.  Distances of a block are formed first, in a
 * loop that any compiler turns into vector code; the selection advances its output only past
 * members, so it has no branch to mispredict. */
#include "neighbor/scan.h"

static float box_gap(float x, float low, float high)
{
  const float below = low - x, above = x - high;
  const float gap = below > above ? below : above;
  return gap > 0 ? gap : 0;
}

static void keep_portable(const tsi_points *in, const tsi_box *box, float far, tsi_points *out)
{
  int32_t n = 0;
  for (int32_t block = 0; block < in->n; block += TSI_LANES) {
    float r2[TSI_LANES];
    for (int k = 0; k < TSI_LANES; k++) {
      const float dx = box_gap(in->x[block + k], box->low[0], box->high[0]);
      const float dy = box_gap(in->y[block + k], box->low[1], box->high[1]);
      const float dz = box_gap(in->z[block + k], box->low[2], box->high[2]);
      r2[k] = dx * dx + dy * dy + dz * dz;
    }
    for (int k = 0; k < TSI_LANES; k++) {
      out->x[n] = in->x[block + k];
      out->y[n] = in->y[block + k];
      out->z[n] = in->z[block + k];
      out->id[n] = in->id[block + k];
      n += r2[k] <= far;
    }
  }
  out->n = n;
  tsi_points_pad(out);
}

static int32_t near_portable(const tsi_points *in, const float p[3], const tsi_bounds *bounds,
                             int32_t *hit, int32_t *unsure, int32_t *nunsure)
{
  int32_t n = 0, nu = 0;
  for (int32_t block = 0; block < in->n; block += TSI_LANES) {
    float r2[TSI_LANES];
    for (int k = 0; k < TSI_LANES; k++) {
      const float dx = in->x[block + k] - p[0];
      const float dy = in->y[block + k] - p[1];
      const float dz = in->z[block + k] - p[2];
      r2[k] = dx * dx + dy * dy + dz * dz;
    }
    for (int k = 0; k < TSI_LANES; k++) {
      const int is_hit = r2[k] <= bounds->far;
      hit[n] = in->id[block + k];
      unsure[nu] = n;
      nu += is_hit & !(r2[k] >= bounds->sure_low && r2[k] <= bounds->sure_high);
      n += is_hit;
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
