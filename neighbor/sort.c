/* SPDX-License-Identifier: MIT
 *
 * Least significant digit first, 11 bits a pass; passes in which all keys share the digit are
 * skipped, so small ids cost two passes and 63-bit curve keys six. */
#include "neighbor/sort.h"

#include <stdlib.h>
#include <string.h>

#include "neighbor/array.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { DIGIT = 11, BUCKETS = 1 << DIGIT, PASSES = (64 + DIGIT - 1) / DIGIT };

typedef struct keyed {
  uint64_t key;
  ts_lidx index;
} keyed;

static void sort_pass(ts_lidx n, int shift, const keyed *from, keyed *to, ts_lidx *start)
{
  ts_lidx sum = 0;
  for (int b = 0; b < BUCKETS; b++) {
    const ts_lidx size = start[b];
    start[b] = sum;
    sum += size;
  }
  for (ts_lidx k = 0; k < n; k++)
    to[start[from[k].key >> shift & (BUCKETS - 1)]++] = from[k];
}

int tsi_sort_order(ts_lidx n, const uint64_t *key, ts_lidx *order)
{
  keyed *from = NULL, *to = NULL;
  ts_lidx(*count)[BUCKETS] = NULL;
  int status = 0;
  TS_TRY_GOTO(status, TSI_ARRAY(from, n), done);
  TS_TRY_GOTO(status, TSI_ARRAY(to, n), done);
  TS_TRY_GOTO(status, TSI_NEW(count, PASSES), done);
  for (ts_lidx k = 0; k < n; k++) {
    from[k] = (keyed){key[order[k]], order[k]};
    for (int p = 0; p < PASSES; p++)
      count[p][from[k].key >> (p * DIGIT) & (BUCKETS - 1)]++;
  }
  for (int p = 0; p < PASSES && n > 0; p++) {
    if (count[p][from[0].key >> (p * DIGIT) & (BUCKETS - 1)] == n) continue;
    sort_pass(n, p * DIGIT, from, to, count[p]);
    keyed *swap = from;
    from = to;
    to = swap;
  }
  for (ts_lidx k = 0; k < n; k++)
    order[k] = from[k].index;
done:
  free(from);
  free(to);
  free(count);
  return status;
}
