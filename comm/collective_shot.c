/* SPDX-License-Identifier: MIT
 *
 * Each function is a loop over rounds of at most the buffer's words. */
#include "comm/collective_shot.h"

#include <string.h>

#include "runtime/error.h"

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

int tsi_shot_one(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n)
{
  for (size_t first = 0; first < n; first += b->words) {
    const size_t m = least(n - first, b->words);
    TS_TRY(ts_cbuffer_round(b, combine, in + first, out + first, m));
  }
  return 0;
}

/* Where part p of m words starts: parts are equal to a line, so that none shares one. */
static size_t part_start(size_t m, int p, int size)
{
  const size_t line = TSI_LINE / sizeof(ts_word), lines = (m + line - 1) / line;
  return least(m, lines * (size_t)p / (size_t)size * line);
}

static size_t part_words(size_t m, int p, int size)
{
  return part_start(m, p + 1, size) - part_start(m, p, size);
}

static int two_shot_round(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out,
                          size_t m)
{
  const size_t start = part_start(m, b->rank, b->size), own = part_words(m, b->rank, b->size);
  for (int k = 1; k < b->size; k++) {
    const int peer = (b->rank + k) % b->size;
    TS_TRY(
        ts_cbuffer_send(b, peer, in + part_start(m, peer, b->size), part_words(m, peer, b->size)));
  }
  TS_TRY(ts_cbuffer_receive_reduce(b, combine, in + start, out + start, own));
  ts_cbuffer_advance(b);
  TS_TRY(ts_cbuffer_broadcast(b, out + start, own));
  for (int k = 1; k < b->size; k++) {
    const int peer = (b->rank + b->size - k) % b->size;
    TS_TRY(ts_cbuffer_receive(b, peer, out + part_start(m, peer, b->size),
                              part_words(m, peer, b->size)));
  }
  ts_cbuffer_advance(b);
  return 0;
}

int tsi_shot_two(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out, size_t n)
{
  const size_t line = TSI_LINE / sizeof(ts_word);
  const size_t most = b->words / line * line * (size_t)b->size; /* every part fits its row */
  for (size_t first = 0; first < n; first += most)
    TS_TRY(two_shot_round(b, combine, in + first, out + first, least(n - first, most)));
  return 0;
}

int tsi_shot_broadcast(ts_cbuffer *b, int root, ts_word *x, size_t n)
{
  for (size_t first = 0; first < n; first += b->words) {
    const size_t m = least(n - first, b->words);
    if (b->rank == root)
      TS_TRY(ts_cbuffer_broadcast(b, x + first, m));
    else
      TS_TRY(ts_cbuffer_receive(b, root, x + first, m));
    ts_cbuffer_advance(b);
  }
  return 0;
}

int tsi_shot_reduce(ts_cbuffer *b, tsi_combine *combine, int root, const ts_word *in, ts_word *out,
                    size_t n)
{
  for (size_t first = 0; first < n; first += b->words) {
    const size_t m = least(n - first, b->words);
    if (b->rank == root)
      TS_TRY(ts_cbuffer_receive_reduce(b, combine, in + first, out + first, m));
    else
      TS_TRY(ts_cbuffer_send(b, root, in + first, m));
    ts_cbuffer_advance(b);
  }
  return 0;
}

int tsi_shot_reduce_scatter(ts_cbuffer *b, tsi_combine *combine, const ts_word *in, ts_word *out,
                            size_t n)
{
  for (size_t first = 0; first < n; first += b->words) {
    const size_t m = least(n - first, b->words);
    for (int k = 1; k < b->size; k++) {
      const int peer = (b->rank + k) % b->size;
      TS_TRY(ts_cbuffer_send(b, peer, in + (size_t)peer * n + first, m));
    }
    TS_TRY(ts_cbuffer_receive_reduce(b, combine, in + (size_t)b->rank * n + first, out + first, m));
    ts_cbuffer_advance(b);
  }
  return 0;
}

int tsi_shot_all_gather(ts_cbuffer *b, const ts_word *in, ts_word *out, size_t n)
{
  ts_word *own = out + (size_t)b->rank * n;
  if (in != own) memcpy(own, in, n * sizeof *in);
  for (size_t first = 0; first < n; first += b->words) {
    const size_t m = least(n - first, b->words);
    TS_TRY(ts_cbuffer_broadcast(b, own + first, m));
    for (int k = 1; k < b->size; k++) {
      const int peer = (b->rank + b->size - k) % b->size;
      TS_TRY(ts_cbuffer_receive(b, peer, out + (size_t)peer * n + first, m));
    }
    ts_cbuffer_advance(b);
  }
  return 0;
}
