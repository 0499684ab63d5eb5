/* SPDX-License-Identifier: MIT
 *
 * The two hashes and the fit of the linear one.  A drawn set of masks is kept when the first
 * log2(ranks) independent shifts (all, where there are fewer) have independent hashes: one draw in
 * three is good, so a few suffice, and random masks are kept for all other bits. */
#include "comm/route.h"

#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/memory.h"

struct ts_router {
  ts_route_params params;
  int bits;                        /* of a rank; linear only */
  ts_key mask[TS_MAX_RANK_BITS];   /* bit i of the rank: parity of key & mask[i] */
  int nspan;                       /* independent hashes of the shifts, reduced: each has */
  uint32_t span[TS_MAX_RANK_BITS]; /* a highest bit that no other one has set */
  uint64_t digest;
};

static uint64_t mix(uint64_t z) /* the finalizer of splitmix64 */
{
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t next(uint64_t *state)
{
  *state += UINT64_C(0x9e3779b97f4a7c15);
  return mix(*state);
}

uint64_t tsi_key_avalanche(ts_key key, uint64_t seed)
{
  uint64_t state = seed ^ key.lo;
  state = next(&state) ^ key.hi;
  return next(&state);
}

int tsi_power_of_two_below(int n)
{
  int power = 1;
  while (power <= n / 2)
    power *= 2;
  return power;
}

/* 0 <= result < n, each equally often; exact for powers of two. */
static int deal(uint64_t hash, int n)
{
  return (int)(((hash >> 32) * (uint64_t)n) >> 32);
}

static int parity(ts_key a, ts_key mask)
{
  return __builtin_parityll((a.lo & mask.lo) ^ (a.hi & mask.hi));
}

static int linear_hash(const ts_router *r, ts_key key)
{
  int hash = 0;
  for (int i = 0; i < r->bits; i++)
    hash |= parity(key, r->mask[i]) << i;
  return hash;
}

int ts_router_rank(const ts_router *router, ts_key key)
{
  if (router->params.mode == TS_ROUTE_LINEAR) return linear_hash(router, key);
  return deal(tsi_key_avalanche(key, router->params.seed), router->params.ranks);
}

int ts_router_shift(const ts_router *router, ts_key shift)
{
  return linear_hash(router, shift);
}

int ts_router_partition(const ts_router *router, ts_key key)
{
  /* another seed than the ranks', or the keys of a rank would fill few partitions */
  return deal(tsi_key_avalanche(key, ~router->params.seed), router->params.partitions);
}

static int leading(ts_key key)
{
  if (key.hi) return 127 - __builtin_clzll(key.hi);
  return key.lo ? 63 - __builtin_clzll(key.lo) : -1;
}

/* What is left of a key after the rows that lead with its leading bits: zero where it is a sum of
 * rows.  The row that leads with bit b stands at basis[b]; zero: none. */
static ts_key reduce(const ts_key *basis /* [TS_KEY_BITS] */, ts_key key)
{
  for (int top = leading(key); top >= 0 && (basis[top].lo | basis[top].hi); top = leading(key))
    key = ts_key_xor(key, basis[top]);
  return key;
}

/* The first independent shifts, at most `limit`. */
static int independent_shifts(const ts_route_params *params, int limit, ts_key *out)
{
  ts_key basis[TS_KEY_BITS] = {{0}};
  int n = 0;
  for (int s = 0; s < params->nshift && n < limit; s++) {
    const ts_key rest = reduce(basis, params->shift[s]);
    if (leading(rest) < 0) continue;
    basis[leading(rest)] = rest;
    out[n++] = params->shift[s];
  }
  return n;
}

/* Add a hash to the span; false where it lies in it already. */
static bool extend_span(ts_router *r, uint32_t hash)
{
  for (int i = 0; i < r->nspan; i++)
    if ((hash ^ r->span[i]) < hash) hash ^= r->span[i];
  if (!hash) return false;
  r->span[r->nspan++] = hash;
  return true;
}

/* Are the masks independent, so that every rank owns keys? */
static bool masks_independent(const ts_router *r)
{
  const ts_route_params rows = {.nshift = r->bits, .shift = r->mask};
  ts_key unused[TS_MAX_RANK_BITS];
  return independent_shifts(&rows, r->bits, unused) == r->bits;
}

static bool masks_fit(ts_router *r, int n, const ts_key *shift)
{
  bool fit = masks_independent(r);
  r->nspan = 0;
  for (int s = 0; fit && s < n; s++)
    fit = extend_span(r, (uint32_t)linear_hash(r, shift[s]));
  return fit;
}

static void fit_masks(ts_router *r, const ts_route_params *params)
{
  ts_key shift[TS_MAX_RANK_BITS];
  const int n = independent_shifts(params, r->bits, shift);
  uint64_t state = params->seed;
  do {
    for (int i = 0; i < r->bits; i++) {
      r->mask[i].lo = next(&state);
      r->mask[i].hi = next(&state);
    }
  } while (!masks_fit(r, n, shift));
}

static uint64_t digest_of(const ts_router *r, const ts_route_params *params)
{
  uint64_t digest = mix((uint64_t)params->mode + 1);
  const uint64_t settings[] = {(uint64_t)params->ranks, (uint64_t)params->partitions, params->seed,
                               (uint64_t)params->nshift};
  for (int i = 0; i < 4; i++)
    digest = mix(digest + settings[i]);
  for (int s = 0; s < params->nshift; s++)
    digest = tsi_key_avalanche(params->shift[s], digest);
  for (int i = 0; i < r->bits; i++)
    digest = tsi_key_avalanche(r->mask[i], digest);
  return digest;
}

static int check(const ts_route_params *p)
{
  if (p->ranks < 1 || p->ranks > 1 << TS_MAX_RANK_BITS)
    return tsi_fail(TS_ERR_ARG, "routing over %d ranks: expected 1 to %d", p->ranks,
                    1 << TS_MAX_RANK_BITS);
  if (p->partitions < 1)
    return tsi_fail(TS_ERR_ARG, "routing to %d partitions: expected at least 1", p->partitions);
  if (p->mode == TS_ROUTE_LINEAR && (p->ranks & (p->ranks - 1)))
    return tsi_fail(TS_ERR_ARG,
                    "linear routing needs a power of two of ranks, there are %d: use %d or %d "
                    "ranks, or the mode splitmix",
                    p->ranks, tsi_power_of_two_below(p->ranks),
                    2 * tsi_power_of_two_below(p->ranks));
  return 0;
}

int ts_router_create(const ts_route_params *params, ts_router **out)
{
  *out = NULL;
  TS_TRY(check(params));
  TS_TRY(TSI_NEW(*out, 1));
  ts_router *r = *out;
  r->params = *params;
  r->params.shift = NULL;
  if (params->mode == TS_ROUTE_LINEAR) {
    while (1 << r->bits < params->ranks)
      r->bits++;
    fit_masks(r, params);
  }
  r->digest = digest_of(r, params);
  return 0;
}

void ts_router_destroy(ts_router **router)
{
  free(*router);
  *router = NULL;
}

const ts_route_params *ts_router_params(const ts_router *router)
{
  return &router->params;
}

int ts_router_unreached(const ts_router *router, int *rank)
{
  const ts_route_params *p = &router->params;
  if (p->mode != TS_ROUTE_LINEAR || p->nshift == 0) return 0;
  int n = 0;
  for (int k = 0; k < p->ranks; k++) {
    ts_router trial = *router;
    if (!extend_span(&trial, (uint32_t)k)) continue;
    if (rank) rank[n] = k;
    n++;
  }
  return n;
}

uint64_t ts_router_digest(const ts_router *router)
{
  return router->digest;
}
