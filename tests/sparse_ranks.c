/* SPDX-License-Identifier: MIT
 *
 * Sparse exchanges: what comes is what was sent, also to oneself, empty, one-sided or all at once;
 * on virtual ranks in one process and on the real ones that mpirun started. */
#include "comm/sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

enum { ROUNDS = 60, WORDS = 3 };

static int failures;

static void check(bool ok, const char *what, int round)
{
  if (ok) return;
  fprintf(stderr, "round %d: %s\n", round, what);
  failures++;
}

static uint64_t mix(uint64_t x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Records that `from` sends to `to` in this round: none, a few, rarely many; -1: no parcel. */
static int64_t amount(int round, int from, int to)
{
  const uint64_t r = mix((uint64_t)(round * 1000003 + from * 1009 + to) + 1);
  if (round % 5 == 0) return to == 0 ? 7 : -1; /* everybody to one */
  if (round % 7 == 0) return -1;               /* nobody at all */
  if (r % 3 == 0) return -1;
  return r % 41 == 0 ? 20000 : (int64_t)(r >> 8) % 6;
}

static int32_t word(int round, int from, int to, int64_t k)
{
  return (int32_t)mix((uint64_t)round << 48 ^ (uint64_t)from << 40 ^ (uint64_t)to << 32 ^
                      (uint64_t)k);
}

static int fill(const ts_ranks *ranks, int round, ts_parcels *send)
{
  int64_t parcels = 0, records = 0;
  for (int h = 0; h < ranks->hosted; h++)
    for (int to = 0; to < ranks->size; to++) {
      const int64_t n = amount(round, ranks->first + h, to);
      parcels += n >= 0;
      records += n > 0 ? n : 0;
    }
  TS_TRY(ts_parcels_create(ranks, parcels, records, WORDS * sizeof(int32_t), send));
  int32_t *data = (int32_t *)(void *)send->data;
  int64_t p = 0, at = 0;
  for (int h = 0; h < ranks->hosted; h++) {
    for (int to = 0; to < ranks->size; to++) {
      const int64_t n = amount(round, ranks->first + h, to);
      if (n < 0) continue;
      send->peer[p] = to;
      for (int64_t k = 0; k < n * WORDS; k++)
        data[at * WORDS + k] = word(round, ranks->first + h, to, k);
      at += n;
      send->start[++p] = at;
    }
    send->first[h + 1] = p;
  }
  return 0;
}

static void compare(const ts_ranks *ranks, int round, const ts_parcels *in)
{
  const int32_t *data = (const int32_t *)(const void *)in->data;
  int64_t p = 0;
  for (int h = 0; h < ranks->hosted; h++) {
    check(in->first[h] == p, "first parcel of a rank", round);
    for (int from = 0; from < ranks->size; from++) {
      const int64_t n = amount(round, from, ranks->first + h);
      if (n <= 0) continue;
      check(p < in->first[h + 1] && in->peer[p] == from, "source", round);
      check(in->start[p + 1] - in->start[p] == n, "count", round);
      for (int64_t k = 0; k < n * WORDS && !failures; k++)
        check(data[in->start[p] * WORDS + k] == word(round, from, ranks->first + h, k), "record",
              round);
      p++;
    }
    check(in->first[h + 1] == p, "parcels of a rank", round);
  }
}

static void run(const ts_ranks *ranks)
{
  for (int round = 1; round <= ROUNDS && !failures; round++) {
    ts_parcels send, in = {0};
    check(fill(ranks, round, &send) == 0, ts_error_message(), round);
    check(ts_sparse_exchange(ranks, WORDS * sizeof(int32_t), &send, &in) == 0, ts_error_message(),
          round);
    compare(ranks, round, &in);
    ts_parcels_free(&send);
    ts_parcels_free(&in);
  }
}

static void agree(const ts_ranks *ranks)
{
  check(tsi_ranks_agree(ranks, 0) == 0, "agreement on success", 0);
  const bool fails = ranks->first == ranks->size - 1;
  const int mine = fails ? tsi_fail(TS_ERR_INPUT, "mine") : 0;
  check(tsi_ranks_agree(ranks, mine) == TS_ERR_INPUT, "agreement on failure", 0);
  check(!strcmp(ts_error_message(), "mine"), "the message of who failed", 0);
}

int main(void)
{
  ts_world *world = NULL;
  ts_ranks real;
  ranks_watchdog(100);
  if (ts_world_create(&world)) return 1;
  check(ts_ranks_of(ts_world_comm(world), &real) == 0, "ranks of the world", 0);
  run(&real);
  if (real.size > 1) agree(&real);
  for (int size = 1; size <= 64 && real.size == 1; size *= 4) {
    const ts_ranks virtual = ts_ranks_virtual(size);
    run(&virtual);
  }
  ts_world_destroy(&world);
  return failures > 0;
}
