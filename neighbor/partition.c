/* SPDX-License-Identifier: MIT
 *
 * Keys, what is to be cut where, and the owners that follow from the cuts.  Weights are counted in
 * whole numbers, so that sums over ranks do not depend on who adds what first.  A cut by weight is
 * searched where the weights want it; if a rank would overflow, again with light atoms raised; and
 * if rounding still leaves an interval empty or beyond its capacity, those places (counted in
 * atoms) are moved and searched once more. */
#include "neighbor/partition.h"

#include <math.h>
#include <stdlib.h>

#include "comm/sparse.h"
#include "neighbor/partition_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

int ts_partition_keys(const ts_ranks *ranks, const ts_partition_params *params, const ts_cell *cell,
                      const ts_shard *shard, uint64_t *const *key)
{
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  for (int h = 0; h < ranks->hosted; h++)
    ts_curve_extent(cell, shard[h].n, shard[h].x, low, high);
  double ends[6] = {-low[0], -low[1], -low[2], high[0], high[1], high[2]};
  ts_ranks process = *ranks; /* its hosted ranks are in these already */
  process.hosted = 1;
  TS_TRY(ts_ranks_max(&process, 6, ends));
  for (int k = 0; k < 3; k++) {
    low[k] = -ends[k];
    high[k] = ends[3 + k];
  }
  for (int h = 0; h < ranks->hosted; h++)
    ts_curve_keys_within(params->curve, params->normalization, cell, low, high, shard[h].n,
                         shard[h].x, key[h]);
  return 0;
}

static int whole_weight(double weight, ts_gidx gid, int32_t *out)
{
  if (!(weight >= 0 && weight <= 1e9))
    return tsi_fail(TS_ERR_ARG, "atom %lld has the weight %g; expected 0 to 1e9",
                    (long long)gid + 1, weight);
  *out = weight < 1 ? 1 : (int32_t)lround(weight);
  return 0;
}

/* All atoms of this process in one list. */
static int collect(const ts_ranks *ranks, const ts_shard *shard, const uint64_t *const *key,
                   const double *const *weight, int64_t *first, tsi_cut_atom **out)
{
  for (int h = 0; h < ranks->hosted; h++)
    first[h + 1] = first[h] + shard[h].n;
  TS_TRY(TSI_NEW(*out, first[ranks->hosted]));
  for (int h = 0; h < ranks->hosted; h++)
    for (ts_lidx i = 0; i < shard[h].n; i++) {
      tsi_cut_atom *a = &(*out)[first[h] + i];
      *a = (tsi_cut_atom){.key = key[h][i], .gid = (uint64_t)shard[h].gid[i], .weight = 1};
      if (weight && weight[h]) TS_TRY(whole_weight(weight[h][i], shard[h].gid[i], &a->weight));
    }
  return 0;
}

/* Cut k of `parts` equal parts of `total`: floor(k total / parts). */
static void even_targets(int64_t total, int parts, int64_t *target)
{
  for (int k = 1; k < parts; k++)
    target[k - 1] = total / parts * k + total % parts * k / parts;
}

/* Move cuts, counted in atoms, to the nearest places behind the one before that leave every rank
 * 1 to `most` atoms. */
static void fit_capacity(int64_t n, int parts, int64_t most, const tsi_cut *cut, int64_t *target)
{
  int64_t last = 0;
  for (int k = 1; k < parts; k++) {
    const int64_t rest = parts - k;
    const int64_t low = last + 1 > n - rest * most ? last + 1 : n - rest * most;
    const int64_t high = last + most < n - rest ? last + most : n - rest;
    const int64_t wish = cut[k - 1].before;
    last = wish < low ? low : wish > high ? high : wish;
    target[k - 1] = last;
  }
}

static int64_t capacity(const ts_partition_params *params, int64_t n, int parts)
{
  const int64_t least = (n + parts - 1) / parts;
  const double most = floor((1 + params->slack) * (double)n / parts);
  return most > (double)n ? n : most > (double)least ? (int64_t)most : least;
}

static int find(const ts_partition_params *params, const tsi_cut_problem *problem, tsi_cut *cut)
{
  return params->root_sort ? tsi_cut_root(problem, cut) : tsi_cut_count(problem, cut);
}

/* Whether every rank has 1 to `most` atoms. */
static bool within_capacity(int64_t n, int cuts, int64_t most, const tsi_cut *cut)
{
  int64_t last = 0;
  for (int k = 0; k <= cuts; k++) {
    const int64_t end = k < cuts ? cut[k].before : n;
    if (end <= last || end - last > most) return false;
    last = end;
  }
  return true;
}

static int sum_weights(const tsi_cut_problem *problem, int64_t *sum)
{
  ts_ranks process = *problem->ranks;
  process.hosted = 1;
  *sum = 0;
  for (int64_t i = 0; i < problem->first[problem->ranks->hosted]; i++)
    *sum += problem->atom[i].weight;
  return ts_ranks_sum_i64(&process, 1, sum);
}

/* No atom counts less than 1/most of a rank's share, so that no share has more than `most` atoms.
 * Raising atoms raises the share; the rounds converge, as `parts * most` atoms are more than there
 * are, and where they are hardly more the last rounds hardly matter. */
static int raise_light_atoms(tsi_cut_problem *problem, int parts, int64_t most, int64_t *total)
{
  int64_t before = 0;
  for (int round = 0; round < 64 && *total != before; round++) {
    const int64_t least = (*total + parts * most - 1) / (parts * most);
    for (int64_t i = 0; i < problem->first[problem->ranks->hosted]; i++)
      if (problem->atom[i].weight < least) problem->atom[i].weight = (int32_t)least;
    before = *total;
    TS_TRY(sum_weights(problem, total));
  }
  return 0;
}

/* Cuts at even weight, once the capacity has been made to hold. */
static int cut_by_weight(const ts_partition_params *params, tsi_cut_problem *problem, int64_t n,
                         int64_t *target, tsi_cut *cut)
{
  const int parts = problem->cuts + 1;
  const int64_t most = capacity(params, n, parts);
  int64_t total;
  TS_TRY(sum_weights(problem, &total));
  even_targets(total, parts, target);
  TS_TRY(find(params, problem, cut));
  if (within_capacity(n, problem->cuts, most, cut)) return 0;

  TS_TRY(raise_light_atoms(problem, parts, most, &total));
  even_targets(total, parts, target);
  TS_TRY(find(params, problem, cut));
  if (within_capacity(n, problem->cuts, most, cut)) return 0;

  fit_capacity(n, parts, most, cut, target);
  problem->weighted = false;
  for (int64_t i = 0; i < problem->first[problem->ranks->hosted]; i++)
    problem->atom[i].weight = 1;
  return find(params, problem, cut);
}

static int find_cuts(const ts_partition_params *params, tsi_cut_problem *problem, int64_t *target,
                     tsi_cut *cut)
{
  ts_ranks process = *problem->ranks;
  process.hosted = 1;
  int64_t n = problem->first[problem->ranks->hosted];
  TS_TRY(ts_ranks_sum_i64(&process, 1, &n));
  if (n < process.size)
    return tsi_fail(TS_ERR_ARG, "%lld atoms on %d ranks: expected at least one atom per rank",
                    (long long)n, process.size);
  if (problem->weighted) return cut_by_weight(params, problem, n, target, cut);
  even_targets(n, process.size, target);
  return find(params, problem, cut);
}

/* The number of cuts that are not behind an atom. */
static int32_t owner_of(int cuts, const tsi_cut *cut, uint64_t key, uint64_t gid)
{
  int32_t low = 0, high = cuts;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const tsi_cut *c = &cut[middle];
    if (c->key < key || (c->key == key && c->gid <= gid))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int ts_partition_cut(const ts_ranks *ranks, const ts_partition_params *params,
                     const ts_shard *shard, const uint64_t *const *key, const double *const *weight,
                     int32_t *const *owner)
{
  const int cuts = ranks->size - 1;
  int64_t *first = NULL, *target = NULL;
  tsi_cut_atom *atom = NULL;
  tsi_cut *cut = NULL;
  int status = TSI_NEW(first, ranks->hosted + 1);
  if (!status) status = TSI_NEW(target, cuts);
  if (!status) status = TSI_NEW(cut, cuts);
  if (!status) status = collect(ranks, shard, key, weight, first, &atom);
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, status), done);
  tsi_cut_problem problem = {.ranks = ranks,
                             .first = first,
                             .atom = atom,
                             .weighted = weight,
                             .cuts = cuts,
                             .target = target};
  TS_TRY_GOTO(status, find_cuts(params, &problem, target, cut), done);
  for (int h = 0; h < ranks->hosted; h++)
    for (ts_lidx i = 0; i < shard[h].n; i++)
      owner[h][i] = owner_of(cuts, cut, key[h][i], (uint64_t)shard[h].gid[i]);
done:
  free(first);
  free(target);
  free(atom);
  free(cut);
  return status;
}
