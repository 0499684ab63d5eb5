/* SPDX-License-Identifier: MIT
 *
 * The kernels of GPU collectives, run by threads of the host: a few for each rank, as the threads
 * of a kernel, which meet between calls as kernels of one stream do; ranks meet nowhere else. Calls
 * of all kinds, types, modes and lengths at random, against what one thread computes; a value that
 * is the sentinel; and a rank that is gone.  Built and run by tests/test_collective_kernels.sh. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define TS_SHARED
#define TS_DEVICE
#define TS_KERNEL

namespace machine {

using window = char *const *; /* [size] */

static thread_local size_t own_first, own_step = 1;
static thread_local unsigned looks;

static char *address(window w, size_t offset, int rank)
{
  return w[rank] + offset;
}

static size_t first()
{
  return own_first;
}

static size_t step()
{
  return own_step;
}

static void put(char *to, uint64_t word)
{
  __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
}

static uint64_t take(const char *from)
{
  if (++looks % 64 == 0) sched_yield();
  return __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
}

/* The halves in an order that a GPU may have, too. */
static void put_pair(char *to, uint64_t word, uint32_t epoch)
{
  put(to + 8, (word >> 32) | (uint64_t)epoch << 32);
  put(to, (word & 0xffffffff) | (uint64_t)epoch << 32);
}

static bool take_pair(const char *from, uint32_t epoch, uint64_t *word)
{
  const uint64_t a = take(from), b = take(from + 8);
  *word = (a & 0xffffffff) | b << 32;
  return a >> 32 == epoch && b >> 32 == epoch;
}

static uint64_t swap(char *at, uint64_t old, uint64_t next)
{
  __atomic_compare_exchange_n((uint64_t *)(void *)at, &old, next, false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  return old;
}

static void count(char *at)
{
  __atomic_fetch_add((uint32_t *)(void *)at, 1, __ATOMIC_ACQ_REL);
}

static uint32_t counted(const char *at)
{
  if (++looks % 64 == 0) sched_yield();
  return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

}  // namespace machine

#include "comm/collective_gpu_kernels.h"

namespace {

enum { MOST_RANKS = 5, MOST_THREADS = 3, WORDS = 32, CALLS = 3000 };
enum kind { ONE, TWO, LINES, BROADCAST, REDUCE, SCATTER, GATHER, KINDS };

/* One call, the same on all ranks. */
struct call {
  int kind, type, op, root;
  bool ll, in_place;
  size_t n;
};

struct group {
  int size, threads;
  uint64_t seed;
  char *memory[MOST_RANKS];
  int refused, stop;
};

struct rank_state {
  group *g;
  int rank;
  pthread_barrier_t barrier;
  std::vector<char> in, out;
};

struct worker {
  rank_state *r;
  int thread;
  uint32_t epoch, turn;
};

uint64_t next(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

call call_at(const group *g, int number)
{
  uint64_t s = g->seed + (uint64_t)number * 977;
  call c;
  c.kind = (int)(next(&s) % KINDS);
  c.type = (int)(next(&s) % TS_CTYPES);
  c.op = (int)(next(&s) % TS_COPS);
  c.root = (int)(next(&s) % (uint64_t)g->size);
  c.ll = next(&s) % 2;
  c.in_place = next(&s) % 2;
  const size_t most = c.type == TS_CTYPE_FLOAT ? 2 * WORDS : WORDS;
  c.n = 1 + next(&s) % (next(&s) % 3 ? 5 : most);
  return c;
}

template <typename T>
T value(const group *g, int number, int rank, size_t i)
{
  uint64_t s = g->seed ^ ((uint64_t)number << 32) ^ ((uint64_t)rank << 20) ^ i;
  return (T)((double)(int64_t)(next(&s) >> 40) * (sizeof(T) == 8 ? 1 / 3.0 : 0.01));
}

template <typename T>
T combined(int op, T a, T b)
{
  return op == TS_COP_SUM ? a + b : op == TS_COP_MAX ? (a > b ? a : b) : (a < b ? a : b);
}

/* Element i of all ranks' arrays. */
template <typename T>
T sum_of(const group *g, int number, int op, size_t i)
{
  T sum = value<T>(g, number, 0, i);
  for (int p = 1; p < g->size; p++)
    sum = combined(op, sum, value<T>(g, number, p, i));
  return sum;
}

template <typename T>
void expect(const rank_state *r, int number, const call &c, size_t i, T got, T want)
{
  const double off = std::fabs((double)got - (double)want);
  if (off <= (c.kind == LINES ? 1e-6 * std::fabs((double)want) + 1e-6 : 0)) return;
  std::fprintf(
      stderr,
      "%d ranks of %d threads, seed %llu, call %d (kind %d, type %d, operation %d, %s, %zu "
      "values), rank %d: value %zu is %.17g, not %.17g\n",
      r->g->size, r->g->threads, (unsigned long long)r->g->seed, number, c.kind, c.type, c.op,
      c.ll ? "ll" : "sentinel", c.n, r->rank, i, (double)got, (double)want);
  std::exit(1);
}

template <typename T>
void fill(rank_state *r, int number, const call &c)
{
  const size_t rows = c.kind == SCATTER ? (size_t)r->g->size : 1;
  T *in = (T *)(void *)r->in.data();
  for (size_t i = 0; i < rows * c.n; i++)
    in[i] = value<T>(r->g, number, r->rank, i);
}

template <typename T>
void check(const rank_state *r, int number, const call &c, const T *out)
{
  const group *g = r->g;
  if (c.kind == REDUCE && r->rank != c.root) return;
  for (size_t i = 0; i < c.n; i++) {
    if (c.kind == BROADCAST)
      expect(r, number, c, i, out[i], value<T>(g, number, c.root, i));
    else if (c.kind == SCATTER)
      expect(r, number, c, i, out[i], sum_of<T>(g, number, c.op, (size_t)r->rank * c.n + i));
    else if (c.kind != GATHER)
      expect(r, number, c, i, out[i], sum_of<T>(g, number, c.op, i));
  }
  for (size_t i = 0; c.kind == GATHER && i < (size_t)g->size * c.n; i++)
    expect(r, number, c, i, out[i], value<T>(g, number, (int)(i / c.n), i % c.n));
}

template <typename mode, typename T, ts_cop op>
void run(const view &v, uint32_t turn, const call &c, T *in, T *out)
{
  switch (c.kind) {
    case ONE:
      one_shot<mode, T, op>(v, in, out, c.n);
      break;
    case TWO:
      two_shot<mode, T, op>(v, in, out, c.n);
      break;
    case LINES:
      line_shot<T, op>(v, turn, in, out, c.n);
      break;
    case BROADCAST:
      broadcast<mode, T>(v, c.root, out, c.n);
      break;
    case REDUCE:
      reduce<mode, T, op>(v, c.root, in, out, c.n);
      break;
    case SCATTER:
      reduce_scatter<mode, T, op>(v, in, out, c.n);
      break;
    default:
      all_gather<mode, T>(v, in, out, c.n);
  }
}

template <typename mode, typename T>
void run_op(const view &v, uint32_t turn, const call &c, T *in, T *out)
{
  if (c.op == TS_COP_SUM)
    run<mode, T, TS_COP_SUM>(v, turn, c, in, out);
  else if (c.op == TS_COP_MAX)
    run<mode, T, TS_COP_MAX>(v, turn, c, in, out);
  else
    run<mode, T, TS_COP_MIN>(v, turn, c, in, out);
}

/* Where the results go. */
template <typename T>
T *place(rank_state *r, const call &c)
{
  T *in = (T *)(void *)r->in.data(), *out = (T *)(void *)r->out.data();
  if (c.kind == BROADCAST) return in;
  if (!c.in_place) return out;
  if (c.kind == SCATTER) return in + (size_t)r->rank * c.n;
  return c.kind == GATHER ? out : in;
}

template <typename T>
void one_call(worker *w, int number, const call &c)
{
  rank_state *r = w->r;
  group *g = r->g;
  const view v = {g->memory, r->rank, g->size, WORDS, ++w->epoch, &g->refused, &g->stop};
  if (w->thread == 0) fill<T>(r, number, c);
  pthread_barrier_wait(&r->barrier);
  uint64_t s = g->seed + (uint64_t)(number * 31 + r->rank * 7 + w->thread);
  if (next(&s) % 50 == 0) usleep((unsigned)(next(&s) % 300));
  T *in = (T *)(void *)r->in.data(), *out = place<T>(r, c);
  if (c.kind == GATHER && c.in_place) { /* the input is the own row of the output */
    T *row = out + (size_t)r->rank * c.n;
    if (w->thread == 0) std::memcpy(row, in, c.n * sizeof *row);
    pthread_barrier_wait(&r->barrier);
    in = row;
  }
  w->turn += c.kind == LINES;
  if (c.ll)
    run_op<ll, T>(v, w->turn, c, in, out);
  else
    run_op<sentinel, T>(v, w->turn, c, in, out);
  pthread_barrier_wait(&r->barrier);
  if (c.kind == LINES) {
    line_clear(v, w->turn);
    pthread_barrier_wait(&r->barrier);
  }
  if (w->thread == 0 && !g->stop) check<T>(r, number, c, out);
  pthread_barrier_wait(&r->barrier);
}

void *calls(void *arg)
{
  worker *w = (worker *)arg;
  machine::own_first = (size_t)w->thread;
  machine::own_step = (size_t)w->r->g->threads;
  for (int number = 0; number < CALLS; number++) {
    const call c = call_at(w->r->g, number);
    if (c.type == TS_CTYPE_DOUBLE)
      one_call<double>(w, number, c);
    else if (c.type == TS_CTYPE_FLOAT)
      one_call<float>(w, number, c);
    else
      one_call<long long>(w, number, c);
  }
  return nullptr;
}

void make(group *g, int size, int threads, uint64_t seed)
{
  *g = {size, threads, seed, {}, 0, 0};
  const size_t bytes = window_bytes(size, WORDS);
  for (int p = 0; p < size; p++) {
    g->memory[p] = (char *)std::aligned_alloc(128, ceil_of(bytes, 128) * 128);
    std::memset(g->memory[p], 0, bytes);
    uint64_t *word = (uint64_t *)(void *)g->memory[p];
    const size_t plain = area_start(size, WORDS, 2) / 8, lines = area_start(size, WORDS, 4) / 8;
    for (size_t i = plain; i < bytes / 8; i++)
      word[i] = i >= lines && (i - lines) % LINE == 0 ? 0 : SENTINEL;
  }
}

void release(group *g)
{
  for (int p = 0; p < g->size; p++)
    std::free(g->memory[p]);
}

void random_calls(int size, int threads, uint64_t seed)
{
  group g;
  std::vector<rank_state> rank((size_t)size);
  std::vector<worker> w((size_t)(size * threads));
  std::vector<pthread_t> thread(w.size());
  make(&g, size, threads, seed);
  for (int p = 0; p < size; p++) {
    rank[(size_t)p].g = &g;
    rank[(size_t)p].rank = p;
    rank[(size_t)p].in.resize(MOST_RANKS * WORDS * 8);
    rank[(size_t)p].out.resize(MOST_RANKS * WORDS * 8);
    pthread_barrier_init(&rank[(size_t)p].barrier, nullptr, (unsigned)threads);
  }
  for (size_t i = 0; i < w.size(); i++) {
    w[i] = {&rank[i / (size_t)threads], (int)(i % (size_t)threads), 0, 0};
    if (pthread_create(&thread[i], nullptr, calls, &w[i])) std::exit(1);
  }
  for (pthread_t t : thread)
    pthread_join(t, nullptr);
  if (g.refused) {
    std::fprintf(stderr, "a value was refused that is not the sentinel\n");
    std::exit(1);
  }
  release(&g);
}

/* Alone, a rank meets a value that it may not send; then it waits for one that never comes. */
void *alone(void *arg)
{
  group *g = (group *)arg;
  double x = 1, y = 0;
  const view v = {g->memory, 0, 2, WORDS, 1, &g->refused, &g->stop};
  one_shot<ll, double, TS_COP_SUM>(v, &x, &y, 1);
  return nullptr;
}

void failures()
{
  group g;
  pthread_t thread;
  double x, y = 0;
  make(&g, 1, 1, 0);
  const uint64_t bits = SENTINEL;
  std::memcpy(&x, &bits, sizeof x);
  one_shot<sentinel, double, TS_COP_SUM>({g.memory, 0, 1, WORDS, 1, &g.refused, &g.stop}, &x, &y,
                                         1);
  if (!g.refused || y == y) {
    std::fprintf(stderr, "the sentinel was not refused\n");
    std::exit(1);
  }
  release(&g);
  make(&g, 2, 1, 0);
  if (pthread_create(&thread, nullptr, alone, &g)) std::exit(1);
  usleep(20000);
  *(volatile int *)&g.stop = 1;
  pthread_join(thread, nullptr);
  release(&g);
}

}  // namespace

int main()
{
  alarm(200); /* a hang is a failure */
  failures();
  for (int size = 1; size <= MOST_RANKS; size++)
    for (int threads = 1; threads <= MOST_THREADS; threads++)
      random_calls(size, threads, (uint64_t)(100 * size + threads));
  std::printf("%d calls on 1 to %d ranks of 1 to %d threads\n", CALLS, MOST_RANKS, MOST_THREADS);
  return 0;
}
