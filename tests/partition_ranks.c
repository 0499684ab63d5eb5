/* SPDX-License-Identifier: MIT
 *
 * Partition and migration over the real ranks that mpirun started: wherever the atoms are at first,
 * rank r ends with its interval of the order that one rank gives to all atoms, whole in everything
 * that an atom has; cuts by weight and by a sort on rank 0 agree with virtual ranks. */
#include <stdio.h>

#include "comm/sparse.h"
#include "comm/world.h"
#include "md/migrate.h"
#include "neighbor/partition.h"
#include "tests/neighbor_cases.h"
#include "tests/ranks_watchdog.h"

enum { MOST = 3000 };

static int failures;

static void check(bool ok, const char *what, int round)
{
  if (ok) return;
  fprintf(stderr, "round %d: %s (%s)\n", round, what, ts_error_message());
  failures++;
}

/* All atoms, known to every rank; atom i has the id i. */
static double place[MOST][3];
static uint64_t key_of[MOST];
static ts_gidx id[MOST];
static double weight_of[MOST];

static void draw(uint64_t *state, int round, int n, ts_cell *cell)
{
  const bool periodic[3] = {true, round % 2 == 0, round % 3 == 0};
  const double h[3][3] = {{20, 0, 0}, {round % 4 ? 0 : 7, 15, 0}, {-3, 2, 30}};
  check(ts_cell_init(cell, h, periodic) == 0, "cell", round);
  for (int i = 0; i < n; i++) {
    const double f[3] = {uniform(state, 0, 1), uniform(state, 0, 1), uniform(state, 0, 1)};
    for (int k = 0; k < 3; k++)
      place[i][k] = f[0] * h[0][k] + f[1] * h[1][k] + f[2] * h[2][k];
    if (round % 5 == 1) memcpy(place[i], place[below(state, i + 1)], sizeof place[i]); /* ties */
    id[i] = i;
    weight_of[i] = below(state, 100);
  }
  ts_curve_keys(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, cell, n, (const double(*)[3])place, key_of);
}

/* An atom's other quantities follow from its id. */
static double quantity(ts_gidx gid, int k)
{
  return 1 + (double)gid * 0.25 + k;
}

/* This rank's share: a slice, everything on one rank, or by chance. */
static ts_system *share(const ts_ranks *ranks, int round, int n, const ts_cell *cell)
{
  ts_system *s = NULL;
  uint64_t deal = (uint64_t)round;
  if (ts_system_create(n, n, &s)) return NULL;
  s->cell = *cell;
  s->n = 0;
  for (int i = 0; i < n; i++) {
    const int chance = below(&deal, ranks->size);
    const int at = round % 3 == 0   ? (int)((int64_t)i * ranks->size / n)
                   : round % 3 == 1 ? ranks->size - 1
                                    : chance;
    if (at != ranks->first) continue;
    const ts_lidx k = s->n++;
    s->gid[k] = i;
    memcpy(s->x[k], place[i], sizeof place[i]);
    for (int m = 0; m < 3; m++) {
      s->v[k][m] = quantity(i, m);
      s->image[k][m] = i * 3 + m;
    }
    s->mass[k] = quantity(i, 3);
    s->z[k] = (uint8_t)(1 + i % 100);
  }
  return s;
}

static bool whole(const ts_system *s, ts_lidx k, ts_gidx i)
{
  bool same = s->gid[k] == i && memcmp(s->x[k], place[i], sizeof place[i]) == 0 &&
              s->mass[k] == quantity(i, 3) && s->z[k] == 1 + i % 100;
  for (int m = 0; m < 3; m++)
    same = same && s->v[k][m] == quantity(i, m) && s->image[k][m] == i * 3 + m;
  return same;
}

/* Owners by as many virtual ranks, all atoms on the first. */
static void virtual_owners(int ranks, int n, const ts_partition_params *params, bool weighted,
                           int32_t *owner)
{
  const ts_ranks virtual = ts_ranks_virtual(ranks);
  ts_shard shard[64] = {{.n = n, .x = (const double(*)[3])place, .gid = id}};
  const uint64_t *key[64] = {key_of};
  const double *weight[64] = {weight_of};
  int32_t *out[64] = {owner};
  check(ts_partition_cut(&virtual, params, shard, key, weighted ? weight : NULL, out) == 0,
        "cut on virtual ranks", n);
}

/* Keys, cut, migration, as a run does them. */
static int partition(const ts_ranks *ranks, const ts_partition_params *params, bool weighted,
                     ts_system *s, uint64_t **key)
{
  const ts_shard shard = {.n = s->n, .x = (const double(*)[3])s->x, .gid = s->gid};
  int32_t *owner = malloc((size_t)s->n * sizeof *owner + 1);
  double *weight = malloc((size_t)s->n * sizeof *weight + 1);
  *key = malloc((size_t)s->n * sizeof **key + 1);
  for (ts_lidx i = 0; i < s->n; i++)
    weight[i] = weight_of[s->gid[i]];
  int status = ts_partition_keys(ranks, params, &s->cell, &shard, key);
  const uint64_t *const keys[] = {*key};
  const double *const weights[] = {weight};
  if (!status)
    status = ts_partition_cut(ranks, params, &shard, keys, weighted ? weights : NULL, &owner);
  if (!status) status = ts_system_migrate(s, ranks, key, owner);
  free(owner);
  free(weight);
  return status;
}

static void run(const ts_ranks *ranks, int round, int n, uint64_t *state)
{
  static int32_t owner[MOST];
  static ts_lidx order[MOST];
  const bool weighted = round % 4 == 3;
  const ts_partition_params params = {.root_sort = round % 7 == 2, .slack = 0.3};
  const ts_partition_params counting = {.slack = 0.3};
  ts_cell cell;
  uint64_t *key = NULL;
  draw(state, round, n, &cell);
  ts_system *s = share(ranks, round, n, &cell);
  if (!s) return check(false, "system", round);
  check(partition(ranks, &params, weighted, s, &key) == 0, "partition", round);
  virtual_owners(ranks->size, n, &counting, weighted, owner);
  check(ts_curve_order(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, &cell, n, (const double(*)[3])place, id,
                       order) == 0,
        "order", round);
  ts_lidx at = 0;
  for (int k = 0; k < n && !failures; k++) {
    if (owner[order[k]] != ranks->first) continue;
    check(at < s->n && whole(s, at, order[k]) && key[at] == key_of[order[k]], "an atom", round);
    at++;
  }
  check(at == s->n, "atoms that are another's", round);
  if (!weighted) {
    const int64_t r = ranks->first, all = ranks->size;
    check(s->n == n * (r + 1) / all - n * r / all, "number of atoms", round);
  }
  free(key);
  ts_system_destroy(&s);
}

/* The last rank's error is everybody's, and nobody's atoms have changed. */
static void refused(const ts_ranks *ranks, uint64_t *state)
{
  ts_cell cell;
  int32_t owner[MOST] = {0};
  uint64_t *key = calloc(MOST, sizeof *key);
  draw(state, 0, 50, &cell);
  ts_system *s = share(ranks, 0, 50, &cell);
  if (!s || !key) return check(false, "system", 0);
  const ts_lidx before = s->n;
  if (ranks->first == ranks->size - 1) owner[0] = ranks->size;
  check(ts_system_migrate(s, ranks, &key, owner) == TS_ERR_ARG && s->n == before, "bad owner", 0);
  free(key);
  ts_system_destroy(&s);
}

int main(void)
{
  ts_world *world = NULL;
  ts_ranks ranks;
  uint64_t state = 5;
  ranks_watchdog(100);
  if (ts_world_create(&world)) return 1;
  check(ts_ranks_of(ts_world_comm(world), &ranks) == 0, "ranks of the world", 0);
  for (int round = 0; round < 60 && !failures; round++) {
    const int n = round % 6 == 0   ? ranks.size
                  : round % 6 == 1 ? ranks.size + below(&state, ranks.size)
                                   : ranks.size + below(&state, MOST - ranks.size);
    run(&ranks, round, n, &state);
  }
  refused(&ranks, &state);
  ts_world_destroy(&world);
  return failures > 0;
}
