/* SPDX-License-Identifier: MIT
 *
 * Radial networks against recorded values of their definition; tables, of pairs and with the first
 * layer split, against the networks, at random distances and at the ends; slopes against central
 * differences. */
#include "models/radial.h"
#include "models/radial_net.h"
#include "tests/model_cases.h"

#include <math.h>

static void exact(const ts_model_desc *desc, const ts_weights *w, int stage, int layer, int zi,
                  int zj, double r, double *value, double *slope)
{
  if (ts_radial_exact(desc, w, stage, layer, zi, zj, 1, &r, value, slope))
    fail_msg("%s", ts_error_message());
}

static void test_recorded(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int stage, layer, zi, zj;
    double r;
    int width;
    double first, second, middle, last, sum;
  } expected[] = {
      {"triclinic-cluster", 0, -1, 8, 1, 1.1, 48, 1.3553643754370435, -0.89085219773651703,
       -0.67245634086602291, 0.7941963156071653, -3.6482099619692603},
      {"triclinic-cluster", 0, 1, 1, 19, 2.75, 16, 0.66348638385212866, 0.34979815894666222,
       -0.15561516182586202, 0.75360498487881644, 1.7833345572592598},
      {"triclinic-cluster", 1, 0, 6, 17, 7.9, 16, 0.21121457413690969, 0.37179125239247668,
       -1.4243178346819265, 0.80810212376378276, 0.97033339687173537},
      {"kcl64-smooth", 0, 0, 17, 8, 3.2, 16, 0.15395064415482895, 0.60603227537247273,
       -0.8188414303572461, 0.2394559206363388, -2.8138392654708628},
  };
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    ts_model_desc desc;
    ts_weights *w;
    double value[48], sum = 0.0;
    const int width = expected[i].width;
    golden_model(expected[i].name, &desc, &w);
    exact(&desc, w, expected[i].stage, expected[i].layer, expected[i].zi, expected[i].zj,
          expected[i].r, value, NULL);
    for (int c = 0; c < width; ++c)
      sum += value[c];
    assert_true(fabs(value[0] - expected[i].first) < 1e-13);
    assert_true(fabs(value[1] - expected[i].second) < 1e-13);
    assert_true(fabs(value[width / 2] - expected[i].middle) < 1e-13);
    assert_true(fabs(value[width - 1] - expected[i].last) < 1e-13);
    assert_true(fabs(sum - expected[i].sum) < 1e-12);
    ts_weights_destroy(&w);
  }
}

static void test_network_slope(void **state)
{
  (void)state;
  const double h = 1e-4;
  ts_model_desc desc;
  ts_weights *w;
  golden_model("triclinic-cluster", &desc, &w);
  for (int layer = -1; layer < 2; ++layer)
    for (double r = 0.3; r < 5.0; r += 0.61) {
      double value[48], slope[48], side[4][48];
      exact(&desc, w, 0, layer, 7, 8, r, value, slope);
      for (int k = 0; k < 4; ++k)
        exact(&desc, w, 0, layer, 7, 8, r + h * (k < 2 ? k - 2 : k - 1), side[k], NULL);
      for (int c = 0; c < (layer < 0 ? 48 : 16); ++c) {
        const double difference =
            (side[0][c] - 8.0 * side[1][c] + 8.0 * side[2][c] - side[3][c]) / (12.0 * h);
        assert_true(fabs(difference - slope[c]) < 1e-9);
      }
    }
  ts_weights_destroy(&w);
}

/* A table's spline at r, `width` wide, of the pair of species i, j. */
static void spline(const ts_radial_set *set, const ts_radial_stage *stage,
                   const ts_radial_table *table, int width, int i, int j, double r, double *value,
                   double *slope)
{
  const double s = r / stage->step;
  const int n = (int)floor(s);
  double B[6], dB[6];
  assert_true(n >= 0 && n + 6 <= stage->nodes);
  tsi_bspline5(s - n, B, dB);
  const double *coef = table->coef + (((int64_t)i * set->nspecies + j) * stage->nodes + n) * width;
  for (int c = 0; c < width; ++c) {
    value[c] = slope[c] = 0.0;
    for (int k = 0; k < 6; ++k) {
      value[c] += B[k] * coef[k * width + c];
      slope[c] += dB[k] / stage->step * coef[k * width + c];
    }
  }
}

/* What kernels do with a table. */
static void evaluate(const ts_model_desc *desc, const ts_weights *w, const ts_radial_set *set,
                     int istage, int layer, int i, int j, double r, double *value, double *slope)
{
  const ts_radial_stage *stage = &set->stage[istage];
  const ts_radial_table *table = layer < 0 ? &stage->embed : &stage->layer[layer];
  if (!set->split) {
    spline(set, stage, table, table->width, i, j, r, value, slope);
    return;
  }
  double first[512], dfirst[512];
  tsi_radial_net net;
  assert_true(table->nets * table->middle <= 512);
  assert_int_equal(tsi_radial_net_init(desc, w, istage, layer, &net), 0);
  spline(set, stage, table, table->nets * table->middle, 0, 0, r, first, dfirst);
  assert_int_equal(
      tsi_radial_net_rest(&net, set->species[i], set->species[j], 1, first, dfirst, value, slope),
      0);
}

/* The largest output of a table is at least what is seen here, so this bound is the stricter. */
static void check_table(const ts_model_desc *desc, const ts_weights *w, const ts_radial_set *set,
                        int istage, int layer)
{
  const ts_radial_stage *stage = &set->stage[istage];
  const ts_radial_table *table = layer < 0 ? &stage->embed : &stage->layer[layer];
  double largest = 0.0, error = 0.0, slope_largest = 0.0, slope_error = 0.0;
  for (int trial = 0; trial < 400; ++trial) {
    double value[96], slope[96], tvalue[96], tslope[96];
    const int i = rand() % set->nspecies, j = rand() % set->nspecies;
    double r = stage->cutoff * rand() / (double)RAND_MAX;
    if (trial == 0) r = stage->cutoff;
    if (trial == 1) r = 1e-9;
    exact(desc, w, istage, layer, set->species[i], set->species[j], r, value, slope);
    evaluate(desc, w, set, istage, layer, i, j, r, tvalue, tslope);
    for (int c = 0; c < table->width; ++c) {
      largest = fmax(largest, fabs(value[c]));
      slope_largest = fmax(slope_largest, fabs(slope[c]));
      error = fmax(error, fabs(value[c] - tvalue[c]));
      slope_error = fmax(slope_error, fabs(slope[c] - tslope[c]));
    }
  }
  assert_true(largest > 0.1);
  assert_true(table->error <= set->tolerance);
  const double slack = set->split && set->nspecies > 4 ? 4 : 1.5; /* not all pairs were measured */
  assert_true(error <= slack * table->error * largest + 1e-14);
  assert_true(slope_error <= slack * table->slope_error * slope_largest + 1e-12);
}

static ts_radial_set *build(const ts_model_desc *desc, const ts_weights *w, int ns,
                            const int *species, double tolerance, uint64_t most)
{
  ts_radial_set *set;
  if (ts_radial_build(desc, w, ns, species, tolerance, most, &set))
    fail_msg("%s", ts_error_message());
  return set;
}

static void check_tables(const ts_model_desc *desc, const ts_weights *w, const ts_radial_set *set)
{
  assert_int_equal(set->nstages, desc->nstages);
  for (int s = 0; s < set->nstages; ++s) {
    assert_int_equal(set->stage[s].embed.width, s ? 0 : 3 * desc->channels);
    for (int l = s ? 0 : -1; l < desc->stage[s].nlayers; ++l)
      check_table(desc, w, set, s, l);
  }
}

/* Tables as long as they may take what they take, networks with a split first layer beyond. */
static void check_set(const char *name, int ns, const int *species, double tolerance)
{
  ts_model_desc desc;
  ts_weights *w;
  golden_model(name, &desc, &w);
  ts_radial_set *set = build(&desc, w, ns, species, tolerance, UINT64_MAX);
  const uint64_t bytes = ts_radial_bytes(set);
  assert_false(set->split);
  check_tables(&desc, w, set);
  ts_radial_destroy(&set);
  assert_null(set);
  set = build(&desc, w, ns, species, tolerance, bytes);
  assert_false(set->split);
  ts_radial_destroy(&set);
  set = build(&desc, w, ns, species, tolerance, bytes - 1);
  assert_true(set->split);
  check_tables(&desc, w, set);
  ts_radial_destroy(&set);
  ts_weights_destroy(&w);
}

static void test_tables(void **state)
{
  (void)state;
  check_set("triclinic-cluster", 3, (const int[]){8, 1, 17}, 1e-7);
  check_set("triclinic-cluster", 2, (const int[]){1, 6}, 1e-12);
  check_set("kcl64-smooth", 2, (const int[]){19, 8}, 1e-12);
  check_set("triclinic-cluster", 5, (const int[]){1, 6, 7, 8, 19}, 1e-5);
}

/* The slope is the derivative of the same spline, also across grid points. */
static void test_spline_slope(void **state)
{
  (void)state;
  ts_model_desc desc;
  ts_weights *w;
  ts_radial_set *set;
  golden_model("pair", &desc, &w);
  assert_int_equal(ts_radial_build(&desc, w, 1, (const int[]){8}, 1e-4, UINT64_MAX, &set), 0);
  const ts_radial_stage *stage = &set->stage[0];
  for (int trial = 0; trial < 40; ++trial) {
    const double r = trial < 20 ? (3 + trial) * stage->step : 0.1 + 0.23 * (trial - 20);
    const double h = 1e-4;
    double side[4][48], slope[48], unused[48];
    spline(set, stage, &stage->embed, 48, 0, 0, r, unused, slope);
    for (int k = 0; k < 4; ++k)
      spline(set, stage, &stage->embed, 48, 0, 0, r + h * (k < 2 ? k - 2 : k - 1), side[k], unused);
    for (int c = 0; c < 48; ++c)
      assert_true(
          fabs((side[0][c] - 8.0 * side[1][c] + 8.0 * side[2][c] - side[3][c]) / (12.0 * h) -
               slope[c]) < 1e-9);
  }
  ts_radial_destroy(&set);
  ts_weights_destroy(&w);
}

static void test_refusals(void **state)
{
  (void)state;
  ts_model_desc desc;
  ts_weights *w;
  ts_radial_set *set;
  const int z = 8;
  double r = 1.0, value[48];
  golden_model("pair", &desc, &w);
  assert_int_equal(ts_radial_build(&desc, w, 0, &z, 1e-7, UINT64_MAX, &set), TS_ERR_ARG);
  assert_int_equal(ts_radial_build(&desc, w, 1, (const int[]){128}, 1e-7, UINT64_MAX, &set),
                   TS_ERR_ARG);
  assert_int_equal(ts_radial_build(&desc, w, 1, &z, 0.0, UINT64_MAX, &set), TS_ERR_ARG);
  assert_null(set);
  assert_int_equal(ts_radial_exact(&desc, w, 1, 0, 8, 8, 1, &r, value, NULL), TS_ERR_ARG);
  assert_int_equal(ts_radial_exact(&desc, w, 0, 2, 8, 8, 1, &r, value, NULL), TS_ERR_ARG);
  ts_weights_destroy(&w);
}

/* Finite weights whose outputs overflow are an error, not a table of NaN. */
static void test_overflow(void **state)
{
  (void)state;
  static const char name[] = "decoder.decoder.blocks.0.ga.fc_easy.net.6.weight";
  ts_model_desc desc;
  ts_weights *seeded, *w;
  ts_radial_set *set;
  golden_model("pair", &desc, &seeded);
  assert_int_equal(ts_weights_create(&w), 0);
  for (int i = 0; i < ts_weights_count(seeded); ++i) {
    const ts_tensor_view view = ts_weights_at(seeded, i);
    double *copy = malloc((size_t)view.count * sizeof *copy);
    for (int64_t k = 0; k < view.count; ++k)
      copy[k] = strcmp(view.name, name) ? view.data[k] : 1e308;
    assert_int_equal(ts_weights_add(w, view.name, view.rank, view.dim, copy), 0);
    free(copy);
  }
  assert_int_equal(ts_radial_build(&desc, w, 1, (const int[]){8}, 1e-7, UINT64_MAX, &set),
                   TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "not finite"));
  ts_weights_destroy(&seeded);
  ts_weights_destroy(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recorded), cmocka_unit_test(test_network_slope),
      cmocka_unit_test(test_tables),   cmocka_unit_test(test_spline_slope),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
