/* SPDX-License-Identifier: MIT
 *
 * The virial is the derivative of the energy by a strain of cell and positions: against central
 * differences over all nine components, to 1e-7 of its largest; symmetric to rounding, because a
 * rotation costs nothing (but with a sphere head, whose directions stay where they are).  Forces
 * sum to zero, because neither does a translation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/case.h"

/* v += e v for every cell vector and position, with the one component e[k][l] = h. */
static ts_system *strained(const ts_system *system, int k, int l, double h)
{
  ts_system *copy = case_copy(system);
  double cell[3][3];
  memcpy(cell, system->cell.h, sizeof cell);
  for (int m = 0; m < 3; m++)
    cell[m][k] += h * cell[m][l];
  must(ts_cell_init(&copy->cell, (const double(*)[3])cell, system->cell.periodic));
  for (ts_lidx i = 0; i < copy->n; i++)
    copy->x[i][k] += h * copy->x[i][l];
  return copy;
}

/* Energy, and the fingerprints of the active edges. */
static double energy_at(const ts_model *model, const ts_system *system, int k, int l, double h,
                        uint64_t active[TS_MAX_STAGES])
{
  const ts_step_params params = case_params(model, 0);
  ts_system *copy = strained(system, k, l, h);
  ts_step *step;
  ts_partial total;
  int64_t count;
  must(ts_step_create(&params, copy, &step));
  must(ts_step_evaluate(step, 0, &total));
  const double energy = case_energy(step, copy);
  for (int s = 0; s < model->desc.nstages; s++)
    must(ts_step_topology(step, s, &active[s], &count));
  ts_step_destroy(&step);
  ts_system_destroy(&copy);
  return energy;
}

/* Derivative of fourth order.  `same`: no edge may cross a cutoff on the way. */
static double slope(const ts_model *model, const ts_system *system, int k, int l, double h,
                    bool same)
{
  static const double at[4] = {1, -1, 0.5, -0.5};
  uint64_t active[4][TS_MAX_STAGES] = {{0}};
  double e[4];
  for (int i = 0; i < 4; i++) {
    e[i] = energy_at(model, system, k, l, at[i] * h, active[i]);
    if (same) assert_memory_equal(active[i], active[0], sizeof active[0]);
  }
  return (4 * (e[2] - e[3]) / h - (e[0] - e[1]) / (2 * h)) / 3;
}

static void check_system(const char *name, ts_softmax_floor floor, double h, bool same)
{
  golden_case c = case_read(name);
  c.desc.floor = floor;
  ts_model *model = case_model(&c, true);
  const ts_step_params params = case_params(model, 0.5);
  case_output out = case_evaluate(&params, c.system);
  const double largest = case_largest(9, out.virial);
  const double force = case_largest(3 * (size_t)out.n, out.force[0]);
  double skew = 0, worst = 0, net[3] = {0};
  for (int k = 0; k < 3; k++)
    for (int l = 0; l < 3; l++) {
      skew = fmax(skew, fabs(out.virial[3 * k + l] - out.virial[3 * l + k]) / largest);
      const double error = slope(model, c.system, k, l, h, same) - out.virial[3 * k + l];
      worst = fmax(worst, fabs(error) / largest);
    }
  for (ts_lidx i = 0; i < out.n; i++)
    for (int k = 0; k < 3; k++)
      net[k] += out.force[i][k] / force;
  print_message("%-20s relative error of the virial %.1e, skew %.1e, net force %.1e\n", name, worst,
                skew, case_largest(3, net));
  assert_true(worst <= 1e-7);
  assert_true(skew <= 1e-12 || c.desc.head_kind == TS_HEAD_SPHERE);
  assert_true(case_largest(3, net) <= 1e-12);
  case_output_release(&out);
  ts_model_destroy(&model);
  case_release(&c);
}

/* Where the floor is the published one strains are so small that no edge crosses a cutoff: the
 * energy may jump there. */
static void virial_is_the_strain_derivative(void **state)
{
  (void)state;
  check_system("triclinic-first", TS_FLOOR_MAX, 1e-4, true);
  check_system("triclinic-cluster", TS_FLOOR_MAX, 1e-4, true);
  check_system("slab-zero", TS_FLOOR_MAX, 1e-4, true);
  check_system("kcl64-cluster", TS_FLOOR_MAX, 2e-6, true);
  check_system("kcl64-cluster", TS_FLOOR_ABSOLUTE, 1e-4, false);
}

static void virial_of_other_forms(void **state)
{
  static const char *const form[] = {"forms/form-softplus", "forms/form-sigmoid",
                                     "forms/form-sphere-head", "forms/form-qkdot",
                                     "forms/form-cap8"};
  static const char *const made[] = {"made/sphere-cluster", "made/degree-1-cluster",
                                     "made/degree-3-cluster"};
  (void)state;
  for (size_t i = 0; i < sizeof form / sizeof *form; i++)
    check_system(form[i], TS_FLOOR_MAX, 3e-5, true);
  check_system("forms/form-qkdots", TS_FLOOR_MAX, 1e-5, true); /* steep */
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    check_system(made[i], TS_FLOOR_ABSOLUTE, 3e-5, true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(virial_is_the_strain_derivative),
      cmocka_unit_test(virial_of_other_forms),
  };
  ts_engine *engine = case_engine(1, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ts_engine_destroy(&engine);
  return failed;
}
