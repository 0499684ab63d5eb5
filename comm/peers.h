/* SPDX-License-Identifier: MIT
 *
 * Whom a rank may talk to, and exchanges inside that window.  A window is a set of XOR values
 * (under linear routing the peers of rank r are r ^ value) or everybody; counts, buffers and loops
 * have the window's size, not the number of ranks.  Counts are posted first and the payload is
 * packed under them; a slot that leads to the rank itself is a copy and costs no message.
 *
 * An exchange leaves its counts on both sides, so the same or the reverse exchange can be repeated
 * without counts: the replay.  Both sides then know which payloads are empty and skip them alike.
 * Which path is taken follows from the window alone, which all ranks share: a choice made from
 * local counts would let one rank wait for a message that another has decided not to send.
 *
 * Ranks may be virtual: all `size` of them hosted by one process, which copies and counts what
 * would have been sent.  The code above cannot tell; it loops over the ranks it hosts, one or all.
 *
 * A failure inside an exchange leaves messages under way: end the run (ts_world_abort()). */
#ifndef TS_PEERS_H
#define TS_PEERS_H

#include "comm/route.h"

typedef struct ts_traffic {
  int64_t messages, bytes; /**< sent to other ranks, counts included */
} ts_traffic;

typedef struct ts_ranks {
  MPI_Comm comm;       /**< MPI_COMM_NULL: virtual */
  int size;            /**< ranks in all */
  int first, hosted;   /**< this process is ranks first .. first + hosted - 1 */
  ts_traffic *traffic; /**< [hosted], added to by every exchange; NULL: not counted */
} ts_ranks;

/** The ranks of a communicator (borrowed; no other traffic may use it meanwhile).
 * \return 0 or TS_ERR_MPI. */
int ts_ranks_of(MPI_Comm comm, ts_ranks *out);

/** `size` virtual ranks, all in this process. */
ts_ranks ts_ranks_virtual(int size);

typedef struct ts_peers ts_peers;

/** The window of shifted keys.  Not collective, but the same on all ranks.
 * Linear: the distinct values hash(shift), ascending, among ranks below the router's; splitmix:
 * everybody.
 * \param [in] ranks   Copied; its comm and traffic are borrowed.
 * \param [in] router  Borrowed.  With fewer ranks than `ranks` the others have no peers.
 * \param [in] shift   [nshift], read here only. */
int ts_peers_create(const ts_ranks *ranks, const ts_router *router, int nshift, const ts_key *shift,
                    ts_peers **out);

/** The window {rank ^ value} of ranks below `limit`, a power of two; `value` [slots], distinct. */
int ts_peers_create_xor(const ts_ranks *ranks, int limit, int slots, const int *value,
                        ts_peers **out);

/** The window of everybody: slot s is rank s. */
int ts_peers_create_all(const ts_ranks *ranks, ts_peers **out);

/** Pairs across the power of two `fold`: rank r below it and r + fold, where there is one. */
int tsi_peers_create_fold(const ts_ranks *ranks, int fold, ts_peers **out);

void ts_peers_destroy(ts_peers **peers);

int ts_peers_slots(const ts_peers *peers);

/** The rank behind a slot, seen from `rank`; -1: nobody. */
int ts_peers_rank(const ts_peers *peers, int rank, int slot);

/** The slot of shift `s` of ts_peers_create() applied to a key of ours.  Linear: looked up, the key
 * is not hashed; splitmix: the owner of `shifted`. */
int ts_peers_slot(const ts_peers *peers, ts_key shifted, int s);

/** Write the records of one slot, as many as were counted.  `host` counts from 0 the ranks of this
 * process. */
typedef void (*ts_pack)(void *context, int host, int slot, void *out);

typedef struct ts_exchange {
  int64_t *sent, *received; /**< [hosted, slots] records */
  int64_t *first;           /**< [hosted * slots + 1] of a slot's records in data */
  char *data;               /**< records received, by host and slot; until the next exchange */
  char *out;                /* packed, the same way */
  int64_t *out_first;
  size_t data_size, out_size; /* allocated bytes */
  void *requests;
} ts_exchange;

int ts_exchange_create(const ts_peers *peers, ts_exchange *out);
void ts_exchange_destroy(ts_exchange *exchange);

/** Send `count` records to each slot and receive what the peers send.  Collective on the ranks.
 * \param [in]  record  Bytes of a record, the same on all ranks.
 * \param [in]  count   [hosted, slots]; 0 for a slot without a rank.
 * \param [out] x       received, first and data.
 * \return 0; TS_ERR_MPI (also more than 2^31 - 1 records in a message); TS_ERR_MEMORY. */
int ts_peers_exchange(const ts_peers *peers, size_t record, const int64_t *count, ts_pack pack,
                      void *context, ts_exchange *x);

/** Repeat the exchange that filled `x` with other contents (and, if wished, another record size),
 * without counts.  `back`: in reverse, an answer to each record that was received; `received`
 * and `first` then describe the answers, and the next replay of `x` starts from there.
 * Collective. */
int ts_peers_replay(const ts_peers *peers, size_t record, bool back, ts_pack pack, void *context,
                    ts_exchange *x);

#endif
