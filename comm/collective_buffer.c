/* SPDX-License-Identifier: MIT
 *
 * The protocol of the messages.  Everything shared is atomic: stores release, loads acquire, which
 * costs nothing on x86.  There a word and its epoch leave in one 16-byte store (single where the
 * processor has AVX, as Intel and AMD state); elsewhere, and under ThreadSanitizer, the epoch
 * follows the word in a store of its own. */
#include "comm/collective_buffer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/error.h"
#include "runtime/memory.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <immintrin.h>
#define WIDE 1
#else
#define WIDE 0
#endif

typedef struct slot {
  _Alignas(16) _Atomic uint64_t word;
  _Atomic uint64_t epoch;
} slot;

typedef _Atomic uint64_t plain; /* a slot of mode sentinel */

static size_t round_up(size_t bytes)
{
  return (bytes + TSI_LINE - 1) / TSI_LINE * TSI_LINE;
}

static size_t slot_bytes(ts_cmode mode)
{
  return mode == TS_CMODE_LL ? sizeof(slot) : sizeof(plain);
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
  plain *x = (void *)((unsigned char *)memory + head);
  for (size_t i = 0; i < (bytes - head) / sizeof *x; i++)
    atomic_store_explicit(&x[i], TS_SENTINEL, memory_order_relaxed);
}

static bool stores_wide(void)
{
#if WIDE
  return __builtin_cpu_supports("avx");
#else
  return false;
#endif
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
                    .wide = stores_wide(),
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

static inline void put_slot(slot *s, uint64_t word, uint64_t epoch, bool wide)
{
#if WIDE
  if (wide) {
    atomic_signal_fence(memory_order_release);
    *(volatile __m128i *)s = _mm_set_epi64x((long long)epoch, (long long)word);
    return;
  }
#endif
  (void)wide;
  atomic_store_explicit(&s->word, word, memory_order_relaxed);
  atomic_store_explicit(&s->epoch, epoch, memory_order_release);
}

static inline bool get_slot(const slot *s, uint64_t epoch, ts_word *word, bool wide)
{
#if WIDE
  if (wide) {
    const __m128i pair = *(const volatile __m128i *)s;
    atomic_signal_fence(memory_order_acquire);
    *word = (uint64_t)_mm_cvtsi128_si64(pair);
    return (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(pair, pair)) == epoch;
  }
#endif
  (void)wide;
  if (atomic_load_explicit(&s->epoch, memory_order_acquire) != epoch) return false;
  *word = atomic_load_explicit(&s->word, memory_order_relaxed);
  return true;
}

/* Words of mode sentinel, from x to slots; two a store where that is possible.  No word needs its
 * neighbour, so a store may be torn between words. */
static inline void put_plain(plain *s, const ts_word *x, size_t n, bool wide)
{
  size_t i = 0;
#if WIDE
  atomic_signal_fence(memory_order_release);
  for (; wide && i + 2 <= n; i += 2)
    *(volatile __m128i *)(void *)&s[i] = _mm_loadu_si128((const __m128i *)(const void *)&x[i]);
#endif
  (void)wide;
  for (; i < n; i++)
    atomic_store_explicit(&s[i], x[i], memory_order_release);
}

/* Take words that have arrived, from the first on; returns how many. */
static inline size_t get_plain(const plain *s, ts_word *x, size_t n, bool wide)
{
  size_t i = 0;
#if WIDE
  const __m128i empty = _mm_set1_epi64x((long long)TS_SENTINEL);
  for (; wide && i + 2 <= n; i += 2) {
    const __m128i pair = *(const volatile __m128i *)(const void *)&s[i];
    const int same = _mm_movemask_epi8(_mm_cmpeq_epi32(pair, empty));
    if ((same & 0xFF) == 0xFF || same >> 8 == 0xFF) return i;
    _mm_storeu_si128((__m128i *)(void *)&x[i], pair);
  }
  atomic_signal_fence(memory_order_acquire);
#endif
  (void)wide;
  for (; i < n; i++) {
    x[i] = atomic_load_explicit(&s[i], memory_order_acquire);
    if (x[i] == TS_SENTINEL) return i;
  }
  return n;
}

static inline void reset_plain(plain *s, size_t n, bool wide)
{
  size_t i = 0;
#if WIDE
  const __m128i empty = _mm_set1_epi64x((long long)TS_SENTINEL);
  atomic_signal_fence(memory_order_release);
  for (; wide && i + 2 <= n; i += 2)
    *(volatile __m128i *)(void *)&s[i] = empty;
#endif
  (void)wide;
  for (; i < n; i++)
    atomic_store_explicit(&s[i], TS_SENTINEL, memory_order_relaxed);
}

static bool has_sentinel(const ts_word *x, size_t n)
{
  uint64_t found = 0;
  for (size_t i = 0; i < n; i++)
    found |= x[i] == TS_SENTINEL;
  return found;
}

static inline void put(ts_cbuffer *b, int peer, const ts_word *x, size_t n)
{
  void *row = b->peers[peer].outward[b->epoch & 1];
  if (b->mode == TS_CMODE_LL) {
    slot *s = row;
    for (size_t i = 0; i < n; i++)
      put_slot(&s[i], x[i], b->epoch, b->wide);
  } else {
    put_plain(row, x, n, b->wide);
  }
  b->count.bytes += n * slot_bytes(b->mode);
}

static inline int check(ts_cbuffer *b, const ts_word *x, size_t n)
{
  if (b->mode == TS_CMODE_SENTINEL && has_sentinel(x, n))
    return tsi_cwait_fail(header(b), &b->wait, TSI_CFAILURE_SENTINEL, b->rank);
  return 0;
}

int ts_cbuffer_send(ts_cbuffer *b, int peer, const ts_word *x, size_t n)
{
  if (!n) return 0;
  TS_TRY(check(b, x, n));
  TS_TRY(await_room(b, peer));
  put(b, peer, x, n);
  return 0;
}

static inline int send_all(ts_cbuffer *b, const ts_word *x, size_t n)
{
  if (!n) return 0;
  TS_TRY(check(b, x, n));
  /* the next rank first, so that not all write to rank 0 at a time */
  for (int k = 1; k < b->size; k++) {
    const int peer = b->rank + k < b->size ? b->rank + k : b->rank + k - b->size;
    TS_TRY(await_room(b, peer));
    put(b, peer, x, n);
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
    const slot *s = (const slot *)row + first;
    for (size_t i = 0; i < n; i++)
      while (!get_slot(&s[i], b->epoch, &x[i], b->wide))
        if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
  } else {
    plain *s = (plain *)row + first;
    for (size_t i = 0; (i += get_plain(s + i, x + i, n - i, b->wide)) < n;)
      if (++looks % TSI_LOOKS == 0) TS_TRY(idle(b, peer, &spins));
    reset_plain(s, n, b->wide);
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
  if (b->mode == TS_CMODE_SENTINEL) reset_plain(b->peers[peer].inward[b->epoch & 1], n, b->wide);
}

void ts_cbuffer_advance(ts_cbuffer *b)
{
  atomic_store_explicit(&header(b)->rank[b->rank].done, b->epoch, memory_order_release);
  b->epoch++;
  b->count.rounds++;
}

int ts_cbuffer_round(ts_cbuffer *b, tsi_combine *combine, const ts_word *own, ts_word *out,
                     size_t n)
{
  TS_TRY(send_all(b, own, n));
  TS_TRY(reduce_all(b, combine, own, out, n));
  ts_cbuffer_advance(b);
  return 0;
}
