/* SPDX-License-Identifier: MIT
 *
 * Exchanges within a window, their replays, and the agreement at the start.  Run by mpirun
 * (test_route_ranks.sh) or alone.  Every record says where it comes from and where it belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/peers_deliver.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "tests/ranks_watchdog.h"

typedef struct record {
  int32_t dest, source;
  int64_t index;
} record;

static ts_world *world;
static ts_ranks ranks;

/* How many records `from` sends to `to` in round `round`: often none, so that a rank which decided
 * from its own counts would wait for ever. */
static int64_t amount(int from, int to, int round)
{
  const uint64_t h = tsi_key_avalanche((ts_key){(uint64_t)from, (uint64_t)to}, (uint64_t)round);
  return h % 3 == 0 ? (int64_t)(h >> 32) % 50 : 0;
}

static void pack(void *context, int host, int slot, void *out)
{
  const ts_peers *peers = context;
  const int me = ranks.first + host, to = ts_peers_rank(peers, me, slot);
  record *r = out;
  for (int64_t i = 0; i < amount(me, to, 0); i++)
    r[i] = (record){to, me, i};
}

/* Each record that came goes back, one larger. */
typedef struct answering {
  const ts_exchange *x;
  const record *got;
  const int64_t *first;
  int slots;
} answering;

static void pack_back(void *context, int host, int slot, void *out)
{
  const answering *a = context;
  record *r = out;
  const int64_t k = (int64_t)host * a->slots + slot;
  for (int64_t i = 0; i < a->first[k + 1] - a->first[k]; i++) {
    const record *g = &a->got[a->first[k] + i];
    r[i] = (record){g->source, g->dest, g->index + 1000};
  }
}

static void check_slot(const ts_peers *peers, const ts_exchange *x, int slot, bool back)
{
  const int me = ranks.first, other = ts_peers_rank(peers, me, slot);
  const int64_t n = other < 0 ? 0 : back ? amount(me, other, 0) : amount(other, me, 0);
  const record *r = (const record *)(const void *)x->data + x->first[slot];
  assert_int_equal(x->received[slot], n);
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(r[i].dest, me);
    assert_int_equal(r[i].source, other);
    assert_int_equal(r[i].index, back ? i + 1000 : i);
  }
}

static void run_window(const ts_peers *peers)
{
  const int slots = ts_peers_slots(peers);
  int64_t *count = calloc((size_t)slots + 1, sizeof *count), messages = 0, payloads = 0;
  ts_exchange x;
  assert_int_equal(ts_exchange_create(peers, &x), 0);
  for (int s = 0; s < slots; s++) {
    const int to = ts_peers_rank(peers, ranks.first, s);
    count[s] = to < 0 ? 0 : amount(ranks.first, to, 0);
    messages += to >= 0 && to != ranks.first;
    payloads += to >= 0 && to != ranks.first && count[s];
  }
  for (int round = 0; round < 2; round++) { /* buffers are used again */
    const int64_t before = ranks.traffic->messages;
    assert_int_equal(
        ts_peers_exchange(peers, sizeof(record), count, pack, (void *)(uintptr_t)peers, &x), 0);
    assert_int_equal(ranks.traffic->messages - before, messages + payloads);
    for (int s = 0; s < slots; s++)
      check_slot(peers, &x, s, false);
  }
  /* the same again, without counts; every message of payload, no other */
  const int64_t before = ranks.traffic->messages;
  assert_int_equal(
      ts_peers_replay(peers, sizeof(record), false, pack, (void *)(uintptr_t)peers, &x), 0);
  assert_int_equal(ranks.traffic->messages - before, payloads);
  for (int s = 0; s < slots; s++)
    check_slot(peers, &x, s, false);

  /* and back */
  const size_t n = (size_t)x.first[slots];
  record *got = malloc((n + 1) * sizeof *got);
  int64_t *first = malloc(((size_t)slots + 1) * sizeof *first);
  if (n) memcpy(got, x.data, n * sizeof *got);
  memcpy(first, x.first, ((size_t)slots + 1) * sizeof *first);
  answering a = {&x, got, first, slots};
  assert_int_equal(ts_peers_replay(peers, sizeof(record), true, pack_back, &a, &x), 0);
  for (int s = 0; s < slots; s++)
    check_slot(peers, &x, s, true);
  free(got);
  free(first);
  free(count);
  ts_exchange_destroy(&x);
}

static void windows(void **state)
{
  (void)state;
  const int homes = tsi_power_of_two_below(ranks.size);
  ts_key shift[9] = {{0, 0}}; /* the first one is empty: local */
  for (int s = 1; s < 9; s++)
    shift[s] = ts_key_bit(7 * s);
  for (int mode = 0; mode < 2; mode++) {
    ts_route_params p;
    ts_router *router = NULL;
    ts_peers *peers = NULL;
    ts_route_params_init(&p, homes);
    p.mode = (ts_route_mode)mode;
    p.nshift = 9;
    p.shift = shift;
    assert_int_equal(ts_router_create(&p, &router), 0);
    for (int n = 0; n <= 9; n += 3) {
      assert_int_equal(ts_peers_create(&ranks, router, n, shift, &peers), 0);
      if (mode == TS_ROUTE_LINEAR) assert_true(ts_peers_slots(peers) <= (n < homes ? n : homes));
      if (mode == TS_ROUTE_SPLITMIX) assert_int_equal(ts_peers_slots(peers), ranks.size);
      for (int s = 0; s < n && ranks.first < homes; s++) { /* a key that is at home here */
        ts_key key = {12345, 6789};
        while (ts_router_rank(router, key) != ranks.first)
          key.lo++;
        const ts_key shifted = ts_key_xor(key, shift[s]);
        const int slot = ts_peers_slot(peers, shifted, s);
        assert_int_equal(ts_peers_rank(peers, ranks.first, slot), ts_router_rank(router, shifted));
      }
      run_window(peers);
      ts_peers_destroy(&peers);
    }
    /* an empty shift alone: no message at all */
    assert_int_equal(ts_peers_create(&ranks, router, 1, shift, &peers), 0);
    const int64_t before = ranks.traffic->messages;
    if (mode == TS_ROUTE_LINEAR) run_window(peers);
    assert_int_equal(ranks.traffic->messages, before);
    ts_peers_destroy(&peers);
    ts_router_destroy(&router);
  }
}

static void delivery(void **state)
{
  (void)state;
  for (int mode = 0; mode < 2; mode++) {
    ts_delivery *d = NULL;
    assert_int_equal(ts_delivery_create(&ranks, (ts_route_mode)mode, &d), 0);
    for (int round = 0; round < 2; round++) {
      ts_box box = {0};
      for (int to = 0; to < ranks.size; to++)
        for (int64_t i = 0; i < amount(ranks.first, to, round); i++) {
          const record r = {to, ranks.first, i};
          assert_int_equal(ts_box_add(&box, sizeof r, 1, &r), 0);
        }
      const int64_t before = ranks.traffic->messages;
      assert_int_equal(ts_delivery_run(d, sizeof(record), &box), 0);
      int bits = 2; /* at most two messages a bit, and two for each fold */
      while (1 << (bits - 2) < ranks.size)
        bits++;
      if (mode == TS_ROUTE_LINEAR) assert_true(ranks.traffic->messages - before <= 2 * bits);

      int64_t expected = 0;
      for (int from = 0; from < ranks.size; from++)
        expected += amount(from, ranks.first, round);
      assert_int_equal(box.n, expected);
      int64_t *seen = calloc((size_t)ranks.size, sizeof *seen);
      for (int64_t i = 0; i < box.n; i++) {
        const record *r = (const record *)(const void *)box.data + i;
        assert_int_equal(r->dest, ranks.first);
        assert_int_equal(r->index, seen[r->source]++); /* one source's records keep their order */
      }
      free(seen);
      free(box.data);
    }
    ts_delivery_destroy(&d);
  }
}

static int agree(ts_route_params p)
{
  ts_router *router = NULL;
  assert_int_equal(ts_router_create(&p, &router), 0);
  const int status = ts_router_agree(router, ts_world_comm(world));
  ts_router_destroy(&router);
  return status;
}

static void agreement(void **state)
{
  (void)state;
  ts_route_params p;
  ts_route_params_init(&p, 8);
  assert_int_equal(agree(p), 0);
  if (ranks.size == 1) return;
  const int odd_one = ranks.size - 1;
  if (ranks.first == odd_one) p.mode = TS_ROUTE_SPLITMIX;
  assert_int_equal(agree(p), TS_ERR_INPUT); /* on every rank, with both */
  assert_non_null(strstr(ts_error_message(), "linear, 8 ranks"));
  assert_non_null(strstr(ts_error_message(), "splitmix, 8 ranks"));

  ts_route_params_init(&p, 8);
  if (ranks.first == 0) p.seed = 99;
  assert_int_equal(agree(p), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "rank 0 has"));
  assert_non_null(strstr(ts_error_message(), "seed 99"));
  assert_non_null(strstr(ts_error_message(), "seed 1,"));

  ts_key shift = ts_key_bit(ranks.first == 0 ? 3 : 4); /* not in the words, but in the digest */
  ts_route_params_init(&p, 8);
  p.nshift = 1;
  p.shift = &shift;
  assert_int_equal(agree(p), TS_ERR_INPUT);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(delivery),
                                     cmocka_unit_test(agreement)};
  static ts_traffic traffic;
  ranks_watchdog(120);
  if (ts_world_create(&world) || ts_ranks_of(ts_world_comm(world), &ranks)) return 1;
  ranks.traffic = &traffic;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) ts_world_abort(world, TS_ERR_SIMULATION);
  ts_world_destroy(&world);
  return 0;
}
