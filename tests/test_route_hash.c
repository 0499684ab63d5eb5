/* SPDX-License-Identifier: MIT
 *
 * The hashes: linear where it must be, balanced, the same on any machine, and refused where they
 * cannot work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "comm/route.h"
#include "runtime/error.h"

static uint64_t state = 2026;

static uint64_t draw(void)
{
  return tsi_key_avalanche((ts_key){state++, 0}, 77);
}

static ts_key draw_key(void)
{
  const uint64_t lo = draw();
  return (ts_key){lo, draw()};
}

static ts_router *make(ts_route_mode mode, int ranks, int nshift, const ts_key *shift)
{
  ts_route_params p;
  ts_router *router = NULL;
  ts_route_params_init(&p, ranks);
  p.mode = mode;
  p.partitions = 48;
  p.nshift = nshift;
  p.shift = shift;
  assert_int_equal(ts_router_create(&p, &router), 0);
  return router;
}

static void linear(void **unused)
{
  (void)unused;
  ts_router *r = make(TS_ROUTE_LINEAR, 1024, 0, NULL);
  for (int i = 0; i < 1000000; i++) {
    const ts_key a = draw_key(), g = draw_key();
    const int direct = ts_router_rank(r, ts_key_xor(a, g));
    assert_int_equal(direct, ts_router_rank(r, a) ^ ts_router_rank(r, g));
    assert_int_equal(direct, ts_router_rank(r, a) ^ ts_router_shift(r, g));
  }
  ts_router_destroy(&r);
}

/* All keys of a rank, shifted alike, go to one rank; under splitmix to many. */
static void fan_out(void **unused)
{
  (void)unused;
  enum { RANKS = 16, SHIFTS = 40, KEYS = 4000 };
  ts_key shift[SHIFTS];
  for (int s = 0; s < SHIFTS; s++)
    shift[s] = draw_key();
  for (int mode = 0; mode < 2; mode++) {
    ts_router *r = make((ts_route_mode)mode, RANKS, SHIFTS, shift);
    for (int s = 0; s < SHIFTS; s++) {
      uint32_t to[RANKS] = {0};
      for (int i = 0; i < KEYS; i++) {
        const ts_key key = draw_key();
        to[ts_router_rank(r, key)] |= 1u << ts_router_rank(r, ts_key_xor(key, shift[s]));
      }
      for (int k = 0; k < RANKS; k++)
        assert_int_equal(__builtin_popcount(to[k]), mode == TS_ROUTE_LINEAR ? 1 : RANKS);
    }
    ts_router_destroy(&r);
  }
}

static void balanced(void **unused)
{
  (void)unused;
  enum { RANKS = 64, KEYS = 1 << 20 };
  for (int mode = 0; mode < 2; mode++) {
    static int load[RANKS], part[48], both[48];
    memset(load, 0, sizeof load);
    memset(part, 0, sizeof part);
    memset(both, 0, sizeof both);
    ts_router *r = make((ts_route_mode)mode, RANKS, 0, NULL);
    for (int i = 0; i < KEYS; i++) {
      const ts_key key = draw_key();
      const int rank = ts_router_rank(r, key), p = ts_router_partition(r, key);
      assert_in_range(rank, 0, RANKS - 1);
      assert_in_range(p, 0, 47);
      load[rank]++;
      part[p]++;
      if (rank == 5) both[p]++;
    }
    for (int k = 0; k < RANKS; k++)
      assert_true(load[k] < 1.05 * KEYS / RANKS);
    for (int p = 0; p < 48; p++)
      assert_true(part[p] < 1.05 * KEYS / 48);
    /* the keys of one rank fill all its partitions */
    for (int p = 0; p < 48; p++)
      assert_in_range(both[p], 200, 500);
    ts_router_destroy(&r);
  }
}

/* Few keys, few shifts: the fit uses every rank that they can reach, and names the others. */
static void fitted(void **unused)
{
  (void)unused;
  ts_key shift[20];
  int unreached[64];
  for (int s = 0; s < 20; s++)
    shift[s] = ts_key_bit(3 * s);
  for (int n = 1; n <= 20; n++) {
    ts_router *r = make(TS_ROUTE_LINEAR, 64, n, shift);
    const int reach = n < 6 ? 1 << n : 64;
    assert_int_equal(ts_router_unreached(r, unreached), 64 - reach);
    uint64_t seen = 0; /* by the sums of the first six */
    for (unsigned sum = 0; sum < (n < 6 ? 1u << n : 64u); sum++) {
      ts_key key = {0, 0};
      for (int s = 0; s < n && s < 6; s++)
        if (sum >> s & 1) key = ts_key_xor(key, shift[s]);
      seen |= UINT64_C(1) << ts_router_rank(r, key);
    }
    assert_int_equal(__builtin_popcountll(seen), reach);
    for (int i = 0; i < 64 - reach; i++)
      assert_false(seen >> unreached[i] & 1);
    ts_router_destroy(&r);
  }
  /* shifts that depend on each other count once */
  const ts_key three[] = {ts_key_bit(70), ts_key_bit(9), {UINT64_C(1) << 9, UINT64_C(1) << 6}};
  ts_router *r = make(TS_ROUTE_LINEAR, 8, 3, three);
  assert_int_equal(ts_router_unreached(r, NULL), 4);
  ts_router_destroy(&r);
}

/* Values recorded once: any machine must route alike. */
static void same_everywhere(void **unused)
{
  (void)unused;
  const ts_key key = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
  const ts_key shift[] = {ts_key_bit(0), ts_key_bit(100)};
  ts_router *r = make(TS_ROUTE_LINEAR, 4096, 2, shift);
  assert_int_equal(ts_router_rank(r, key), 760);
  assert_int_equal(ts_router_partition(r, key), 29);
  assert_true(ts_router_digest(r) == UINT64_C(0xe9156f36a28ef2fa));
  ts_router_destroy(&r);
  r = make(TS_ROUTE_SPLITMIX, 1000, 0, NULL);
  assert_int_equal(ts_router_rank(r, key), 706);
  assert_true(ts_router_digest(r) == UINT64_C(0xd377a7ea1191269c));
  ts_router_destroy(&r);
}

static uint64_t digest(ts_route_params p)
{
  ts_router *r = NULL;
  assert_int_equal(ts_router_create(&p, &r), 0);
  const uint64_t d = ts_router_digest(r);
  ts_router_destroy(&r);
  return d;
}

static void digests_differ(void **unused)
{
  (void)unused;
  const ts_key shift[] = {ts_key_bit(0), ts_key_bit(1)};
  ts_route_params p[6];
  for (int i = 0; i < 6; i++)
    ts_route_params_init(&p[i], 8);
  p[1].ranks = 16;
  p[2].seed = 2;
  p[3].partitions = 2;
  p[4].mode = TS_ROUTE_SPLITMIX;
  p[5].nshift = 2;
  p[5].shift = shift;
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++)
      assert_int_equal(digest(p[i]) == digest(p[j]), i == j);
}

static void refused(void **unused)
{
  (void)unused;
  ts_route_params p;
  ts_router *r = NULL;
  for (int ranks = 0; ranks <= 1100; ranks++) {
    const bool power = ranks > 0 && !(ranks & (ranks - 1));
    ts_route_params_init(&p, ranks);
    assert_int_equal(ts_router_create(&p, &r), power ? 0 : TS_ERR_ARG);
    assert_int_equal(r != NULL, power);
    ts_router_destroy(&r);
  }
  ts_route_params_init(&p, 12);
  assert_int_equal(ts_router_create(&p, &r), TS_ERR_ARG);
  assert_non_null(strstr(ts_error_message(), "power of two of ranks, there are 12: use 8 or 16"));
  p.mode = TS_ROUTE_SPLITMIX;
  p.partitions = 0;
  assert_int_equal(ts_router_create(&p, &r), TS_ERR_ARG);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear), cmocka_unit_test(fan_out),         cmocka_unit_test(balanced),
      cmocka_unit_test(fitted), cmocka_unit_test(same_everywhere), cmocka_unit_test(digests_differ),
      cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
