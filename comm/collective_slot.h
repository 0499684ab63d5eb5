/* SPDX-License-Identifier: MIT
 *
 * How a word crosses from core to core: the slots of both modes, and hints to the caches.
 * Everything shared is atomic: stores release, loads acquire, which costs nothing on x86.
 *
 *   ll        a word and its epoch leave in one 16-byte store (single where the processor has AVX,
 *             as Intel and AMD state); elsewhere the epoch follows in a store of its own.
 *   sentinel  words need not arrive together, so a store may carry as many as the processor can: a
 *             cache line of eight with AVX-512.
 *
 * What an all-reduce costs beyond the flight of a line is mostly the wait of a store for a line
 * that the reader of the round before last still holds.  Two hints remove it: the writer asks for
 * the lines of the next round at the end of this one (prefetchw), and pushes what it has written
 * towards the cache that all cores share (cldemote).  Both are no-ops where they are not known. */
#ifndef TS_COLLECTIVE_SLOT_H
#define TS_COLLECTIVE_SLOT_H

#include "comm/collective_buffer.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <immintrin.h>
#define TSI_WIDE 1
#else
#define TSI_WIDE 0
#endif

typedef struct tsi_slot {
  _Alignas(16) _Atomic uint64_t word;
  _Atomic uint64_t epoch;
} tsi_slot;

typedef _Atomic uint64_t tsi_plain; /* a slot of mode sentinel */

enum { TSI_CACHE_LINE = 64 };

/** The widest stores that may be used here. */
static inline tsi_cwidth tsi_cwidth_find(void)
{
#if TSI_WIDE
  if (__builtin_cpu_supports("avx512f")) return TSI_CWIDTH_LINE;
  if (__builtin_cpu_supports("avx")) return TSI_CWIDTH_PAIR;
#endif
  return TSI_CWIDTH_WORD;
}

/** Ask for the lines of [bytes] to write to them soon. */
static inline void tsi_hint_own(const void *memory, size_t bytes)
{
  const char *at = memory;
  for (size_t i = 0; i < bytes; i += TSI_CACHE_LINE)
#if TSI_WIDE
    __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
    __builtin_prefetch(at + i, 1);
#endif
}

/** [bytes] are written and will be read by another core. */
static inline void tsi_hint_give(const void *memory, size_t bytes)
{
#if TSI_WIDE
  const char *at = memory;
  for (size_t i = 0; i < bytes; i += TSI_CACHE_LINE)
    __asm__ volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(at + i) : "memory"); /* cldemote (%rax) */
#else
  (void)memory;
  (void)bytes;
#endif
}

static inline void tsi_slot_put(tsi_slot *s, uint64_t word, uint64_t epoch, tsi_cwidth width)
{
#if TSI_WIDE
  if (width != TSI_CWIDTH_WORD) {
    atomic_signal_fence(memory_order_release);
    *(volatile __m128i *)s = _mm_set_epi64x((long long)epoch, (long long)word);
    return;
  }
#endif
  (void)width;
  atomic_store_explicit(&s->word, word, memory_order_relaxed);
  atomic_store_explicit(&s->epoch, epoch, memory_order_release);
}

static inline bool tsi_slot_get(const tsi_slot *s, uint64_t epoch, ts_word *word, tsi_cwidth width)
{
#if TSI_WIDE
  if (width != TSI_CWIDTH_WORD) {
    const __m128i pair = *(const volatile __m128i *)s;
    atomic_signal_fence(memory_order_acquire);
    if ((uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(pair, pair)) != epoch) return false;
    *word = (uint64_t)_mm_cvtsi128_si64(pair);
    return true;
  }
#endif
  (void)width;
  if (atomic_load_explicit(&s->epoch, memory_order_acquire) != epoch) return false;
  *word = atomic_load_explicit(&s->word, memory_order_relaxed);
  return true;
}

#if TSI_WIDE
/* Those of the next eight words that there are. */
static inline __mmask8 tsi_mask(size_t left)
{
  return (__mmask8)(left >= 8 ? 0xFF : (1u << left) - 1);
}

__attribute__((target("avx512f"))) static size_t tsi_lines_put(tsi_plain *s, const ts_word *x,
                                                               size_t n)
{
  const __m512i empty = _mm512_set1_epi64((long long)TS_SENTINEL);
  for (size_t i = 0; i < n; i += 8) {
    const __mmask8 mask = tsi_mask(n - i);
    const __m512i line = _mm512_maskz_loadu_epi64(mask, &x[i]);
    if (_mm512_mask_cmpeq_epi64_mask(mask, line, empty)) return i;
    atomic_signal_fence(memory_order_release);
    _mm512_mask_storeu_epi64((void *)&s[i], mask, line);
  }
  return n;
}

__attribute__((target("avx512f"))) static size_t tsi_lines_get(const tsi_plain *s, ts_word *x,
                                                               size_t n)
{
  const __m512i empty = _mm512_set1_epi64((long long)TS_SENTINEL);
  for (size_t i = 0; i < n; i += 8) {
    const __mmask8 mask = tsi_mask(n - i);
    atomic_signal_fence(memory_order_acquire); /* look again, every time */
    const __m512i line = _mm512_maskz_loadu_epi64(mask, (const void *)&s[i]);
    if (_mm512_mask_cmpeq_epi64_mask(mask, line, empty)) return i;
    _mm512_mask_storeu_epi64(&x[i], mask, line);
  }
  atomic_signal_fence(memory_order_acquire);
  return n;
}

__attribute__((target("avx512f"))) static void tsi_lines_reset(tsi_plain *s, size_t n)
{
  const __m512i empty = _mm512_set1_epi64((long long)TS_SENTINEL);
  atomic_signal_fence(memory_order_release);
  for (size_t i = 0; i < n; i += 8)
    _mm512_mask_storeu_epi64((void *)&s[i], tsi_mask(n - i), empty);
}
#endif

/** Words of mode sentinel into slots, up to the first that must not be sent; returns how many. */
static inline size_t tsi_plain_put(tsi_plain *s, const ts_word *x, size_t n, tsi_cwidth width)
{
  size_t i = 0;
#if TSI_WIDE
  if (width == TSI_CWIDTH_LINE) return tsi_lines_put(s, x, n);
  const __m128i empty = _mm_set1_epi64x((long long)TS_SENTINEL);
  atomic_signal_fence(memory_order_release);
  for (; width == TSI_CWIDTH_PAIR && i + 2 <= n; i += 2) {
    const __m128i pair = _mm_loadu_si128((const __m128i *)(const void *)&x[i]);
    const int same = _mm_movemask_epi8(_mm_cmpeq_epi32(pair, empty));
    if ((same & 0xFF) == 0xFF || same >> 8 == 0xFF) return i;
    *(volatile __m128i *)(void *)&s[i] = pair;
  }
#endif
  (void)width;
  for (; i < n && x[i] != TS_SENTINEL; i++)
    atomic_store_explicit(&s[i], x[i], memory_order_release);
  return i;
}

/** Take words that have arrived, from the first on; returns how many. */
static inline size_t tsi_plain_get(const tsi_plain *s, ts_word *x, size_t n, tsi_cwidth width)
{
  size_t i = 0;
#if TSI_WIDE
  if (width == TSI_CWIDTH_LINE) return tsi_lines_get(s, x, n);
  const __m128i empty = _mm_set1_epi64x((long long)TS_SENTINEL);
  for (; width == TSI_CWIDTH_PAIR && i + 2 <= n; i += 2) {
    const __m128i pair = *(const volatile __m128i *)(const void *)&s[i];
    const int same = _mm_movemask_epi8(_mm_cmpeq_epi32(pair, empty));
    if ((same & 0xFF) == 0xFF || same >> 8 == 0xFF) return i;
    _mm_storeu_si128((__m128i *)(void *)&x[i], pair);
  }
  atomic_signal_fence(memory_order_acquire);
#endif
  (void)width;
  for (; i < n; i++) {
    x[i] = atomic_load_explicit(&s[i], memory_order_acquire);
    if (x[i] == TS_SENTINEL) return i;
  }
  return n;
}

/** Empty the first n slots again. */
static inline void tsi_plain_reset(tsi_plain *s, size_t n, tsi_cwidth width)
{
  size_t i = 0;
#if TSI_WIDE
  if (width == TSI_CWIDTH_LINE) {
    tsi_lines_reset(s, n);
    return;
  }
  const __m128i empty = _mm_set1_epi64x((long long)TS_SENTINEL);
  atomic_signal_fence(memory_order_release);
  for (; width == TSI_CWIDTH_PAIR && i + 2 <= n; i += 2)
    *(volatile __m128i *)(void *)&s[i] = empty;
#endif
  (void)width;
  for (; i < n; i++)
    atomic_store_explicit(&s[i], TS_SENTINEL, memory_order_relaxed);
}

#endif
