/* SPDX-License-Identifier: MIT
 *
 * For the tests of Level 1: the systems of neighbor_cases.h dealt to ranks. */
#ifndef TS_TESTS_LEVEL1_CASES_H
#define TS_TESTS_LEVEL1_CASES_H

#include "tests/neighbor_cases.h"

#include "neighbor/curve.h"
#include "neighbor/level1.h"

enum { MAX_RANKS = 16, SCHEMES = 5 };

typedef struct world_case {
  search_case c; /* atoms in the order of ranks */
  int ranks;
  ts_lidx cut[MAX_RANKS + 1];
  uint8_t tag[CASE_MAX_ATOMS];
  ts_shard shard[MAX_RANKS];
} world_case;

static inline void reorder(search_case *c, const ts_lidx *order)
{
  static search_case old;
  old = *c;
  for (ts_lidx i = 0; i < c->n; i++) {
    memcpy(c->x[i], old.x[order[i]], sizeof c->x[i]);
    memcpy(c->image[i], old.image[order[i]], sizeof c->image[i]);
    c->gid[i] = old.gid[order[i]];
  }
}

/* Deal the atoms to ranks: along the curve or as they are, in equal counts or not. */
static inline void distribute(world_case *w, int ranks, bool sorted, bool equal, uint64_t *seed)
{
  search_case *c = &w->c;
  ts_lidx order[CASE_MAX_ATOMS];
  ASSERT_OK(
      ts_curve_order(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, &c->cell, c->n, c->x, c->gid, order));
  if (sorted) reorder(c, order);
  w->ranks = ranks;
  memset(w->cut, 0, sizeof w->cut);
  for (int k = 1; k <= ranks; k++)
    w->cut[k] = equal || k == ranks ? c->n * k / ranks
                                    : w->cut[k - 1] + below(seed, c->n - w->cut[k - 1] + 1);
  for (int k = 0; k < ranks; k++)
    w->shard[k] = (ts_shard){.n = w->cut[k + 1] - w->cut[k],
                             .x = (const double(*)[3])c->x + w->cut[k],
                             .gid = c->gid + w->cut[k],
                             .tag = w->tag + w->cut[k]};
  for (ts_lidx i = 0; i < c->n; i++)
    w->tag[i] = (uint8_t)(c->gid[i] * 7 + 1);
}

static inline void make(world_case *w, int kind, int ranks, uint64_t *seed)
{
  search_case *c = &w->c;
  case_make(c, kind, seed);
  const bool sorted = below(seed, 4), equal = below(seed, 3);
  distribute(w, ranks, sorted, equal, seed);
  if (kind != 8 && below(seed, 3) == 0) /* moved since they were wrapped */
    for (ts_lidx i = 0; i < c->n; i++)
      for (int k = 0; k < 3; k++)
        c->x[i][k] += uniform(seed, -0.5, 0.5);
}

/* Right atoms, in order, none of the rank's own. */
static inline void check_remote(const world_case *w, int rank, const ts_remote *r)
{
  int peers = 0;
  for (ts_lidx i = 0; i < r->n; i++) {
    const ts_lidx whole = w->cut[r->rank[i]] + r->index[i];
    assert_true(r->rank[i] != rank && r->index[i] < w->shard[r->rank[i]].n);
    assert_memory_equal(r->x[i], w->c.x[whole], sizeof r->x[i]);
    assert_int_equal(r->gid[i], w->c.gid[whole]);
    assert_int_equal(r->tag[i], w->tag[whole]);
    if (i > 0 && r->rank[i] == r->rank[i - 1]) {
      assert_true(r->index[i] > r->index[i - 1]);
      continue;
    }
    assert_true(i == 0 || r->rank[i] > r->rank[i - 1]);
    assert_int_equal(r->first[peers], i);
    assert_int_equal(r->peer[peers++], r->rank[i]);
  }
  assert_int_equal(peers, r->peers);
  assert_int_equal(r->first[peers], r->n);
}

static inline double reach_of(const world_case *w)
{
  return w->c.params.cutoff + w->c.params.skin;
}

static inline ts_level1_params params_of(int scheme, uint64_t *seed)
{
  ts_level1_params p;
  ts_level1_params_init(&p);
  p.scheme = (ts_level1_scheme)scheme;
  p.boxes = 1 + below(seed, 9);
  p.bin = below(seed, 2) ? 0 : uniform(seed, 0.5, 20);
  return p;
}

#endif
