/* SPDX-License-Identifier: MIT
 *
 * The protocols with threads as ranks over ordinary memory: random lengths (also none, and more
 * than a message holds), every algorithm in random order, delays at random places on either side.
 * Every word is checked.  tests/test_collective_race.sh runs it under ThreadSanitizer.  Arguments:
 * the number of rounds; a million were run so. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/collective_line.h"
#include "comm/collective_shot.h"
#include "runtime/error.h"

enum { RANKS = 4, WORDS = 32, MOST = 6 * WORDS + 5 };

typedef struct rank_thread {
  pthread_t thread;
  int rank, size;
  long rounds, failures;
  ts_cbuffer buffer[2];
  ts_cline line;
  ts_word in[RANKS * MOST], out[RANKS * MOST];
} rank_thread;

static uint32_t draw(uint64_t *state)
{
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

static void delay(uint64_t *own)
{
  const uint32_t kind = draw(own) % 64, turns = draw(own) % 1000;
  if (kind == 0) sched_yield();
  for (volatile uint32_t i = 0; kind < 4 && i < turns; i = i + 1)
    continue;
}

static ts_word value(long round, int rank, size_t i)
{
  return (ts_word)round * 1000003 + (ts_word)rank * 7919 + (ts_word)i * 31;
}

static ts_word sum(long round, int size, size_t i)
{
  ts_word all = 0;
  for (int r = 0; r < size; r++)
    all += value(round, r, i);
  return all;
}

/* One call of the kind; n words (a part's, where there are parts).  out is checked against `want`,
 * which this fills; the number of words to check is returned, negative for a failure. */
static long play(rank_thread *t, uint32_t kind, long round, int root, size_t n, ts_word *want)
{
  ts_cbuffer *b = &t->buffer[kind % 2];
  tsi_combine *add = tsi_combine_find(TS_CTYPE_INT64, TS_COP_SUM);
  const size_t size = (size_t)t->size, own = (size_t)t->rank * n;
  int status = 0;
  for (size_t i = 0; i < n * size; i++)
    t->in[i] = value(round, t->rank, i);
  for (size_t i = 0; i < n; i++)
    want[i] = sum(round, t->size, i);
  switch (kind / 2) {
    case 0:
      status = tsi_shot_one(b, add, t->in, t->out, n);
      break;
    case 1: /* in place */
      memcpy(t->out, t->in, n * sizeof *t->in);
      status = tsi_shot_two(b, add, t->out, t->out, n);
      break;
    case 2:
      memcpy(t->out, t->in, n * sizeof *t->in);
      for (size_t i = 0; i < n; i++)
        want[i] = value(round, root, i);
      status = tsi_shot_broadcast(b, root, t->out, n);
      break;
    case 3:
      status = tsi_shot_reduce(b, add, root, t->in, t->out, n);
      if (t->rank != root) n = 0;
      break;
    case 4:
      for (size_t i = 0; i < n; i++)
        want[i] = sum(round, t->size, own + i);
      status = tsi_shot_reduce_scatter(b, add, t->in, t->out, n);
      break;
    case 5:
      for (size_t i = 0; i < n * size; i++)
        want[i] = value(round, (int)(i / n), i % n);
      status = tsi_shot_all_gather(b, t->in, t->out, n);
      n *= size;
      break;
    default:
      status = ts_cline_allreduce(&t->line, add, t->in, t->out, n);
  }
  return status ? -1 : (long)n;
}

static void *run(void *arg)
{
  rank_thread *t = arg;
  static _Thread_local ts_word want[RANKS * MOST];
  uint64_t common = 11, own = (uint64_t)t->rank + 100;
  for (long round = 0; round < t->rounds && !t->failures; round++) {
    const uint32_t kind = draw(&common) % 13, root = draw(&common) % (uint32_t)t->size;
    size_t n = draw(&common) % 4 ? draw(&common) % 10 : draw(&common) % MOST;
    delay(&own);
    const long check = play(t, kind, round, (int)root, n, want);
    delay(&own);
    if (check < 0 || memcmp(t->out, want, (size_t)check * sizeof *want)) {
      fprintf(stderr, "%d ranks, round %ld, kind %u, rank %d, n %zu: %s\n", t->size, round, kind,
              t->rank, n, check < 0 ? ts_error_message() : "wrong values");
      t->failures++;
    }
  }
  return NULL;
}

static long play_all(int size, long rounds)
{
  static rank_thread threads[RANKS];
  const tsi_cwait wait = {.yield = true};
  void *memory[3];
  const size_t bytes[3] = {ts_cbuffer_bytes(TS_CMODE_LL, size, WORDS),
                           ts_cbuffer_bytes(TS_CMODE_SENTINEL, size, WORDS),
                           ts_cline_bytes(size, WORDS)};
  for (int i = 0; i < 3; i++) {
    memory[i] = aligned_alloc(TSI_LINE, (bytes[i] + TSI_LINE - 1) / TSI_LINE * TSI_LINE);
    if (!memory[i]) return 1;
    memset(memory[i], 0, bytes[i]);
  }
  for (int mode = 0; mode < 2; mode++)
    ts_cbuffer_fill((ts_cmode)mode, size, WORDS, memory[mode]);
  ts_cline_fill(size, WORDS, memory[2]);
  long failures = 0;
  for (int r = 0; r < size; r++) {
    rank_thread *t = &threads[r];
    t->rank = r;
    t->size = size;
    t->rounds = rounds;
    t->failures = 0;
    for (int mode = 0; mode < 2; mode++)
      failures += ts_cbuffer_init(&t->buffer[mode], (ts_cmode)mode, r, size, WORDS, memory[mode],
                                  &wait) != 0;
    ts_cline_init(&t->line, r, size, WORDS, memory[2], &wait);
  }
  for (int r = 0; r < size && !failures; r++)
    if (pthread_create(&threads[r].thread, NULL, run, &threads[r])) exit(1);
  for (int r = 0; r < size; r++) {
    pthread_join(threads[r].thread, NULL);
    failures += threads[r].failures;
    for (int mode = 0; mode < 2; mode++)
      ts_cbuffer_release(&threads[r].buffer[mode]);
  }
  for (int i = 0; i < 3; i++)
    free(memory[i]);
  return failures;
}

int main(int argc, char **argv)
{
  const long rounds = argc > 1 ? atol(argv[1]) : 5000;
  alarm(argc > 1 ? 3600 : 300); /* a hang is a failure */
  for (int size = 1; size <= RANKS; size++)
    if (play_all(size, rounds)) return 1;
  return 0;
}
