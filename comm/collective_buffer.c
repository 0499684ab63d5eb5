/* SPDX-License-Identifier: MIT
 *
 * The protocol of the messages: who may write a row when, how to wait, when to give up.  How the
 * words themselves cross is in collective_slot.h. */
#include "comm/collective_buffer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/collective_slot.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* Bytes of a row that are asked for early.  Of messages between CROWD and PATIENT words none are:
 * there the requests of both ranks get into each other's way (measured: 490 against 470 ns at 1 kB,
 * 740 against 640 at 1.5 kB). */
enum { OWNED = 4096, CROWD = 96 };

/* A reader that runs into a line that is just being written takes it away from the writer.  Few
 * lines are written too fast for that, and of many it is better to read some early: between RUSH
 * and PATIENT words wait for the last one first (measured: 700 against 490 ns at 1 kB). */
enum { RUSH = 48, PATIENT = 192 };

static size_t round_up(size_t bytes)
{
  return (bytes + TSI_LINE - 1) / TSI_LINE * TSI_LINE;
}

static size_t slot_bytes(ts_cmode mode)
{
  return mode == TS_CMODE_LL ? sizeof(tsi_slot) : sizeof(tsi_plain);
}

static size_t header_bytes(int size)
{
  return sizeof(tsi_cheader) + (size_t)size * TSI_LINE;
}

size_t ts_cbuffer_bytes(ts_cmode mode, int size, size_t words)
{
  const size_t row = round_up(words * slot_bytes(mode));
  return header_bytes(size) + 2 * (size_t)size * (size_t)size * row;
}

void ts_cbuffer_fill(ts_cmode mode, int size, size_t words, void *memory)
{
  const size_t head = header_bytes(size), bytes = ts_cbuffer_bytes(mode, size, words);
  memset(memory, 0, mode == TS_CMODE_LL ? bytes : head);
  if (mode == TS_CMODE_LL) return;
  tsi_plain *x = (void *)((unsigned char *)memory + head);
  for (size_t i = 0; i < (bytes - head) / sizeof *x; i++)
    atomic_store_explicit(&x[i], TS_SENTINEL, memory_order_relaxed);
}

static tsi_cheader *header(const ts_cbuffer *b)
{
  return (tsi_cheader *)(void *)b->memory;
}

/* The row of `to`'s inbox that `from` writes in round `epoch`. */
static void *row_of(const ts_cbuffer *b, int to, int from, uint64_t epoch)
{
  const size_t half = epoch & 1, size = (size_t)b->size;
  const size_t row = ((size_t)to * 2 + half) * size + (size_t)from;
  return b->memory + header_bytes(b->size) + row * b->row;
}

int ts_cbuffer_init(ts_cbuffer *b, ts_cmode mode, int rank, int size, size_t words, void *memory,
                    const tsi_cwait *wait)
{
  *b = (ts_cbuffer){.mode = mode,
                    .width = tsi_cwidth_find(),
                    .rank = rank,
                    .size = size,
                    .words = words,
                    .row = round_up(words * slot_bytes(mode)),
                    .epoch = 1,
                    .memory = memory,
                    .wait = *wait};
  TS_TRY(TSI_NEW(b->peers, size));
  for (int p = 0; p < size; p++)
    for (uint64_t half = 0; half < 2; half++) {
      b->peers[p].outward[half] = row_of(b, p, rank, half);
      b->peers[p].inward[half] = row_of(b, rank, p, half);
    }
  return 0;
}

void ts_cbuffer_release(ts_cbuffer *b)
{
  free(b->peers);
  b->peers = NULL;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int tell(const tsi_cwait *wait, tsi_cfailure why, int rank)
{
  const int name = wait->names ? wait->names[rank] : rank;
  if (why == TSI_CFAILURE_SENTINEL)
    return tsi_fail(TS_ERR_ARG,
                    "rank %d passed a value with the bits 0x%llx to a collective, which mark an "
                    "empty slot there: use other values, or the mode ll",
                    name, (unsigned long long)TS_SENTINEL);
  return tsi_fail(TS_ERR_MPI, "rank %d ended while others waited for it in a collective", name);
}

int tsi_cwait_fail(tsi_cheader *head, const tsi_cwait *wait, tsi_cfailure why, int rank)
{
  uint64_t none = 0;
  atomic_compare_exchange_strong(&head->failure, &none, ((uint64_t)why << 32) + (uint64_t)rank);
  return tell(wait, why, rank);
}

int tsi_cwait_idle(tsi_cheader *head, const tsi_cwait *wait, int peer, unsigned *spins,
                   double *looked, int *missed)
{
  enum { RARE = 32, LONG = 64 * RARE }; /* calls, each after TSI_LOOKS looks of about 1 ns */
  const unsigned n = ++*spins;
  if (!wait->yield && n % RARE) return 0;
  const uint64_t failure = atomic_load_explicit(&head->failure, memory_order_acquire);
  if (failure) return tell(wait, (tsi_cfailure)(failure >> 32), (int)(uint32_t)failure);
  if (wait->yield || n >= LONG) sched_yield();
  if (!wait->alive || n % RARE) return 0;
  const double time = now();
  if (time - *looked < (*missed ? 0 : 0.25)) return 0;
  *looked = time;
  if (wait->alive(wait->arg, peer)) {
    *missed = 0;
    return 0;
  }
  /* it may have sent before it ended: once more through the slots */
  return ++*missed < 2 ? 0 : tsi_cwait_fail(head, wait, TSI_CFAILURE_GONE, peer);
}

static inline int idle(ts_cbuffer *b, int peer, unsigned *spins)
{
  return tsi_cwait_idle(header(b), &b->wait, peer, spins, &b->looked, &b->missed);
}

/* Wait until `peer` has read what this round's message overwrites. */
static inline int await_room(ts_cbuffer *b, int peer)
{
  unsigned spins = 0;
  while (b->peers[peer].known + 2 < b->epoch) {
    b->peers[peer].known = atomic_load_explicit(&header(b)->rank[peer].done, memory_order_acquire);
    if (b->peers[peer].known + 2 < b->epoch) TS_TRY(idle(b, peer, &spins));
  }
  return 0;
}

static inline int put(ts_cbuffer *b, int peer, const ts_word *x, size_t n)
{
  void *row = b->peers[peer].outward[b->epoch & 1];
  const size_t bytes = n * slot_bytes(b->mode);
  if (b->mode == TS_CMODE_LL) {
    tsi_slot *s = row;
    for (size_t i = 0; i < n; i++)
      tsi_slot_put(&s[i], x[i], b->epoch, b->width);
  } else if (tsi_plain_put(row, x, n, b->width) < n) {
    return tsi_cwait_fail(header(b), &b->wait, TSI_CFAILURE_SENTINEL, b->rank);
  }
  tsi_hint_give(row, bytes);
  b->peers[peer].sent = bytes;
  b->count.bytes += bytes;
  return 0;
}

int ts_cbuffer_send(ts_cbuffer *b, int peer, const ts_word *x, size_t n)
{
  if (!n) return 0;
  TS_TRY(await_room(b, peer));
  return put(b, peer, x, n);
}

static inline int send_all(ts_cbuffer *b, const ts_word *x, size_t n)
{
  if (!n) return 0;
  /* the next rank first, so that not all write to rank 0 at a time */
  for (int k = 1; k < b->size; k++) {
    const int peer = b->rank + k < b->size ? b->rank + k : b->rank + k - b->size;
    TS_TRY(await_room(b, peer));
    TS_TRY(put(b, peer, x, n));
  }
  return 0;
}

int ts_cbuffer_broadcast(ts_cbuffer *b, const ts_word *x, size_t n)
{
  return send_all(b, x, n);
}

/* Take words first..first+n of the peer's message. */
static inline int take(ts_cbuffer *b, int peer, size_t first, ts_word *x, size_t n)
{
  void *row = b->peers[peer].inward[b->epoch & 1];
  unsigned looks = 0, spins = 0;
  if (b->mode == TS_CMODE_LL) {
    const tsi_slot *s = (const tsi_slot *)row + first;
    for (size_t i = 0; i < n; i++)
      while (!tsi_slot_get(&s[i], b->epoch, &x[i], b->width))
        if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
  } else {
    tsi_plain *s = (tsi_plain *)row + first;
    ts_word last;
    while (n > RUSH && n <= PATIENT && !tsi_plain_get(s + n - 1, &last, 1, b->width))
      if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
    for (size_t i = 0; (i += tsi_plain_get(s + i, x + i, n - i, b->width)) < n;)
      if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
    tsi_plain_reset(s, n, b->width);
  }
  if (b->peers[peer].known + 1 < b->epoch) b->peers[peer].known = b->epoch - 1;
  return 0;
}

int ts_cbuffer_receive(ts_cbuffer *b, int peer, ts_word *x, size_t n)
{
  return n ? take(b, peer, 0, x, n) : 0;
}

int ts_cbuffer_receive_all(ts_cbuffer *b, ts_word *x, size_t stride, const size_t *count)
{
  for (int k = 1; k < b->size; k++) {
    const int peer = b->rank >= k ? b->rank - k : b->rank - k + b->size;
    TS_TRY(ts_cbuffer_receive(b, peer, x + (size_t)peer * stride, count[peer]));
  }
  return 0;
}

static inline int reduce_all(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                             size_t n)
{
  ts_word sum[TSI_BLOCK], next[TSI_BLOCK];
  if (b->size == 1 && out != own) memcpy(out, own, n * sizeof *out);
  for (size_t first = 0; b->size > 1 && first < n; first += TSI_BLOCK) {
    const size_t m = n - first < TSI_BLOCK ? n - first : TSI_BLOCK;
    const ts_word *so_far = own + first;
    if (b->rank) {
      TS_TRY(take(b, 0, first, sum, m));
      so_far = sum;
    }
    for (int peer = 1; peer < b->size; peer++) {
      const ts_word *x = peer == b->rank ? own + first : next;
      ts_word *to = peer == b->size - 1 ? out + first : sum;
      if (x == next) TS_TRY(take(b, peer, first, next, m));
      combine(to, so_far, x, m);
      so_far = to;
    }
  }
  return 0;
}

int ts_cbuffer_receive_reduce(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                              size_t n)
{
  return reduce_all(b, combine, own, out, n);
}

void ts_cbuffer_reset(ts_cbuffer *b, int peer, size_t n)
{
  if (b->mode == TS_CMODE_SENTINEL)
    tsi_plain_reset(b->peers[peer].inward[b->epoch & 1], n, b->width);
}

/* The next round's messages will be about as long. */
static inline void own_next(ts_cbuffer *b)
{
  for (int p = 0; p < b->size; p++) {
    const size_t sent = b->peers[p].sent, words = sent / sizeof(ts_word);
    b->peers[p].sent = 0;
    if (!sent || (words > CROWD && words <= PATIENT)) continue;
    tsi_hint_own(b->peers[p].outward[(b->epoch + 1) & 1], sent < OWNED ? sent : OWNED);
  }
}

void ts_cbuffer_advance(ts_cbuffer *b)
{
  own_next(b);
  atomic_store_explicit(&header(b)->rank[b->rank].done, b->epoch, memory_order_release);
  b->epoch++;
  b->count.rounds++;
}

/* What a line or a few need between two ranks, where ten instructions are a per cent of the time:
 * the same as in general, without loops over peers and pieces.  The mode is a literal. */
__attribute__((always_inline)) static inline int short_round(ts_cbuffer *b, ts_cmode mode,
                                                             tsi_combine *combine,
                                                             const ts_word *own, ts_word *out,
                                                             size_t n)
{
  const int peer = 1 - b->rank;
  const uint64_t epoch = b->epoch;
  const size_t bytes = n * slot_bytes(mode);
  tsi_cpeer *const p = &b->peers[peer];
  void *const to = p->outward[epoch & 1], *const from = p->inward[epoch & 1];
  tsi_slot *const slot = to, *const arrived = from;
  tsi_plain *const word = from;
  ts_word theirs[RUSH];
  unsigned looks = 0, spins = 0;
  if (p->known + 2 < epoch) TS_TRY(await_room(b, peer));
  if (mode == TS_CMODE_SENTINEL && tsi_plain_put(to, own, n, b->width) < n)
    return tsi_cwait_fail(header(b), &b->wait, TSI_CFAILURE_SENTINEL, b->rank);
  for (size_t i = 0; mode == TS_CMODE_LL && i < n; i++)
    tsi_slot_put(&slot[i], own[i], epoch, TSI_CWIDTH_PAIR);
  tsi_hint_give(to, bytes);
  for (size_t i = 0; mode == TS_CMODE_LL && i < n; i++)
    while (!tsi_slot_get(&arrived[i], epoch, &theirs[i], TSI_CWIDTH_PAIR))
      if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
  if (mode == TS_CMODE_SENTINEL) {
    for (size_t i = 0; (i += tsi_plain_get(word + i, theirs + i, n - i, b->width)) < n;)
      if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
    tsi_plain_reset(word, n, b->width);
  }
  tsi_hint_own(p->outward[(epoch + 1) & 1], bytes);
  if (b->rank == 0)
    combine(out, own, theirs, n);
  else
    combine(out, theirs, own, n);
  p->known = epoch - 1;
  atomic_store_explicit(&header(b)->rank[b->rank].done, epoch, memory_order_release);
  b->epoch = epoch + 1;
  b->count.bytes += bytes;
  b->count.rounds++;
  return 0;
}

int ts_cbuffer_round(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                     size_t n)
{
  if (b->size == 2 && n > 0 && b->mode == TS_CMODE_SENTINEL && n <= RUSH)
    return short_round(b, TS_CMODE_SENTINEL, combine, own, out, n);
  if (b->size == 2 && n > 0 && b->mode == TS_CMODE_LL && n <= TSI_SHORT &&
      b->width != TSI_CWIDTH_WORD)
    return short_round(b, TS_CMODE_LL, combine, own, out, n);
  TS_TRY(send_all(b, own, n));
  TS_TRY(reduce_all(b, combine, own, out, n));
  ts_cbuffer_advance(b);
  return 0;
}
