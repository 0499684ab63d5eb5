/* SPDX-License-Identifier: MIT
 *
 * Epochs are exact: how often edges are rebuilt, and how far the skin reaches, changes nothing.
 * Hot water runs with a rebuild on every tenth step; others follow on the same positions with a
 * rebuild on every step, or hardly ever.  At each of 200 steps and in both stages the active edges
 * are the same set and forces agree to 1e-12 eV/Å in double, 7e-7 in float.  Runs that each go
 * their own way are compared too, but only as far as chaos allows.  A bound on the number of
 * neighbours, which picks the nearest in every step, does not disturb any of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "comm/peers.h"
#include "md/velocities.h"
#include "md/xyz.h"
#include "models/tensors.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "tests/case.h"

enum { STEPS = 200, BOUNDED_STEPS = 80 /* the model was not made for a bound: it heats up */ };

static const ts_motion motion = {.timestep = 0.5};

/* A system of its own with its step. */
typedef struct run {
  ts_system *system;
  ts_step *step;
  double (*f)[3]; /* [n,3] by gid */
} run;

static ts_system *hot_water(void)
{
  ts_system *system;
  const ts_ranks alone = ts_ranks_virtual(1);
  ts_velocity_sums sums = {0};
  char path[1024];
  snprintf(path, sizeof path, "%s/water-21.xyz", case_data());
  must(ts_xyz_read(&alone, path, &system));
  ts_velocities_draw(1, system->n, system->gid, system->mass, system->v, &sums);
  ts_velocities_settle(600, &sums, system->n, system->v);
  return system;
}

/* `most`: only so many nearest senders, 0: all. */
static ts_model *water_model(const ts_system *system, bool is_double, int most)
{
  golden_case c = {.system = (ts_system *)system};
  must(ts_model_load(TS_SOURCE_TREE "/examples/salt-water/salt-water-small.safetensors", false,
                     &c.desc, &c.weights));
  for (int k = 0; k < c.desc.nstages; k++)
    c.desc.stage[k].max_neighbors = most;
  ts_model *model = case_model(&c, is_double);
  ts_weights_destroy(&c.weights);
  return model;
}

static void evaluate(run *r, int64_t number)
{
  ts_partial total;
  must(ts_step_evaluate(r->step, number, &total));
  case_results(r->step, r->system, NULL, r->f);
}

static void advance(run *r, int64_t number)
{
  ts_partial total;
  must(ts_step_advance(r->step, &motion, number, &total));
  case_results(r->step, r->system, NULL, r->f);
}

static run run_create(const ts_model *model, const ts_system *system, double skin, int64_t rebuild)
{
  run r = {.system = case_copy(system)};
  ts_step_params params = case_params(model, skin);
  params.rebuild = rebuild;
  must(TSI_NEW(r.f, system->n));
  must(ts_step_create(&params, r.system, &r.step));
  evaluate(&r, 0);
  return r;
}

static void run_release(run *r)
{
  ts_step_destroy(&r->step);
  ts_system_destroy(&r->system);
  free(r->f);
}

/* Where an atom would be without periods. */
static void unwrapped(const ts_system *system, ts_lidx i, double x[3])
{
  ts_cell_shift(&system->cell, system->image[i], x);
  for (int k = 0; k < 3; k++)
    x[k] += system->x[i][k];
}

/* Go where the leader is, in periods of one's own, and evaluate. */
static void follow(run *r, const run *leader, int64_t number)
{
  const ts_system *from = leader->system;
  ts_system *to = r->system;
  ts_lidx *where;
  must(TSI_NEW(where, from->n));
  for (ts_lidx i = 0; i < from->n; i++)
    where[from->gid[i]] = i;
  for (ts_lidx i = 0; i < to->n; i++) {
    const ts_lidx j = where[to->gid[i]];
    int32_t image[3];
    double shift[3];
    for (int k = 0; k < 3; k++)
      image[k] = from->image[j][k] - to->image[i][k];
    ts_cell_shift(&to->cell, image, shift);
    for (int k = 0; k < 3; k++)
      to->x[i][k] = from->x[j][k] + shift[k];
  }
  free(where);
  evaluate(r, number);
}

static void expect_same_edges(const run *a, const run *b, int64_t number)
{
  for (int stage = 0; stage < 2; stage++) {
    uint64_t hash[2];
    int64_t count[2];
    must(ts_step_topology(a->step, stage, &hash[0], &count[0]));
    must(ts_step_topology(b->step, stage, &hash[1], &count[1]));
    if (hash[0] != hash[1] || count[0] != count[1])
      fail_msg("step %d, stage %d: %d and %d active edges, not the same", (int)number, stage,
               (int)count[0], (int)count[1]);
  }
}

static double difference(const run *a, const run *b)
{
  return case_difference(3 * (size_t)a->system->n, a->f[0], b->f[0]);
}

/* Largest distance between the same atom in two runs, periods counted [Å]. */
static double apart(const run *a, const run *b)
{
  double worst = 0;
  for (ts_lidx i = 0; i < a->system->n; i++)
    for (ts_lidx j = 0; j < b->system->n; j++) {
      if (a->system->gid[i] != b->system->gid[j]) continue;
      double x[2][3];
      unwrapped(a->system, i, x[0]);
      unwrapped(b->system, j, x[1]);
      worst = fmax(worst, case_difference(3, x[0], x[1]));
    }
  return worst;
}

static int64_t rebuilds(const run *r)
{
  const ts_step_stats stats = ts_step_statistics(r->step);
  return stats.rebuilds[TS_REBUILD_SCHEDULE] + stats.rebuilds[TS_REBUILD_DISPLACEMENT] +
         stats.rebuilds[TS_REBUILD_PARTITION];
}

static void check_runs(bool is_double, double tolerance, double chaos)
{
  ts_system *water = hot_water();
  ts_model *model = water_model(water, is_double, 0);
  run leader = run_create(model, water, 0.5, 10), own = run_create(model, water, 0.5, 1);
  run each = run_create(model, water, 0, 1), seldom = run_create(model, water, 2, 1);
  double worst = 0;
  int same = 0;
  for (int64_t s = 1; s <= STEPS; s++) {
    advance(&leader, s);
    advance(&own, s);
    follow(&each, &leader, s);
    follow(&seldom, &leader, s);
    expect_same_edges(&leader, &each, s);
    expect_same_edges(&leader, &seldom, s);
    if (is_double) expect_same_edges(&leader, &own, s);
    const double here = fmax(difference(&leader, &each), difference(&leader, &seldom));
    worst = fmax(worst, here);
    same += here == 0;
  }
  print_message(
      "%s: forces differ by at most %.1e eV/A, same bits at %d of %d steps; runs on their "
      "own are %.1e A apart\n",
      is_double ? "double" : "float", worst, same, STEPS, apart(&leader, &own));
  assert_true(worst <= tolerance);
  assert_true(apart(&leader, &own) <= chaos);
  assert_int_equal(rebuilds(&each), STEPS);
  assert_int_equal(rebuilds(&own), STEPS);
  assert_true(rebuilds(&leader) >= STEPS / 10 && rebuilds(&leader) <= STEPS / 5);
  assert_true(rebuilds(&seldom) <= STEPS / 20);
  run_release(&leader);
  run_release(&own);
  run_release(&each);
  run_release(&seldom);
  ts_model_destroy(&model);
  ts_system_destroy(&water);
}

static void in_double(void **state)
{
  (void)state;
  check_runs(true, 1e-12, 1e-10);
}

static void in_float(void **state)
{
  (void)state;
  check_runs(false, 7e-7, 1e-3);
}

/* The same molecules, whole (O H H in the file) and without a cell. */
static ts_system *droplet(void)
{
  const bool open[3] = {false};
  ts_system *water = hot_water();
  const double box = water->cell.h[0][0];
  for (ts_lidx i = 0; i < water->n; i++)
    for (int k = 0; k < 3; k++)
      water->x[i][k] -= box * round((water->x[i][k] - water->x[i - i % 3][k]) / box);
  must(ts_cell_init(&water->cell, NULL, open));
  return water;
}

static uint64_t fingerprint(const run *r)
{
  uint64_t hash[2] = {0};
  int64_t count;
  for (int k = 0; k < 2; k++)
    must(ts_step_topology(r->step, k, &hash[k], &count));
  return hash[0] ^ 3 * hash[1];
}

/* Without periods nothing is wrapped, and without wrapping there is no difference at all: two runs
 * that each go their own way keep the same bits, though the nearest senders change within epochs.
 */
static void nearest_senders_of_a_droplet(void **state)
{
  (void)state;
  ts_system *water = droplet();
  ts_model *model = water_model(water, false, 24);
  run tenth = run_create(model, water, 0.5, 10), each = run_create(model, water, 0.5, 1);
  uint64_t before = fingerprint(&tenth);
  int changes = 0;
  for (int64_t s = 1; s <= BOUNDED_STEPS; s++) {
    const int64_t built = rebuilds(&tenth);
    advance(&tenth, s);
    advance(&each, s);
    expect_same_edges(&tenth, &each, s);
    assert_true(difference(&tenth, &each) == 0 && apart(&tenth, &each) == 0);
    const uint64_t now = fingerprint(&tenth);
    changes += now != before && rebuilds(&tenth) == built;
    before = now;
  }
  print_message(
      "droplet: same bits at %d steps; the nearest senders changed in %d steps without a "
      "rebuild\n",
      BOUNDED_STEPS, changes);
  assert_true(changes > BOUNDED_STEPS / 10);
  assert_int_equal(rebuilds(&each), BOUNDED_STEPS);
  run_release(&tenth);
  run_release(&each);
  ts_model_destroy(&model);
  ts_system_destroy(&water);
}

/* In a cell a rebuild touches the last bits of positions, but not who is nearest. */
static void nearest_senders_in_a_cell(void **state)
{
  (void)state;
  ts_system *water = hot_water();
  ts_model *model = water_model(water, true, 24);
  run leader = run_create(model, water, 0.5, 10), each = run_create(model, water, 0, 1);
  double worst = 0;
  for (int64_t s = 1; s <= BOUNDED_STEPS; s++) {
    advance(&leader, s);
    follow(&each, &leader, s);
    expect_same_edges(&leader, &each, s);
    worst = fmax(worst, difference(&leader, &each));
  }
  print_message("cell: the same nearest senders, forces differ by at most %.1e eV/A\n", worst);
  assert_true(worst <= 1e-12);
  run_release(&leader);
  run_release(&each);
  ts_model_destroy(&model);
  ts_system_destroy(&water);
}

/* Results, and fingerprints of the active edges of both stages. */
static run run_once(const ts_model *model, const ts_system *system, ts_step_params params,
                    uint64_t hash[2])
{
  run r = {.system = case_copy(system)};
  int64_t active;
  params.model = model;
  must(TSI_NEW(r.f, system->n));
  must(ts_step_create(&params, r.system, &r.step));
  evaluate(&r, 0);
  for (int k = 0; k < 2; k++)
    must(ts_step_topology(r.step, k, &hash[k], &active));
  return r;
}

/* The length of the list is no part of the result, nor is who made it: same edges, same bits. */
static void skin_and_back_end(void **state)
{
  (void)state;
  static const struct {
    double skin;
    ts_search_backend backend;
    int chunk;
  } given[] = {{0, TS_SEARCH_CELLS, 512},
               {0.5, TS_SEARCH_CELLS, 8},
               {2, TS_SEARCH_CELLS, 512},
               {0.5, TS_SEARCH_FAISS, 16},
               {0, TS_SEARCH_FAISS, 512}};
  golden_case c = case_read("triclinic-cluster-bell");
  for (int precision = 0; precision < 2; precision++) {
    ts_model *model = case_model(&c, precision == 1);
    uint64_t first[2], hash[2];
    run base = run_once(model, c.system, case_params(model, 1), first);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
      ts_step_params params = case_params(model, given[i].skin);
      params.backend = given[i].backend;
      params.chunk = given[i].chunk;
      run r = run_once(model, c.system, params, hash);
      assert_memory_equal(hash, first, sizeof hash);
      assert_memory_equal(r.f[0], base.f[0], (size_t)c.system->n * sizeof *r.f);
      assert_true(case_energy(r.step, r.system) == case_energy(base.step, base.system));
      run_release(&r);
    }
    run_release(&base);
    ts_model_destroy(&model);
  }
  case_release(&c);
}

/* A host that moves atoms by itself is noticed: within half the skin the edges stay, beyond they
 * are built anew, and either way results are those of a fresh start. */
static void moved_by_the_caller(void **state)
{
  (void)state;
  static const struct {
    double by;
    int64_t rebuilds;
  } given[] = {{0.24, 0}, {0.26, 1}, {3.7, 2}, {250, 3}};
  golden_case c = case_read("triclinic-cluster-bell");
  ts_model *model = case_model(&c, true);
  run r = run_create(model, c.system, 0.5, 10);
  ts_system *placed = case_copy(r.system);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    memcpy(placed->x, r.system->x, (size_t)placed->n * sizeof *placed->x);
    memcpy(placed->image, r.system->image, (size_t)placed->n * sizeof *placed->image);
    placed->x[5][0] = r.system->x[5][0] += given[i].by;
    evaluate(&r, 0);
    run fresh = run_create(model, placed, 0.5, 10);
    expect_same_edges(&r, &fresh, (int64_t)i);
    assert_true(difference(&r, &fresh) < 1e-11);
    assert_int_equal(rebuilds(&r), given[i].rebuilds);
    run_release(&fresh);
    r.system->x[5][0] -= given[i].by;
  }
  ts_system_destroy(&placed);
  run_release(&r);
  ts_model_destroy(&model);
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(skin_and_back_end),
      cmocka_unit_test(moved_by_the_caller),
      cmocka_unit_test(in_double),
      cmocka_unit_test(in_float),
      cmocka_unit_test(nearest_senders_of_a_droplet),
      cmocka_unit_test(nearest_senders_in_a_cell),
  };
  ts_engine *engine = case_engine(1, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ts_engine_destroy(&engine);
  return failed;
}
