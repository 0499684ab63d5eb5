/* SPDX-License-Identifier: MIT
 *
 * The kernels of comm/collective_gpu.cu, in C++ for two readers: CUDA, and a test that runs them
 * with threads of the host (tests/collective_kernels.cc), as protocols are what goes wrong in
 * silence. Before including it define in namespace machine, as TS_DEVICE functions: window what
 * peers' memory is reached by; address(window, offset, rank) first(), step()            this thread
 * among the kernel's, how many these are put_pair, take_pair        16 bytes {low, epoch, high,
 * epoch}; 8 bytes of them arrive together put, take                  8 bytes; swap: compare and
 * swap, returns what was there count, counted             add 1 to 4 bytes, after all that this
 * thread has written; read them before all that it reads then
 *
 * Memory of a rank: a mailbox, where each peer says how many calls it has completed; four areas
 * (mode, shot) of two sub-buffers, each a row per sender; lines of 16 words for ll128.  A word of
 * mode ll is 16 bytes, each half of which carries its flag.  A thread sends its words to all peers
 * and then waits for theirs.
 *
 * Flow control: a row of call e may be written when its reader has completed call e-2.  Calls being
 * in order on one stream, a kernel that runs has all calls before it completed, and says so first.
 * Threads wait for threads of any block of a peer, hence all blocks must be resident. */
#ifndef TS_COLLECTIVE_GPU_KERNELS_H
#define TS_COLLECTIVE_GPU_KERNELS_H

#include <cstddef>
#include <cstdint>

#include "comm/collective_op.h"

namespace {

constexpr uint64_t SENTINEL = 0xFFF5A3C9FF9A5C3Dull;  /* TS_SENTINEL of collective_buffer.h */
constexpr uint64_t QUIET_NAN = 0x7FF800007FC00000ull; /* as a double, and as two floats */
constexpr size_t LINE = 16, LINE_WORDS = LINE - 1, TURNS = 3; /* of ll128: words; sub-buffers */

/* What a kernel needs to know. */
struct view {
  machine::window window;
  int rank, size;
  size_t words; /* even: rows of whole 16 bytes */
  uint32_t epoch;
  int *refused; /* host memory: a value had the sentinel's bits */
  int *stop;    /* host memory: wait no more */
};

/* ---- memory ---- */

TS_SHARED inline size_t ceil_of(size_t n, size_t by)
{
  return (n + by - 1) / by;
}

TS_SHARED inline size_t mailbox_bytes(int size)
{
  return ceil_of((size_t)size * 8, 128) * 128;
}

/* Areas 0 and 1 are of mode ll, 2 and 3 of mode sentinel; 4: the lines. */
TS_SHARED inline size_t area_start(int size, size_t words, size_t area)
{
  const size_t row = 2 * (size_t)size * words; /* words of an area */
  return mailbox_bytes(size) + (area < 2 ? area * 16 : 32 + (area - 2) * 8) * row;
}

/* Lines of a rank and sub-buffer. */
TS_SHARED inline size_t own_lines(int size, size_t words)
{
  return ceil_of(ceil_of(words, LINE_WORDS), (size_t)size);
}

TS_SHARED inline size_t window_bytes(int size, size_t words)
{
  return area_start(size, words, 4) + TURNS * own_lines(size, words) * LINE * 8;
}

/* ---- waiting ---- */

TS_DEVICE inline bool given_up(const view &v, unsigned *spins)
{
  return ++*spins % 16384 == 0 && *(volatile int *)v.stop;
}

TS_DEVICE inline char *mailbox(const view &v, int to, int from)
{
  return machine::address(v.window, (size_t)from * 8, to);
}

/* All calls before this one are completed here. */
TS_DEVICE inline void announce(const view &v)
{
  for (size_t p = machine::first(); p < (size_t)v.size; p += machine::step())
    if ((int)p != v.rank) machine::put(mailbox(v, (int)p, v.rank), v.epoch - 1);
}

/* Has `peer` read what this call's message overwrites?  Epochs wrap; fewer than 2^31 are under way.
 */
TS_DEVICE inline void await_room(const view &v, int peer)
{
  unsigned spins = 0;
  while ((int32_t)((uint32_t)machine::take(mailbox(v, v.rank, peer)) + 2 - v.epoch) < 0)
    if (given_up(v, &spins)) return;
}

/* ---- modes ---- */

struct ll {
  static constexpr size_t BYTES = 16, AREA = 0;
  static TS_DEVICE void put(char *row, size_t i, uint64_t word, uint32_t epoch)
  {
    machine::put_pair(row + i * BYTES, word, epoch);
  }
  static TS_DEVICE uint64_t take(const view &v, char *row, size_t i)
  {
    uint64_t word = 0;
    unsigned spins = 0;
    while (!machine::take_pair(row + i * BYTES, v.epoch, &word))
      if (given_up(v, &spins)) return 0;
    return word;
  }
  static TS_DEVICE uint64_t check(const view &, uint64_t word)
  {
    return word;
  }
};

struct sentinel {
  static constexpr size_t BYTES = 8, AREA = 2;
  static TS_DEVICE void put(char *row, size_t i, uint64_t word, uint32_t)
  {
    machine::put(row + i * BYTES, word);
  }
  static TS_DEVICE uint64_t take(const view &v, char *row, size_t i)
  {
    unsigned spins = 0;
    for (;;) {
      const uint64_t word = machine::take(row + i * BYTES);
      if (word != SENTINEL) {
        machine::put(row + i * BYTES, SENTINEL);
        return word;
      }
      if (given_up(v, &spins)) return 0;
    }
  }
  static TS_DEVICE uint64_t check(const view &v, uint64_t word)
  {
    if (word != SENTINEL) return word;
    *(volatile int *)v.refused = 1;
    return QUIET_NAN;
  }
};

/* The row of `to` that `from` writes in this call. */
template <typename mode>
TS_DEVICE char *row_of(const view &v, int shot, int to, int from)
{
  const size_t row = ((v.epoch & 1) * (size_t)v.size + (size_t)from) * v.words * mode::BYTES;
  return machine::address(v.window, area_start(v.size, v.words, mode::AREA + (size_t)shot) + row,
                          to);
}

template <typename mode>
TS_DEVICE void send(const view &v, int shot, int peer, size_t i, uint64_t word)
{
  mode::put(row_of<mode>(v, shot, peer, v.rank), i, word, v.epoch);
}

template <typename mode>
TS_DEVICE uint64_t receive(const view &v, int shot, int peer, size_t i)
{
  return mode::take(v, row_of<mode>(v, shot, v.rank, peer), i);
}

/* ---- values ---- */

template <typename T>
TS_SHARED constexpr size_t words_of(size_t n)
{
  return (n * sizeof(T) + 7) / 8;
}

/* Word i of x [n]; two floats a word. */
template <typename T>
TS_DEVICE uint64_t load(const T *x, size_t n, size_t i)
{
  union {
    uint64_t word;
    T value[8 / sizeof(T)];
  } u;
  u.word = 0;
  for (size_t k = 0; k < 8 / sizeof(T) && i * (8 / sizeof(T)) + k < n; k++)
    u.value[k] = x[i * (8 / sizeof(T)) + k];
  return u.word;
}

template <typename T>
TS_DEVICE void store(T *x, size_t n, size_t i, uint64_t word)
{
  union {
    uint64_t word;
    T value[8 / sizeof(T)];
  } u;
  u.word = word;
  for (size_t k = 0; k < 8 / sizeof(T) && i * (8 / sizeof(T)) + k < n; k++)
    x[i * (8 / sizeof(T)) + k] = u.value[k];
}

template <typename T>
TS_DEVICE T add(T a, T b)
{
  return a + b;
}

TS_DEVICE inline long long add(long long a, long long b) /* wraps */
{
  return (long long)((unsigned long long)a + (unsigned long long)b);
}

template <typename T, ts_cop op>
TS_DEVICE T combine_values(T a, T b)
{
  if (op == TS_COP_SUM) return add(a, b);
  const bool first = op == TS_COP_MAX ? a > b : a < b;
  return first || a != a ? a : b;
}

template <typename T, ts_cop op>
TS_DEVICE uint64_t combine(uint64_t a, uint64_t b)
{
  union {
    uint64_t word;
    T value[8 / sizeof(T)];
  } x, y;
  x.word = a;
  y.word = b;
  for (size_t k = 0; k < 8 / sizeof(T); k++)
    x.value[k] = combine_values<T, op>(x.value[k], y.value[k]);
  return x.word;
}

/* Word i of everybody's message, combined in the order of the ranks. */
template <typename mode, typename T, ts_cop op>
TS_DEVICE uint64_t gather(const view &v, uint64_t own, size_t i)
{
  uint64_t sum = 0;
  for (int p = 0; p < v.size; p++) {
    const uint64_t x = p == v.rank ? own : receive<mode>(v, 0, p, i);
    sum = p ? combine<T, op>(sum, x) : x;
  }
  return sum;
}

/* The k-th peer: the next rank first, so that not all write to rank 0 at a time. */
TS_DEVICE inline int peer_at(const view &v, int k)
{
  return (v.rank + k) % v.size;
}

TS_DEVICE inline void await_all_room(const view &v)
{
  announce(v);
  for (int k = 1; k < v.size; k++)
    await_room(v, peer_at(v, k));
}

/* ---- all-reduce ---- */

template <typename mode, typename T, ts_cop op>
TS_KERNEL void one_shot(view v, const T *in, T *out, size_t n)
{
  await_all_room(v);
  for (size_t i = machine::first(); i < words_of<T>(n); i += machine::step()) {
    const uint64_t own = mode::check(v, load(in, n, i));
    for (int k = 1; k < v.size; k++)
      send<mode>(v, 0, peer_at(v, k), i, own);
    store(out, n, i, gather<mode, T, op>(v, own, i));
  }
}

TS_DEVICE inline size_t part(size_t words, int p, int size)
{
  return words * (size_t)p / (size_t)size;
}

template <typename mode, typename T, ts_cop op>
TS_KERNEL void two_shot(view v, const T *in, T *out, size_t n)
{
  const size_t words = words_of<T>(n), first = machine::first(), step = machine::step();
  await_all_room(v);
  for (int k = 1; k < v.size; k++) {
    const int p = peer_at(v, k);
    const size_t start = part(words, p, v.size), count = part(words, p + 1, v.size) - start;
    for (size_t i = first; i < count; i += step)
      send<mode>(v, 0, p, i, mode::check(v, load(in, n, start + i)));
  }
  const size_t start = part(words, v.rank, v.size);
  for (size_t i = first; i < part(words, v.rank + 1, v.size) - start; i += step) {
    const uint64_t own = mode::check(v, load(in, n, start + i));
    const uint64_t sum = mode::check(v, gather<mode, T, op>(v, own, i));
    store(out, n, start + i, sum);
    for (int k = 1; k < v.size; k++)
      send<mode>(v, 1, peer_at(v, k), i, sum);
  }
  for (int k = 1; k < v.size; k++) {
    const int p = peer_at(v, v.size - k);
    const size_t theirs = part(words, p, v.size), count = part(words, p + 1, v.size) - theirs;
    for (size_t i = first; i < count; i += step)
      store(out, n, theirs + i, receive<mode>(v, 1, p, i));
  }
}

/* Line i of this call, or of the one that used sub-buffer `turn`. */
TS_DEVICE inline char *line_of(const view &v, uint32_t turn, size_t i)
{
  const size_t lines = own_lines(v.size, v.words), owner = i % (size_t)v.size;
  const size_t at = (turn % TURNS) * lines + i / (size_t)v.size;
  return machine::address(v.window, area_start(v.size, v.words, 4) + at * LINE * 8, (int)owner);
}

/* ll128: everybody combines into the line that is a word's home, in the order of coming, and counts
 * itself in the line's first word; who sees all counted reads the rest.  `turn` counts the calls of
 * this algorithm. */
template <typename T, ts_cop op>
TS_KERNEL void line_shot(view v, uint32_t turn, const T *in, T *out, size_t n)
{
  const size_t words = words_of<T>(n), lines = ceil_of(words, LINE_WORDS);
  announce(v);
  for (size_t l = machine::first(); l < lines; l += machine::step()) {
    char *line = line_of(v, turn, l);
    for (size_t k = 0; k < LINE_WORDS && l * LINE_WORDS + k < words; k++) {
      char *word = line + 8 * (k + 1);
      const uint64_t x = sentinel::check(v, load(in, n, l * LINE_WORDS + k));
      uint64_t old = machine::take(word), seen;
      for (;;) {
        const uint64_t next = old == SENTINEL ? x : sentinel::check(v, combine<T, op>(old, x));
        seen = machine::swap(word, old, next);
        if (seen == old) break;
        old = seen;
      }
    }
    machine::count(line);
  }
  for (size_t l = machine::first(); l < lines; l += machine::step()) {
    char *line = line_of(v, turn, l);
    unsigned spins = 0;
    while (machine::counted(line) < (uint32_t)v.size)
      if (given_up(v, &spins)) return;
    for (size_t k = 0; k < LINE_WORDS && l * LINE_WORDS + k < words; k++)
      store(out, n, l * LINE_WORDS + k, machine::take(line + 8 * (k + 1)));
  }
}

/* After line_shot(): empty the own lines of the call before it.  All ranks have completed that one,
 * for they have counted themselves in this one; and nobody uses these lines again before the call
 * after the next, in which this rank counts itself after this. */
TS_KERNEL void line_clear(view v, uint32_t turn)
{
  const size_t lines = own_lines(v.size, v.words) * LINE;
  char *first = line_of(v, turn + TURNS - 1, (size_t)v.rank);
  for (size_t i = machine::first(); i < lines; i += machine::step())
    machine::put(first + 8 * i, i % LINE ? SENTINEL : 0);
}

/* ---- the others ---- */

template <typename mode, typename T>
TS_KERNEL void broadcast(view v, int root, T *x, size_t n)
{
  announce(v);
  for (int k = 1; k < v.size && v.rank == root; k++)
    await_room(v, peer_at(v, k));
  for (size_t i = machine::first(); i < words_of<T>(n); i += machine::step()) {
    if (v.rank != root) {
      store(x, n, i, receive<mode>(v, 0, root, i));
      continue;
    }
    const uint64_t word = mode::check(v, load(x, n, i));
    for (int k = 1; k < v.size; k++)
      send<mode>(v, 0, peer_at(v, k), i, word);
  }
}

/* out is the root's. */
template <typename mode, typename T, ts_cop op>
TS_KERNEL void reduce(view v, int root, const T *in, T *out, size_t n)
{
  announce(v);
  if (v.rank != root) await_room(v, root);
  for (size_t i = machine::first(); i < words_of<T>(n); i += machine::step()) {
    const uint64_t own = mode::check(v, load(in, n, i));
    if (v.rank == root)
      store(out, n, i, gather<mode, T, op>(v, own, i));
    else
      send<mode>(v, 0, root, i, own);
  }
}

/* in [size,n], out [n]: row `rank` of all, combined. */
template <typename mode, typename T, ts_cop op>
TS_KERNEL void reduce_scatter(view v, const T *in, T *out, size_t n)
{
  await_all_room(v);
  for (size_t i = machine::first(); i < words_of<T>(n); i += machine::step()) {
    for (int k = 1; k < v.size; k++) {
      const int p = peer_at(v, k);
      send<mode>(v, 0, p, i, mode::check(v, load(in + (size_t)p * n, n, i)));
    }
    const uint64_t own = mode::check(v, load(in + (size_t)v.rank * n, n, i));
    store(out, n, i, gather<mode, T, op>(v, own, i));
  }
}

/* in [n], out [size,n]; in may be the own row of out. */
template <typename mode, typename T>
TS_KERNEL void all_gather(view v, const T *in, T *out, size_t n)
{
  await_all_room(v);
  for (size_t i = machine::first(); i < words_of<T>(n); i += machine::step()) {
    const uint64_t own = mode::check(v, load(in, n, i));
    store(out + (size_t)v.rank * n, n, i, own);
    for (int k = 1; k < v.size; k++)
      send<mode>(v, 0, peer_at(v, k), i, own);
    for (int k = 1; k < v.size; k++) {
      const int p = peer_at(v, v.size - k);
      store(out + (size_t)p * n, n, i, receive<mode>(v, 0, p, i));
    }
  }
}

}  // namespace

#endif
