/* SPDX-License-Identifier: MIT
 *
 * Collectives on a message buffer, in words.  Any length: several rounds through the buffer, no
 * barrier between them.  in and out are the same or apart.  Every result is combined in the order
 * of the ranks, so it has the same bits on all ranks, in all modes and with one shot or two.
 *
 *   volume sent by a rank for M bytes on N ranks (twice that in mode ll), synchronisations a round:
 *     one-shot      (N-1) M       1   everyone sends all to everyone
 *     two-shot      2 (N-1) M/N   2   everyone combines a part, then sends it to everyone
 *     broadcast     (N-1) M at the root
 *     reduce        M at the others
 *     reduce-scatter, all-gather   (N-1) m for parts of m bytes */
#ifndef TS_COLLECTIVE_SHOT_H
#define TS_COLLECTIVE_SHOT_H

#include "comm/collective_buffer.h"

/* Collective on the ranks of the buffer; n and what else is no array are equal on all.  Return what
 * the buffer's primitives do. */

/** All-reduce of [n] words. */
int tsi_shot_one(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n);
int tsi_shot_two(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n);

/** x [n] of the root to all. */
int tsi_shot_broadcast(ts_cbuffer *b, int root, ts_word *x, size_t n);

/** in [n] of all combined into the root's out [n]; out of others is not used. */
int tsi_shot_reduce(ts_cbuffer *b, tsi_combine *combine, int root, const ts_word *in, ts_word *out,
                    size_t n);

/** in [size,n] of all combined; row `rank` into out [n], which may be apart from in, or in itself,
 * or its row. */
int tsi_shot_reduce_scatter(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out,
                            size_t n);

/** in [n] of each rank into the rows of out [size,n]; in may be the rank's row of out. */
int tsi_shot_all_gather(ts_cbuffer *b, const ts_word *in, ts_word *out, size_t n);

#endif
