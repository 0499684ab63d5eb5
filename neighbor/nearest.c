/* SPDX-License-Identifier: MIT
 *
 * A heap of the nearest edges so far, the furthest of them on top: each further edge either stays
 * out or replaces the top.  Cost: one comparison per edge and log(most) per replacement. */
#include "neighbor/nearest.h"

typedef struct entry {
  double r;
  int edge;
} entry;

static bool further(entry a, entry b)
{
  return a.r > b.r || (a.r == b.r && a.edge > b.edge);
}

static void sift(entry *heap, int size, int at)
{
  const entry moved = heap[at];
  for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && further(heap[child + 1], heap[child])) child++;
    if (!further(heap[child], moved)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

bool ts_nearest_keep(int count, const double *geometry, int most, uint8_t *active)
{
  entry heap[TS_NEAREST_MOST];
  int size = 0, total = 0;
  for (int e = 0; e < count; e++)
    total += active[e];
  if (total <= most) return false;
  for (int e = 0; e < count; e++) {
    if (!active[e]) continue;
    const entry next = {geometry[4 * e + 3], e};
    if (size < most) {
      heap[size++] = next;
      for (int i = size / 2 - 1; size == most && i >= 0; i--)
        sift(heap, size, i);
      continue;
    }
    const bool replaces = further(heap[0], next);
    active[replaces ? heap[0].edge : e] = 0;
    if (!replaces) continue;
    heap[0] = next;
    sift(heap, size, 0);
  }
  return true;
}
