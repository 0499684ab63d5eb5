/* SPDX-License-Identifier: MIT
 *
 * Records that name their destination, delivered to any rank without asking everybody.  Under
 * linear routing they go by the bits of the rank: one exchange with rank ^ 1, one with rank ^ 2,
 * and so on, so a rank sends log2(K) messages whatever K is, and a record makes log2(K) / 2 hops on
 * average.  Ranks beyond the largest power of two hand theirs to rank - that power first, and get
 * theirs from it last.  Under splitmix everybody exchanges with everybody. */
#ifndef TS_PEERS_DELIVER_H
#define TS_PEERS_DELIVER_H

#include "comm/peers.h"

/** A growing list of records of one size. */
typedef struct ts_box {
  int64_t n, room;
  char *data;
} ts_box;

/** Append `n` records.  \return 0 or TS_ERR_MEMORY. */
int ts_box_add(ts_box *box, size_t record, int64_t n, const void *records);

typedef struct ts_delivery ts_delivery;

/** Not collective; the same on all ranks.  `ranks` is copied, its comm and traffic are borrowed. */
int ts_delivery_create(const ts_ranks *ranks, ts_route_mode mode, ts_delivery **out);
void ts_delivery_destroy(ts_delivery **delivery);

/** Deliver.  Collective on the ranks.
 * \param [in] record  Bytes of a record, which begins with an int32_t: its destination rank.
 * \param [in,out] box  [hosted]: records to send; then those that arrived, in an order that
 *   follows from what was sent.
 * \return 0 or as ts_peers_exchange(). */
int ts_delivery_run(ts_delivery *delivery, size_t record, ts_box *box);

#endif
