/* SPDX-License-Identifier: MIT
 *
 * ll128: the non-deterministic all-reduce.  A word of the message has one home, on a line of 128
 * bytes of the rank that owns its part; all ranks combine into it by atomic operations, in the
 * order in which they happen to come, and count themselves in the line's first word.  When that
 * word says that all have come, everyone reads the other fifteen.  Floating-point sums therefore
 * differ in the last bits from call to call (not from rank to rank).  It moves 2(N-1)/N M words
 * per rank, N-1 times fewer slots than messages need, and is here for comparison: on CPUs the
 * atomic operations cost more than they save. */
#ifndef TS_COLLECTIVE_LINE_H
#define TS_COLLECTIVE_LINE_H

#include "comm/collective_buffer.h"

typedef struct ts_cline {
  int rank, size;
  size_t lines;   /* per rank and sub-buffer */
  size_t used[3]; /* of them in the last round of each sub-buffer */
  uint64_t epoch;
  unsigned char *memory;
  tsi_cwait wait;
  double looked;
  int missed;
  ts_ccount count;
} ts_cline;

/** Bytes of shared memory for `size` ranks that handle `words` words a round each, at least. */
size_t ts_cline_bytes(int size, size_t words);

/** Make fresh memory ready; by one rank. */
void ts_cline_fill(int size, size_t words, void *memory);

/** A rank's view; memory borrowed. */
void ts_cline_init(ts_cline *l, int rank, int size, size_t words, void *memory,
                   const tsi_cwait *wait);

/** All-reduce of [n] words; in and out may be the same.  Values with the bits of the sentinel are
 * refused.  Returns what ts_cbuffer_send() does. */
int ts_cline_allreduce(ts_cline *l, tsi_combine *combine, const ts_word *in, ts_word *out,
                       size_t n);

#endif
