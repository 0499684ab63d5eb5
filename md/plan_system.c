/* SPDX-License-Identifier: MIT
 *
 * Generated systems.  What matters to a plan is how many atoms are where, so water is rigid
 * molecules of random orientation on a cubic lattice whose sites are jittered and thinned evenly
 * to the number wanted; nothing is relaxed.  Random numbers come from a counter, atom by atom, so a
 * system depends on its recipe alone. */
#include "md/plan_system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/peers.h"
#include "md/xyz.h"
#include "neighbor/partition.h"
#include "neighbor/sort.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { HYDROGEN = 1, OXYGEN = 8, CHLORINE = 17, POTASSIUM = 19 };

static const double ball_density = 2.4, ball_share = 0.2; /* of a blob */
static const double vacuum = 3; /* of slabs and droplets: cell over what it holds, in length */
static const double bond = 0.96, half_angle = 0.9119; /* of water [Å, rad] */

/* splitmix64 */
static double draw(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return ldexp((double)((z ^ z >> 31) >> 11), -53);
}

static int reserve(ts_plan_atoms *a, ts_lidx n)
{
  a->n = n;
  TS_TRY(TSI_NEW(a->x, n));
  TS_TRY(TSI_NEW(a->gid, n));
  TS_TRY(TSI_NEW(a->z, n));
  TS_TRY(TSI_NEW(a->key, n));
  for (ts_lidx i = 0; i < n; i++)
    a->gid[i] = i;
  return 0;
}

void ts_plan_atoms_free(ts_plan_atoms *a)
{
  free(a->x);
  free(a->gid);
  free(a->z);
  free(a->key);
  *a = (ts_plan_atoms){.n = 0};
}

/* Where the atoms are to be: a box from the origin of the cell, or the ball inside it. */
typedef struct region {
  double low[3], side[3];
  bool ball;
} region;

static bool inside(const region *r, const double x[3])
{
  double d2 = 0;
  for (int k = 0; k < 3; k++)
    d2 += pow((x[k] - r->low[k]) / r->side[k] - 0.5, 2);
  return !r->ball || d2 < 0.25;
}

static int make_cell(const ts_plan_recipe *p, region *r, ts_cell *cell)
{
  const double volume = p->atoms / p->density, unit = cbrt(volume / p->units);
  const double along = pow(p->units, 1.0 / p->grow);
  double h[3][3] = {{0}};
  bool periodic[3] = {true, true, p->kind != TS_PLAN_SLAB};
  *r = (region){.ball = p->kind == TS_PLAN_DROPLET};
  for (int k = 0; k < 3; k++) {
    r->side[k] = k < p->grow ? unit * along : unit;
    h[k][k] = r->side[k];
  }
  if (p->kind == TS_PLAN_SLAB) h[2][2] *= vacuum;
  for (int k = 0; k < 3 && r->ball; k++) {
    r->side[k] = cbrt(6 * volume / M_PI);
    h[k][k] = vacuum * r->side[k];
  }
  for (int k = 0; k < 3; k++)
    r->low[k] = (h[k][k] - r->side[k]) / 2;
  return ts_cell_init(cell, (const double(*)[3])h, periodic);
}

static void scatter(const region *r, ts_lidx first, ts_lidx last, uint64_t *seed, ts_plan_atoms *a)
{
  for (ts_lidx i = first; i < last; i++) {
    a->z[i] = OXYGEN;
    do
      for (int k = 0; k < 3; k++)
        a->x[i][k] = r->low[k] + draw(seed) * r->side[k];
    while (!inside(r, a->x[i]));
  }
}

/* Water at random places around a ball that is denser. */
static void fill_blob(const ts_plan_recipe *p, const region *all, uint64_t *seed, ts_plan_atoms *a)
{
  const ts_lidx within = (ts_lidx)(ball_share * p->atoms);
  const double width = cbrt(6 * within / (M_PI * ball_density * p->density));
  region ball = {.ball = true};
  for (int k = 0; k < 3; k++) {
    ball.side[k] = width;
    ball.low[k] = (a->cell.h[k][k] - width) / 2;
  }
  scatter(&ball, 0, within, seed, a);
  for (ts_lidx i = within; i < p->atoms; i++)
    do
      scatter(all, i, i + 1, seed, a);
    while (inside(&ball, a->x[i]));
}

/* A molecule at random orientation: atoms i, i+1, i+2, as far as there is room. */
static void put_water(const double at[3], ts_lidx i, uint64_t *seed, ts_plan_atoms *a)
{
  const double cosine = 2 * draw(seed) - 1, sine = sqrt(1 - cosine * cosine);
  const double turn = 2 * M_PI * draw(seed), spin = 2 * M_PI * draw(seed);
  const double u[3] = {sine * cos(turn), sine * sin(turn), cosine};
  const double e[3] = {cosine * cos(turn), cosine * sin(turn), -sine};
  const double f[3] = {-sin(turn), cos(turn), 0};
  for (int m = 0; m < 3 && i + m < a->n; m++) {
    const double side = m == 0 ? 0 : m == 1 ? 1 : -1, up = m == 0 ? 0 : 1;
    a->z[i + m] = m == 0 ? OXYGEN : HYDROGEN;
    for (int k = 0; k < 3; k++)
      a->x[i + m][k] =
          at[k] + bond * (up * cos(half_angle) * u[k] +
                          side * sin(half_angle) * (cos(spin) * e[k] + sin(spin) * f[k]));
  }
}

/* One site in 27 (8 of the example's 216) holds an ion, the kinds in turns. */
static bool is_ion(const ts_plan_recipe *p, int64_t molecule)
{
  return p->kind == TS_PLAN_SALT_WATER && molecule % 27 == 13;
}

static int64_t count_molecules(const ts_plan_recipe *p)
{
  int64_t atoms = 0, m = 0;
  while (atoms < p->atoms)
    atoms += is_ion(p, m++) ? 1 : 3;
  return m;
}

/* Molecules on evenly chosen sites of a lattice with as few too many as can be. */
static void fill_water(const ts_plan_recipe *p, const region *r, uint64_t *seed, ts_plan_atoms *a)
{
  const int64_t molecules = count_molecules(p);
  const double part = r->ball ? M_PI / 6 : 1; /* of the box, that the ball fills */
  const double spacing = cbrt(r->side[0] * r->side[1] * r->side[2] * part / (double)molecules);
  int64_t sites = 0, seen = 0, m = 0, per[3];
  ts_lidx i = 0;
  for (double fine = spacing;; fine *= 0.999) {
    sites = 0;
    for (int k = 0; k < 3; k++)
      per[k] = (int64_t)fmax(1, floor(r->side[k] / fine));
    for (int64_t s = 0; s < per[0] * per[1] * per[2]; s++) {
      double at[3];
      const int64_t c[3] = {s / (per[1] * per[2]), s / per[2] % per[1], s % per[2]};
      for (int k = 0; k < 3; k++)
        at[k] = r->low[k] + ((double)c[k] + 0.5) * r->side[k] / (double)per[k];
      sites += inside(r, at);
    }
    if (sites >= molecules) break;
  }
  for (int64_t s = 0; i < a->n; s++) {
    double at[3];
    const int64_t c[3] = {s / (per[1] * per[2]), s / per[2] % per[1], s % per[2]};
    for (int k = 0; k < 3; k++)
      at[k] = r->low[k] + ((double)c[k] + 0.5) * r->side[k] / (double)per[k];
    if (!inside(r, at)) continue;
    seen++;
    if (seen * molecules / sites == (seen - 1) * molecules / sites) continue; /* thinned out */
    for (int k = 0; k < 3; k++)
      at[k] += 0.3 * (draw(seed) - 0.5) * r->side[k] / (double)per[k];
    if (is_ion(p, m)) {
      a->z[i] = m / 27 % 2 ? POTASSIUM : CHLORINE;
      memcpy(a->x[i++], at, sizeof at);
    } else {
      put_water(at, i, seed, a);
      i = i + 3 < a->n ? i + 3 : a->n;
    }
    m++;
  }
}

static int check(const ts_plan_recipe *p)
{
  if (p->atoms < 1) return tsi_fail(TS_ERR_ARG, "%d atoms; expected at least 1", p->atoms);
  if (!(p->density > 0 && p->density < 100))
    return tsi_fail(TS_ERR_ARG, "a density of %g atoms per Å^3; expected above 0, below 100",
                    p->density);
  if (p->grow < 1 || p->grow > 3 || !(p->units >= 1))
    return tsi_fail(TS_ERR_ARG, "%g unit cells along %d axes; expected 1 to 3 axes", p->units,
                    p->grow);
  return 0;
}

/* Into the cell; a position is never moved by more than a period or two. */
static int wrap(ts_plan_atoms *a)
{
  enum { BLOCK = 4096 };
  static int32_t image[BLOCK][3];
  for (ts_lidx i = 0; i < a->n; i += BLOCK)
    TS_TRY(ts_cell_wrap(&a->cell, a->n - i < BLOCK ? a->n - i : BLOCK, a->x + i, image));
  return 0;
}

int ts_plan_atoms_generate(const ts_plan_recipe *p, ts_plan_atoms *out)
{
  uint64_t seed = p->seed;
  region where;
  *out = (ts_plan_atoms){.n = 0};
  TS_TRY(check(p));
  int status = make_cell(p, &where, &out->cell);
  if (!status) status = reserve(out, p->atoms);
  if (!status) {
    if (p->kind == TS_PLAN_UNIFORM)
      scatter(&where, 0, out->n, &seed, out);
    else if (p->kind == TS_PLAN_BLOB)
      fill_blob(p, &where, &seed, out);
    else
      fill_water(p, &where, &seed, out);
    status = wrap(out);
  }
  if (status) ts_plan_atoms_free(out);
  return status;
}

/* ---- from a file ---- */

static int repeat(const ts_system *one, const int times[3], ts_plan_atoms *out)
{
  const double copies = (double)times[0] * times[1] * times[2];
  double h[3][3];
  if (copies * one->n > INT32_MAX)
    return tsi_fail(TS_ERR_UNSUPPORTED, "%.0f atoms; expected at most %d", copies * one->n,
                    INT32_MAX);
  for (int k = 0; k < 3; k++)
    for (int m = 0; m < 3; m++)
      h[k][m] = times[k] * one->cell.h[k][m];
  TS_TRY(ts_cell_init(&out->cell, (const double(*)[3])h, one->cell.periodic));
  TS_TRY(reserve(out, one->n * (ts_lidx)copies));
  for (ts_lidx i = 0; i < out->n; i++) {
    const ts_lidx from = i % one->n, c = i / one->n;
    const int32_t at[3] = {c % times[0], c / times[0] % times[1], c / times[0] / times[1]};
    double shift[3];
    ts_cell_shift(&one->cell, at, shift);
    for (int k = 0; k < 3; k++)
      out->x[i][k] = one->x[from][k] + shift[k];
    out->z[i] = one->z[from];
  }
  return wrap(out);
}

int ts_plan_atoms_read(const char *path, const int times[3], ts_plan_atoms *out)
{
  const ts_ranks alone = ts_ranks_virtual(1);
  ts_system *one = NULL;
  *out = (ts_plan_atoms){.n = 0};
  TS_TRY(ts_xyz_read(&alone, path, &one));
  int status = 0;
  for (int k = 0; k < 3 && !status; k++)
    if (times[k] > 1 && !one->cell.periodic[k])
      status = tsi_fail(TS_ERR_INPUT, "%s: --repeat %d,%d,%d, but %c is not periodic", path,
                        times[0], times[1], times[2], "abc"[k]);
  if (!status) status = repeat(one, times, out);
  ts_system_destroy(&one);
  if (status) ts_plan_atoms_free(out);
  return status;
}

/* ---- along a curve ---- */

/* New arrays: one at a time, so that memory peaks one array above what is kept. */
static int permute(ts_plan_atoms *a, const ts_lidx *order)
{
  ts_plan_atoms to = {.n = 0};
  TS_TRY(TSI_NEW(to.x, a->n));
  for (ts_lidx i = 0; i < a->n; i++)
    memcpy(to.x[i], a->x[order[i]], sizeof to.x[i]);
  free(a->x);
  a->x = to.x;
  TS_TRY(TSI_NEW(to.gid, a->n));
  for (ts_lidx i = 0; i < a->n; i++)
    to.gid[i] = a->gid[order[i]];
  free(a->gid);
  a->gid = to.gid;
  TS_TRY(TSI_NEW(to.key, a->n));
  for (ts_lidx i = 0; i < a->n; i++)
    to.key[i] = a->key[order[i]];
  free(a->key);
  a->key = to.key;
  TS_TRY(TSI_NEW(to.z, a->n));
  for (ts_lidx i = 0; i < a->n; i++)
    to.z[i] = a->z[order[i]];
  free(a->z);
  a->z = to.z;
  return 0;
}

int ts_plan_atoms_sort(ts_plan_atoms *a, const ts_partition_params *partition)
{
  const ts_ranks alone = ts_ranks_virtual(1);
  const ts_shard shard = {.n = a->n, .x = (const double(*)[3])a->x, .gid = a->gid};
  ts_lidx *order = NULL;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(order, a->n), done);
  for (ts_lidx i = 0; i < a->n; i++)
    order[i] = i;
  TS_TRY_GOTO(status, tsi_sort_order(a->n, (const uint64_t *)a->gid, order), done); /* ties */
  TS_TRY_GOTO(status, ts_partition_keys(&alone, partition, &a->cell, &shard, &a->key), done);
  TS_TRY_GOTO(status, tsi_sort_order(a->n, a->key, order), done);
  status = permute(a, order);
done:
  free(order);
  return status;
}
