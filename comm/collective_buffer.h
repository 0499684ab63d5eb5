/* SPDX-License-Identifier: MIT
 *
 * Messages between the ranks of a node through memory that all of them map, without a barrier and
 * without a system call.  Every rank has an inbox with a row of slots per sender, twice (two
 * sub-buffers used in turn).  A round is one use of a sub-buffer; its number, the epoch, starts at
 * 1 and is the same on all ranks, because all make the same calls.
 *
 * How a reader knows that a word has arrived:
 *   ll        each word travels with the epoch in one 16-byte store; twice the volume, one flight.
 *   sentinel  a slot holds a bit pattern that no word may have until a word arrives; its reader
 *             puts the pattern back.  Half the volume; words with that pattern are refused.
 *
 * Flow control: a row may be overwritten in round e once its reader has completed round e-2.
 * Whoever has received from a peer in round e-1 knows that; whoever has not (broadcast, empty
 * parts) looks at the peer's count of completed rounds.  tests/spin/ has the model of it.
 *
 * The object knows no MPI: ranks may be processes or the threads of a test. */
#ifndef TS_COLLECTIVE_BUFFER_H
#define TS_COLLECTIVE_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "comm/collective_op.h"

typedef enum ts_cmode { TS_CMODE_LL, TS_CMODE_SENTINEL } ts_cmode;

/** No word of a message in mode sentinel (or ll128) may have this pattern: as double a signalling
 * NaN, which no arithmetic returns. */
#define TS_SENTINEL UINT64_C(0xFFF5A3C9FF9A5C3D)

/** How many words a store may carry at a time. */
typedef enum tsi_cwidth {
  TSI_CWIDTH_WORD = 1,
  TSI_CWIDTH_PAIR = 2,
  TSI_CWIDTH_LINE = 8
} tsi_cwidth;

enum {
  TSI_LINE = 128,
  TSI_BLOCK = 256, /* words combined at a time */
  TSI_SHORT = 8,   /* words of a message that is short */
  TSI_LOOKS = 32   /* looks at a slot, in a loop as tight as can be, before anything else */
};

/** Why a node's collectives ended, kept in the shared memory. */
typedef enum tsi_cfailure {
  TSI_CFAILURE_NONE,
  TSI_CFAILURE_GONE,
  TSI_CFAILURE_SENTINEL
} tsi_cfailure;

/** How to wait for a peer. */
typedef struct tsi_cwait {
  bool yield; /**< ranks outnumber cores: give the core away at once */
  bool (*alive)(const void *arg, int rank); /**< NULL: all live for ever */
  const void *arg;
  const int *names; /**< [size] ranks to name in messages; NULL: as they are */
} tsi_cwait;

/** What one rank did, counted. */
typedef struct ts_ccount {
  uint64_t bytes;  /**< written to memory that peers read */
  uint64_t rounds; /**< synchronisations */
} ts_ccount;

/** What a rank knows of a peer. */
typedef struct tsi_cpeer {
  uint64_t known;               /**< rounds that it is known to have completed */
  size_t sent;                  /**< bytes of this round's message to it */
  void *outward[2], *inward[2]; /**< its row that we write, ours that it writes, by sub-buffer */
} tsi_cpeer;

/** A rank's view; all fields are the object's own except `count`, which may be reset. */
typedef struct ts_cbuffer {
  ts_cmode mode;
  tsi_cwidth width;
  int rank, size;
  size_t words; /* of a row */
  size_t row;   /* bytes of a row */
  uint64_t epoch;
  tsi_cpeer *peers; /* [size] */
  unsigned char *memory;
  tsi_cwait wait;
  double looked; /* when the peers' lives were last looked at [s] */
  int missed;    /* looks that found the awaited peer dead */
  ts_ccount count;
} ts_cbuffer;

/** Bytes of shared memory for `size` ranks and messages of up to `words` words. */
size_t ts_cbuffer_bytes(ts_cmode mode, int size, size_t words);

/** Make fresh memory ready: sentinels in all slots.  By one rank, before any other uses it. */
void ts_cbuffer_fill(ts_cmode mode, int size, size_t words, void *memory);

/** A rank's view of filled memory, aligned to TSI_LINE, borrowed until ts_cbuffer_release().
 * \return 0 or TS_ERR_MEMORY. */
int ts_cbuffer_init(ts_cbuffer *b, ts_cmode mode, int rank, int size, size_t words, void *memory,
                    const tsi_cwait *wait);
void ts_cbuffer_release(ts_cbuffer *b);

/* The primitives.  All of a round's messages to one peer are one message of n <= words words;
 * n = 0 does nothing.  They return 0; TS_ERR_MPI when the awaited peer is gone; TS_ERR_ARG when a
 * word is the sentinel.  After a failure on any rank all ranks' calls fail: the object is broken.
 */

/** Send n words to `peer`'s inbox; waits only for its rounds before the last. */
int ts_cbuffer_send(ts_cbuffer *b, int peer, const ts_word *x, size_t n);

/** Send the same n words to all peers. */
int ts_cbuffer_broadcast(ts_cbuffer *b, const ts_word *x, size_t n);

/** Receive n words of `peer`. */
int ts_cbuffer_receive(ts_cbuffer *b, int peer, ts_word *x, size_t n);

/** Receive from all peers: x [size,stride], `count[p]` words from peer p; own row untouched. */
int ts_cbuffer_receive_all(ts_cbuffer *b, ts_word *x, size_t stride, const size_t *count);

/** Receive n words from every peer and combine them with own ones in the order of the ranks.
 * own and out [n] may be the same. */
int ts_cbuffer_receive_reduce(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                              size_t n);

/** A whole round in one call, for speed: broadcast, receive and reduce, advance. */
int ts_cbuffer_round(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                     size_t n);

/** Put sentinels back into the first n slots of `peer`'s row (receiving does). */
void ts_cbuffer_reset(ts_cbuffer *b, int peer, size_t n);

/** End the round: all of its messages to this rank have been received. */
void ts_cbuffer_advance(ts_cbuffer *b);

/** The shared header of all protocols: rounds completed per rank, and the first failure. */
typedef struct tsi_cheader {
  _Alignas(TSI_LINE) _Atomic uint64_t failure; /* tsi_cfailure * 2^32 + rank */
  struct {
    _Alignas(TSI_LINE) _Atomic uint64_t done;
  } rank[];
} tsi_cheader;

/** End all ranks' calls and say why.  Returns the error code. */
int tsi_cwait_fail(tsi_cheader *header, const tsi_cwait *wait, tsi_cfailure why, int rank);

/** TSI_LOOKS more looks were in vain (spins counts the calls): yield, look for failures and deaths
 * at times. */
int tsi_cwait_idle(tsi_cheader *header, const tsi_cwait *wait, int peer, unsigned *spins,
                   double *looked, int *missed);

#endif
