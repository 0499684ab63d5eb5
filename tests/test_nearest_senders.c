/* SPDX-License-Identifier: MIT
 *
 * The nearest senders of a receiver: against a full sort, with many equal distances; and in a step,
 * where the set must not depend on the order of atoms, the size of tiles or the skin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "neighbor/nearest.h"
#include "runtime/memory.h"
#include "tests/case.h"

enum { MOST_EDGES = 200 };

static void like_a_sort(void **state)
{
  (void)state;
  static double g[MOST_EDGES][4];
  static uint8_t active[MOST_EDGES], before[MOST_EDGES];
  uint64_t seed = 3;
  for (int n = 0; n < 2000; n++) {
    const int count = (int)((case_random(&seed) + 1) / 2 * MOST_EDGES), most = 1 + n % 90;
    int total = 0;
    for (int e = 0; e < count; e++) {
      g[e][3] = (int)(case_random(&seed) * 20); /* many ties */
      before[e] = active[e] = case_random(&seed) > -0.5;
      total += active[e];
    }
    assert_int_equal(ts_nearest_keep(count, g[0], most, active), total > most);
    for (int e = 0; e < count; e++) {
      int nearer = 0;
      for (int k = 0; k < count; k++)
        nearer += before[k] && (g[k][3] < g[e][3] || (g[k][3] == g[e][3] && k < e));
      assert_int_equal(active[e], before[e] && nearer < most);
    }
  }
}

/* Energy of the case and fingerprint of its active edges. */
static double evaluate(const ts_model *model, ts_system *system, double skin, int tile,
                       uint64_t *hash)
{
  ts_step_params params = case_params(model, skin);
  ts_step *step;
  ts_partial total;
  int64_t active;
  params.tile_atoms = tile;
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  must(ts_step_topology(step, 0, hash, &active));
  assert_true(active == 8 * (int64_t)system->n);
  const double energy = case_energy(step, system);
  ts_step_destroy(&step);
  return energy;
}

/* Atoms of a simple cubic crystal: shells of 6, 12 and 8 equal distances, and only 8 count. */
static void the_same_set_everywhere(void **state)
{
  (void)state;
  golden_case c = case_read("forms/form-cap8");
  ts_model *model = case_model(&c, true);
  const double h[3][3] = {{8, 0, 0}, {0, 8, 0}, {0, 0, 8}};
  double x[64][3];
  uint8_t z[64];
  for (int i = 0; i < 64; i++) {
    z[i] = c.system->z[i % c.system->n];
    for (int k = 0; k < 3; k++)
      x[i][k] = 2 * (i >> 2 * k & 3);
  }
  ts_system *system = case_system(h, 64, z, (const double(*)[3])x);
  uint64_t first, hash;
  const double energy = evaluate(model, system, 0.5, 16, &first);
  static const double skins[] = {0, 0.3, 1.5};
  for (int k = 0; k < 3; k++) {
    ts_system *turned = case_copy(system);
    ts_lidx order[64];
    for (int i = 0; i < 64; i++)
      order[i] = (ts_lidx)((i * 37 + 11 * k) % 64);
    must(ts_system_permute(turned, order));
    const double again = evaluate(model, turned, skins[k], 8 << k, &hash);
    assert_true(hash == first && again == energy);
    ts_system_destroy(&turned);
  }
  ts_system_destroy(&system);
  ts_model_destroy(&model);
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(like_a_sort),
      cmocka_unit_test(the_same_set_everywhere),
  };
  ts_engine *engine = case_engine(1, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ts_engine_destroy(&engine);
  return failed;
}
