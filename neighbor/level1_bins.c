/* SPDX-License-Identifier: MIT
 *
 * Level 1, scheme `bins`.  Space is cut into at most 8192 bins, the same for all ranks.  A rank
 * publishes two sets of them, a bit each: those that hold one of its atoms, and those within reach
 * of one.  It needs the ranks that hold atoms in the latter; of their atoms, those within reach of
 * a bin of the former.  Any shape of shard is followed, at the resolution of the bins. */
#include <math.h>

#include "neighbor/level1_impl.h"

enum { WORDS = TS_LEVEL1_MOST_BINS / 64 };

typedef struct bin_row {
  uint64_t held[WORDS], near[WORDS];
} bin_row;

/* Bins along an axis within reach of a place: `count` of them from `first`, around the period. */
typedef struct bin_range {
  int first[3], count[3];
} bin_range;

static double extent(const tsi_space *space, int axis)
{
  if (space->box.periodic[axis]) return 1;
  return fmax(0, space->high[axis] - space->low[axis]); /* of no atoms: below zero */
}

/* Bins no thinner than asked for (or than half the reach: finer ones tell little more); if those
 * are too many, the finest that are not. */
static void prepare(const ts_level1_params *params, double reach, tsi_space *space)
{
  const double least = params->bin > 0 ? params->bin : reach / 2;
  double length[3], longest = 0;
  for (int k = 0; k < 3; k++) {
    length[k] = extent(space, k) * space->box.height[k];
    longest = fmax(longest, length[k]);
  }
  for (double width = fmax(least, longest / TS_LEVEL1_MOST_BINS);; width *= 1.01) {
    double bins = 1;
    for (int k = 0; k < 3; k++) {
      space->bins[k] = (int)fmin(fmax(1, length[k] / width), TS_LEVEL1_MOST_BINS);
      bins *= space->bins[k];
    }
    if (bins <= TS_LEVEL1_MOST_BINS) break;
  }
}

static int bin_along(const tsi_space *space, int axis, double t)
{
  const double length = extent(space, axis);
  const double low = space->box.periodic[axis] ? 0 : space->low[axis];
  return length > 0 ? (int)floor((t - low) / length * space->bins[axis]) : 0;
}

static int clamp(int bin, int bins)
{
  return bin < 0 ? 0 : bin < bins ? bin : bins - 1;
}

static int number(const tsi_space *space, const int bin[3])
{
  return (bin[0] * space->bins[1] + bin[1]) * space->bins[2] + bin[2];
}

static int bin_of(const tsi_space *space, const double t[3])
{
  int bin[3];
  for (int k = 0; k < 3; k++)
    bin[k] = clamp(bin_along(space, k, t[k]), space->bins[k]);
  return number(space, bin);
}

static bin_range range_of(const tsi_space *space, const double t[3])
{
  bin_range r;
  for (int k = 0; k < 3; k++) {
    const int bins = space->bins[k];
    r.first[k] = 0;
    r.count[k] = bins;
    int first = bin_along(space, k, t[k] - space->reach[k]);
    int last = bin_along(space, k, t[k] + space->reach[k]);
    if (!space->box.periodic[k]) {
      first = clamp(first, bins);
      last = clamp(last, bins);
    }
    if (last - first + 1 >= bins) continue;
    r.first[k] = (first + bins) % bins;
    r.count[k] = last - first + 1;
  }
  return r;
}

static int number_in(const tsi_space *space, const bin_range *r, int a, int b, int c)
{
  const int bin[3] = {(r->first[0] + a) % space->bins[0], (r->first[1] + b) % space->bins[1],
                      (r->first[2] + c) % space->bins[2]};
  return number(space, bin);
}

static void add(uint64_t *set, int bin)
{
  set[bin / 64] |= UINT64_C(1) << bin % 64;
}

static bool has(const uint64_t *set, int bin)
{
  return set[bin / 64] >> bin % 64 & 1;
}

static void add_range(const tsi_space *space, const bin_range *r, uint64_t *set)
{
  for (int a = 0; a < r->count[0]; a++)
    for (int b = 0; b < r->count[1]; b++)
      for (int c = 0; c < r->count[2]; c++)
        add(set, number_in(space, r, a, b, c));
}

static bool has_any(const tsi_space *space, const bin_range *r, const uint64_t *set)
{
  for (int a = 0; a < r->count[0]; a++)
    for (int b = 0; b < r->count[1]; b++)
      for (int c = 0; c < r->count[2]; c++)
        if (has(set, number_in(space, r, a, b, c))) return true;
  return false;
}

static size_t row_size(const ts_level1_params *params)
{
  (void)params;
  return sizeof(bin_row);
}

static void publish(const tsi_space *space, const ts_level1_params *params, ts_lidx n,
                    const double (*t)[3], void *row_)
{
  bin_row *row = row_;
  (void)params;
  for (ts_lidx i = 0; i < n; i++) {
    const bin_range near = range_of(space, t[i]);
    add(row->held, bin_of(space, t[i]));
    add_range(space, &near, row->near);
  }
}

static bool asks(const tsi_space *space, const ts_level1_params *params, const void *asker,
                 const void *source, ts_level1_stats *stats)
{
  const bin_row *a = asker, *s = source;
  (void)space;
  (void)params;
  for (int w = 0; w < WORDS; w++)
    if (a->near[w] & s->held[w]) {
      if (stats) stats->sources++;
      return true;
    }
  return false;
}

static void clip(const tsi_space *space, const ts_level1_params *params, const void *asker,
                 const void *source, ts_lidx n, const double (*t)[3], uint8_t *images)
{
  const bin_row *row = asker;
  (void)params;
  (void)source;
  for (ts_lidx i = 0; i < n; i++) {
    if (!has(row->near, bin_of(space, t[i]))) continue;
    const bin_range near = range_of(space, t[i]);
    images[i] = has_any(space, &near, row->held);
  }
}

const tsi_level1_ops tsi_level1_bins = {
    .prepare = prepare, .row_size = row_size, .publish = publish, .asks = asks, .clip = clip};
