/* SPDX-License-Identifier: MIT
 *
 * The planner on virtual ranks: counts for every number of ranks, the same survey on repetition and
 * for any order of the atoms, generated systems as large and as dense as asked for, and times whose
 * value is known.
 *
 * TS_EVERY_RANKS=1: the counts of all sizes for every number of ranks, not only of the first. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "md/plan_fields.h"
#include "neighbor/partition.h"
#include "runtime/error.h"

#define ASSERT_OK(call)                                                    \
  do {                                                                     \
    if ((call) != 0) fail_msg("%s failed: %s", #call, ts_error_message()); \
  } while (0)

enum { TEXT = 1 << 16 };

static const ts_model_desc small = {
    .channels = 32,
    .heads = 8,
    .head_dim = 8,
    .lmax = 2,
    .nstages = 2,
    .stage = {{.cutoff = 3, .nlayers = 3}, {.cutoff = 5, .nlayers = 1}},
    .merge = TS_MERGE_CLUSTER};

static ts_plan_params params_of(int ranks, const ts_model *model)
{
  ts_plan_params p = {.ranks = ranks, .scheme = {true, true, true, true, true}};
  ts_step_params_init(&p.step);
  p.step.model = model;
  p.step.partition.slack = 0.5;
  return p;
}

/* ---- counts */

static void every_number_of_ranks(void **state)
{
  (void)state;
  static const int sizes[] = {4097, 6000, 20011};
  const ts_partition_params params = {.curve = TS_CURVE_HILBERT};
  for (int s = 0; s < 3; s++) {
    ts_plan_atoms a;
    const ts_plan_recipe recipe = {
        .atoms = sizes[s], .density = 0.1, .units = 1, .grow = 3, .seed = 5};
    ASSERT_OK(ts_plan_atoms_generate(&recipe, &a));
    ASSERT_OK(ts_plan_atoms_sort(&a, &params));
    int32_t *owner = calloc((size_t)a.n, sizeof *owner);
    const int step = s > 0 && !getenv("TS_EVERY_RANKS") ? 37 : 1;
    for (int ranks = 1; ranks <= 4096; ranks += step) {
      const ts_ranks virtual_ranks = ts_ranks_virtual(ranks);
      static ts_shard shard[4096];
      static const uint64_t *key[4096];
      static int32_t *owners[4096];
      int count[4096] = {0};
      memset(shard, 0, sizeof shard);
      shard[0] = (ts_shard){.n = a.n, .x = (const double(*)[3])a.x, .gid = a.gid};
      key[0] = a.key;
      owners[0] = owner;
      ASSERT_OK(ts_partition_cut(&virtual_ranks, &params, shard, key, NULL, owners));
      for (ts_lidx i = 0; i < a.n; i++)
        count[owner[i]]++;
      for (int r = 0; r < ranks; r++)
        if (count[r] != a.n / ranks && count[r] != (a.n + ranks - 1) / ranks)
          fail_msg("%d atoms on %d ranks: rank %d has %d", a.n, ranks, r, count[r]);
    }
    free(owner);
    ts_plan_atoms_free(&a);
  }
}

/* ---- the same text for the same system */

static void add_text(void *context, const char *name, const char *value)
{
  char *text = context;
  const size_t used = strlen(text);
  assert_true(used + 200 < TEXT);
  snprintf(text + used, TEXT - used, "%s=%s ", name, value);
}

static void add_number(void *context, const char *name, double value)
{
  char number[40];
  snprintf(number, sizeof number, "%.17g", value);
  add_text(context, name, number);
}

static void add_group(void *context, const char *name)
{
  add_text(context, name, "{");
}

static void end_group(void *context)
{
  add_text(context, "}", "");
}

static void survey_text(ts_plan_atoms *a, const ts_plan_params *p, char *text)
{
  const ts_plan_sink sink = {text, add_group, end_group, add_number, add_text};
  ts_survey *s;
  text[0] = '\0';
  ASSERT_OK(ts_plan_atoms_sort(a, &p->step.partition));
  ASSERT_OK(ts_survey_create(p, a, &s));
  ts_plan_fields(p, s, NULL, &sink);
  ts_survey_destroy(&s);
}

/* The atoms in another order, as another file would have them. */
static void shuffle(ts_plan_atoms *a)
{
  uint64_t state = 3;
  for (ts_lidx i = a->n - 1; i > 0; i--) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const ts_lidx j = (ts_lidx)((state >> 33) % (uint64_t)(i + 1));
    double x[3];
    memcpy(x, a->x[i], sizeof x);
    memcpy(a->x[i], a->x[j], sizeof x);
    memcpy(a->x[j], x, sizeof x);
    const uint8_t z = a->z[i];
    a->z[i] = a->z[j];
    a->z[j] = z;
  }
  for (ts_lidx i = 0; i < a->n; i++)
    a->gid[i] = i;
}

static void any_order_of_atoms(void **state)
{
  (void)state;
  static char text[3][TEXT];
  ts_model_desc desc = small;
  ts_model model;
  desc.stage[1].excluded[1] = true;
  ts_plan_model(&desc, false, &model);
  for (int kind = 0; kind < TS_PLAN_KINDS; kind++) {
    ts_plan_params p = params_of(9 + kind, &model);
    const ts_plan_recipe recipe = {.kind = (ts_plan_kind)kind,
                                   .atoms = 1500,
                                   .density = 0.1,
                                   .units = 9,
                                   .grow = 1 + kind % 3,
                                   .seed = 8};
    ts_plan_atoms a;
    p.step.partition.curve = kind % 2 ? TS_CURVE_MORTON : TS_CURVE_HILBERT;
    p.step.partition.normalization = kind % 3 ? TS_NORMALIZE_AXES : TS_NORMALIZE_LONGEST;
    p.step.weighted = kind > 2;
    ASSERT_OK(ts_plan_atoms_generate(&recipe, &a));
    survey_text(&a, &p, text[0]);
    survey_text(&a, &p, text[1]);
    shuffle(&a);
    survey_text(&a, &p, text[2]);
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    ts_plan_atoms_free(&a);
  }
}

/* ---- generated systems */

static void as_many_and_as_dense(void **state)
{
  (void)state;
  for (int kind = 0; kind < TS_PLAN_KINDS; kind++)
    for (ts_lidx atoms = 1; atoms < 40000; atoms = 3 * atoms + 1) {
      const ts_plan_recipe recipe = {.kind = (ts_plan_kind)kind,
                                     .atoms = atoms,
                                     .density = 0.1,
                                     .units = 4,
                                     .grow = 3,
                                     .seed = 2};
      int count[128] = {0};
      ts_plan_atoms a;
      ASSERT_OK(ts_plan_atoms_generate(&recipe, &a));
      assert_int_equal(a.n, atoms);
      for (ts_lidx i = 0; i < a.n; i++) {
        double f[3];
        ts_cell_fraction(&a.cell, a.x[i], f);
        for (int k = 0; k < 3; k++)
          assert_true(f[k] >= (a.cell.periodic[k] ? 0 : -0.1) && f[k] < 1.1);
        count[a.z[i]]++;
      }
      const double volume = ts_cell_volume(&a.cell);
      const double part = kind == TS_PLAN_SLAB ? 3 : kind == TS_PLAN_DROPLET ? 27 * 6 / M_PI : 1;
      assert_true(fabs(volume / part - atoms / 0.1) < 1e-6 * volume);
      if (kind == TS_PLAN_WATER && atoms > 100) assert_in_range(2 * count[8] - count[1], 0, 2);
      if (kind == TS_PLAN_SALT_WATER && atoms > 10000) {
        assert_in_range(count[17] + count[19], count[8] / 27, count[8] / 25);
        assert_in_range(abs(count[17] - count[19]), 0, 1);
      }
      ts_plan_atoms_free(&a);
    }
}

/* Ranks inside a dense ball have more edges, unless the cut weighs them. */
static void a_dense_ball(void **state)
{
  (void)state;
  ts_model model;
  ts_plan_atoms a;
  ts_plan_params p;
  ts_survey *even, *weighed;
  const ts_plan_recipe recipe = {
      .kind = TS_PLAN_BLOB, .atoms = 8000, .density = 0.1, .units = 8, .grow = 3, .seed = 2};
  ts_plan_model(&small, false, &model);
  p = params_of(8, &model);
  ASSERT_OK(ts_plan_atoms_generate(&recipe, &a));
  ASSERT_OK(ts_plan_atoms_sort(&a, &p.step.partition));
  ASSERT_OK(ts_survey_create(&p, &a, &even));
  p.step.weighted = true;
  ASSERT_OK(ts_survey_create(&p, &a, &weighed));
  const ts_plan_spread by_atoms = ts_plan_quantity_spread(even, TS_PLAN_EDGES, 1);
  const ts_plan_spread by_edges = ts_plan_quantity_spread(weighed, TS_PLAN_EDGES, 1);
  assert_true(fabs(by_atoms.mean - by_edges.mean) < 1e-9 * by_atoms.mean);
  assert_true(by_edges.most - by_edges.least < 0.5 * (by_atoms.most - by_atoms.least));
  assert_true(weighed->count.most <= 1500 && even->count.most == 1000);
  ts_survey_destroy(&even);
  ts_survey_destroy(&weighed);
  ts_plan_atoms_free(&a);
}

/* ---- times */

static void times_add_up(void **state)
{
  (void)state;
  ts_model model;
  ts_plan_model(&small, false, &model);
  const ts_plan_params p = params_of(2, &model);
  ts_plan_load load[2] = {{.rank = 0,
                           .n = 100,
                           .stage = {{.sources = 1,
                                      .targets = 1,
                                      .halo = 50,
                                      .sent = 40,
                                      .edges = 1000,
                                      .remote = 200,
                                      .boundary = 30},
                                     {.edges = 0}}},
                          {.rank = 1, .n = 60, .stage = {{.edges = 10}, {.edges = 0}}}};
  const ts_survey s = {.ranks = 2, .stages = 2, .sampled = 2, .load = load};
  const ts_plan_costs costs = {.atom = 1, .edge_forward = 0.5, .edge_back = 0.25};
  ts_plan_network net = {
      .latency = 0, .bandwidth = INFINITY, .workers = 1, .share = 1, .interval = 10};
  ts_plan_time t;
  /* no exchange takes time: atoms in four layers, edges in three, forward and back */
  ts_plan_predict(&p, &s, &costs, &net, &t);
  const double busy = 100 * 4 + 3 * 1000 * 0.75;
  assert_float_equal(t.hit, busy, 1e-9);
  assert_float_equal(t.wait, 0, 0);
  assert_float_equal(t.alone, (busy + 60 * 4 + 3 * 10 * 0.75) / 2, 1e-9);
  /* 1000 s of latency: the local halves hide 800/2 forward, 70 % of 800/4 back, and nothing hides
   * positions and forces; two reductions */
  net.latency = 1000;
  ts_plan_predict(&p, &s, &costs, &net, &t);
  const double waits = 3 * (1000 - 400) + 3 * (1000 - 140);
  assert_float_equal(t.hit, busy + waits + 2 * 1000 + 2 * 1000, 1e-9);
  assert_float_equal(t.wait, (waits + 2 * 1000) / 2, 1e-9);
  /* bytes of the larger direction: 50 atoms of 8 * 8 + 9 * 32 floats, or 3 doubles */
  net.latency = 0;
  net.bandwidth = 50 * 352 * 4 / 1000.0;
  ts_plan_predict(&p, &s, &costs, &net, &t);
  assert_float_equal(t.wait, (waits + 2 * 1000 * 24 / (352 * 4.0)) / 2, 1e-6);
  /* workers share the work, ranks a core */
  net = (ts_plan_network){.bandwidth = INFINITY, .workers = 4, .share = 2, .interval = 10};
  ts_plan_predict(&p, &s, &costs, &net, &t);
  assert_float_equal(t.hit, busy / 2, 1e-9);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_of_ranks), cmocka_unit_test(any_order_of_atoms),
      cmocka_unit_test(as_many_and_as_dense), cmocka_unit_test(a_dense_ball),
      cmocka_unit_test(times_add_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
