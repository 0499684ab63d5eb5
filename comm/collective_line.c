/* SPDX-License-Identifier: MIT
 *
 * Three sub-buffers in turn.  In round e the owner empties the lines of round e+1, which were last
 * used in round e-2.  All have read those: a rank counts itself in round e-1 only after it has
 * finished e-2, and the owner has seen all of them counted in e-1.  And nobody enters round e+1
 * before the owner has counted itself in round e, after emptying: every line waits for all ranks.
 */
#include "comm/collective_line.h"

#include "runtime/error.h"

enum { WORDS = TSI_LINE / 8 - 1, TURNS = 3 };

typedef struct line {
  _Alignas(TSI_LINE) _Atomic uint64_t arrived;
  _Atomic uint64_t word[WORDS]; /* TS_SENTINEL: nobody has come yet */
} line;

static size_t header_bytes(int size)
{
  return sizeof(tsi_cheader) + (size_t)size * TSI_LINE;
}

static size_t line_count(size_t words)
{
  return (words + WORDS - 1) / WORDS;
}

size_t ts_cline_bytes(int size, size_t words)
{
  return header_bytes(size) + TURNS * (size_t)size * line_count(words) * sizeof(line);
}

static void empty(line *l)
{
  for (int i = 0; i < WORDS; i++)
    atomic_store_explicit(&l->word[i], TS_SENTINEL, memory_order_relaxed);
  atomic_store_explicit(&l->arrived, 0, memory_order_relaxed);
}

void ts_cline_fill(int size, size_t words, void *memory)
{
  line *l = (void *)((unsigned char *)memory + header_bytes(size));
  for (size_t i = 0; i < TURNS * (size_t)size * line_count(words); i++)
    empty(&l[i]);
}

void ts_cline_init(ts_cline *l, int rank, int size, size_t words, void *memory,
                   const tsi_cwait *wait)
{
  *l = (ts_cline){.rank = rank,
                  .size = size,
                  .lines = line_count(words),
                  .epoch = 1,
                  .memory = memory,
                  .wait = *wait};
}

static tsi_cheader *header(const ts_cline *l)
{
  return (tsi_cheader *)(void *)l->memory;
}

/* Line i of a round; neighbours belong to different ranks. */
static line *line_of(const ts_cline *l, uint64_t epoch, size_t i)
{
  line *first = (void *)(l->memory + header_bytes(l->size));
  const size_t owner = i % (size_t)l->size, at = i / (size_t)l->size;
  return first + ((epoch % TURNS) * (size_t)l->size + owner) * l->lines + at;
}

static int refuse(ts_cline *l)
{
  return tsi_cwait_fail(header(l), &l->wait, TSI_CFAILURE_SENTINEL, l->rank);
}

static int add(ts_cline *l, line *to, tsi_combine *combine, const ts_word *x, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    uint64_t old = atomic_load_explicit(&to->word[i], memory_order_relaxed);
    ts_word next;
    if (x[i] == TS_SENTINEL) return refuse(l);
    do {
      next = x[i];
      if (old != TS_SENTINEL) {
        next = old;
        combine(&next, &next, &x[i], 1);
      }
      if (next == TS_SENTINEL) return refuse(l); /* a sum of integers came to it */
    } while (!atomic_compare_exchange_weak_explicit(&to->word[i], &old, next, memory_order_relaxed,
                                                    memory_order_relaxed));
  }
  atomic_fetch_add_explicit(&to->arrived, 1, memory_order_acq_rel);
  return 0;
}

static int read_line(ts_cline *l, size_t i, ts_word *out, size_t n)
{
  line *from = line_of(l, l->epoch, i);
  /* who is missing is not known: look at another peer's life each time */
  unsigned spins = 0;
  int peer = (l->rank + 1) % l->size;
  while (atomic_load_explicit(&from->arrived, memory_order_acquire) < (uint64_t)l->size) {
    const double looked = l->looked;
    TS_TRY(tsi_cwait_idle(header(l), &l->wait, peer, &spins, &l->looked, &l->missed));
    if (l->looked > looked && !l->missed) peer = (peer + 1) % l->size;
    if (peer == l->rank) peer = (peer + 1) % l->size;
  }
  for (size_t k = 0; k < n; k++)
    out[k] = atomic_load_explicit(&from->word[k], memory_order_relaxed);
  return 0;
}

static int round_of(ts_cline *l, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n)
{
  const size_t lines = line_count(n), size = (size_t)l->size;
  l->used[l->epoch % TURNS] = (lines + size - 1) / size;
  for (size_t i = 0; i < l->used[(l->epoch + 1) % TURNS]; i++)
    empty(line_of(l, l->epoch + 1, i * size + (size_t)l->rank));
  for (size_t i = 0; i < lines; i++) {
    const size_t first = i * WORDS, m = n - first < WORDS ? n - first : WORDS;
    TS_TRY(add(l, line_of(l, l->epoch, i), combine, in + first, m));
    if (i % size != (size_t)l->rank) l->count.bytes += sizeof(line);
  }
  for (size_t i = 0; i < lines; i++) {
    const size_t first = i * WORDS, m = n - first < WORDS ? n - first : WORDS;
    TS_TRY(read_line(l, i, out + first, m));
  }
  l->epoch++;
  l->count.rounds++;
  return 0;
}

int ts_cline_allreduce(ts_cline *l, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n)
{
  const size_t most = l->lines * WORDS * (size_t)l->size;
  for (size_t first = 0; first < n; first += most)
    TS_TRY(round_of(l, combine, in + first, out + first, n - first < most ? n - first : most));
  return 0;
}
