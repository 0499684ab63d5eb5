/* SPDX-License-Identifier: MIT
 *
 * The two inner loops of the search, for each instruction set: keep the points within reach of a
 * box, and list those within reach of a point.  Both keep the order of the points. */
#ifndef TS_SCAN_H
#define TS_SCAN_H

#include "neighbor/search.h"

struct tsi_scan {
  const char *name;
  /** Copy to `out` the points whose squared distance to the box is at most `far`.
   * out->capacity >= in->n + TSI_LANES; the copy is padded. */
  void (*keep)(const tsi_points *in, const tsi_box *box, float far, tsi_points *out);
  /** Write the ids of points with squared distance <= bounds->far to `hit`, and to `unsure` the
   * positions in `hit` of those not in sure_low .. sure_high.  Both have room for n + TSI_LANES.
   * \return the number of hits. */
  int32_t (*near)(const tsi_points *in, const float p[3], const tsi_bounds *bounds, int32_t *hit,
                  int32_t *unsure, int32_t *nunsure);
};

/** What this processor can run, fastest first; the last is portable.  Static. */
const tsi_scan *const *tsi_scan_list(int *count);

extern const tsi_scan tsi_scan_portable;
#if defined(__x86_64__)
extern const tsi_scan tsi_scan_avx2;
extern const tsi_scan tsi_scan_avx512;
#endif

#endif
