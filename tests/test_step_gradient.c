/* SPDX-License-Identifier: MIT
 *
 * Forces are minus the gradient of the energy that is evaluated, tables (or split radial networks)
 * included.  In double they agree with central differences to 1e-7 of the largest force; the error
 * of a difference falls as h^2 down to rounding (a flat line would be a force that is not a
 * gradient); and where the softmax floor is absolute both hold across the cutoff, where energy and
 * force are continuous. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/memory.h"
#include "tests/case.h"

/* A system whose atoms are moved one coordinate at a time. */
typedef struct bench {
  const ts_model *model;
  ts_system *system;
  ts_step *step;
  double (*x)[3], (*f)[3]; /* as they were, in the system's order */
  double largest;          /* force component [eV/Å] */
  uint64_t active[TS_MAX_STAGES];
} bench;

static void edges_of(const bench *b, uint64_t active[TS_MAX_STAGES])
{
  int64_t count;
  memset(active, 0, TS_MAX_STAGES * sizeof *active);
  for (int k = 0; k < b->model->desc.nstages; k++)
    must(ts_step_topology(b->step, k, &active[k], &count));
}

static void evaluate(bench *b)
{
  ts_partial total;
  must(ts_step_evaluate(b->step, 0, &total));
}

static bench bench_create(const ts_model *model, ts_system *system)
{
  bench b = {.model = model, .system = system};
  const ts_step_params params = case_params(model, 0.5);
  const size_t bytes = (size_t)system->n * sizeof *b.x;
  must(TSI_NEW(b.x, system->n));
  must(TSI_NEW(b.f, system->n));
  must(ts_step_create(&params, system, &b.step));
  evaluate(&b);
  memcpy(b.x, system->x, bytes);
  memcpy(b.f, ts_step_forces(b.step), bytes);
  b.largest = case_largest(3 * (size_t)system->n, b.f[0]);
  edges_of(&b, b.active);
  return b;
}

static void bench_release(bench *b)
{
  ts_step_destroy(&b->step);
  free(b->x);
  free(b->f);
}

/* The energy with one coordinate moved by h.  `same`: the set of active edges must not change. */
static double moved(bench *b, ts_lidx i, int k, double h, bool same)
{
  uint64_t active[TS_MAX_STAGES];
  b->system->x[i][k] = b->x[i][k] + h;
  evaluate(b);
  const double energy = case_energy(b->step, b->system);
  edges_of(b, active);
  if (same) assert_memory_equal(active, b->active, sizeof active);
  b->system->x[i][k] = b->x[i][k];
  return energy;
}

static double slope(bench *b, ts_lidx i, int k, double h, bool same)
{
  return (moved(b, i, k, h, same) - moved(b, i, k, -h, same)) / (2 * h);
}

/* Largest error of `count` atoms' forces, relative to the largest force: against differences of
 * fourth order. */
static double gradient_error(bench *b, ts_lidx count, double h, bool same)
{
  double worst = 0;
  for (ts_lidx a = 0; a < count; a++)
    for (int k = 0; k < 3; k++) {
      const ts_lidx i = a * (b->system->n / count);
      const double wide = slope(b, i, k, h, same), narrow = slope(b, i, k, h / 2, same);
      worst = fmax(worst, fabs((4 * narrow - wide) / 3 + b->f[i][k]));
    }
  return worst / b->largest;
}

static void check_model(const char *name, bool split, ts_lidx most, double h, bool same)
{
  golden_case c = case_read(name);
  ts_model *model = split ? case_model_split(&c, true, "auto") : case_model(&c, true);
  bench b = bench_create(model, c.system);
  const double error = gradient_error(&b, most ? most : c.system->n, h, same);
  print_message("%-24s relative error of forces %.1e\n", name, error);
  assert_true(error <= 1e-7);
  bench_release(&b);
  ts_model_destroy(&model);
  case_release(&c);
}

static void check_system(const char *name, ts_lidx most, double h, bool same)
{
  check_model(name, false, most, h, same);
}

/* Where the floor is the published one steps are so short that no edge crosses a cutoff: the energy
 * may jump there. */
static void forces_are_differences(void **state)
{
  (void)state;
  check_system("molecule-first", 0, 3e-4, true);
  check_system("triclinic-cluster", 0, 3e-4, true);
  check_system("triclinic-cluster-bell", 0, 3e-4, true);
  check_system("slab-zero", 0, 3e-4, true);
  check_system("kcl64-smooth", 8, 1e-3, false);
}

static void forces_of_other_forms_are_differences(void **state)
{
  (void)state;
  check_system("forms/form-softplus", 6, 3e-4, true);
  check_system("forms/form-sigmoid", 6, 3e-4, true);
  check_system("forms/form-sphere-head", 6, 3e-4, true);
  check_system("forms/form-qkdot", 6, 3e-4, true);
  check_system("forms/form-qkdots", 6, 3e-5, true); /* steep: a layer norm of small numbers */
  check_system("forms/form-cap8", 6, 3e-4, true);
}

static void forces_of_other_degrees_are_differences(void **state)
{
  (void)state;
  check_system("made/degree-1", 0, 3e-4, true);
  check_system("made/degree-1-cluster", 6, 3e-4, true);
  check_system("made/degree-3", 0, 3e-4, true);
  check_system("made/degree-3-cluster", 6, 3e-4, true);
  check_system("made/degree-3-qkdot", 6, 3e-4, true);
  check_system("made/degree-3-qkdots", 6, 3e-5, true);
  check_system("made/sphere-cluster", 6, 3e-4, true);
}

static void forces_of_split_radial_networks_are_differences(void **state)
{
  (void)state;
  check_model("molecule-first", true, 0, 3e-4, true);
  check_model("triclinic-cluster", true, 6, 3e-4, true);
  check_model("kcl64-smooth", true, 4, 1e-3, false);
  check_model("forms/form-qkdot", true, 4, 3e-4, true);
  check_model("made/degree-3", true, 4, 3e-4, true);
}

/* Largest relative error of plain differences with step h, whatever edges do. */
static double plain_error(bench *b, double h)
{
  double worst = 0;
  for (ts_lidx i = 0; i < b->system->n; i++)
    for (int k = 0; k < 3; k++)
      worst = fmax(worst, fabs(slope(b, i, k, h, false) + b->f[i][k]) / b->largest);
  return worst;
}

static void scan(const char *name)
{
  golden_case c = case_read(name);
  c.desc.floor = TS_FLOOR_ABSOLUTE;
  ts_model *model = case_model(&c, true);
  bench b = bench_create(model, c.system);
  double before = plain_error(&b, 1e-1);
  for (double h = 1e-2; h > 0.9e-5; h /= 10) {
    const double error = plain_error(&b, h);
    print_message("%-24s h %.0e A: relative error %.1e\n", name, h, error);
    assert_true(error < 2e-9 || (before / error > 50 && before / error < 200));
    before = error;
  }
  assert_true(before < 1e-8);
  bench_release(&b);
  ts_model_destroy(&model);
  case_release(&c);
}

static void errors_fall_as_h2(void **state)
{
  (void)state;
  scan("molecule-first");
  scan("molecule-zero");
  scan("triclinic-first");
  scan("slab-zero");
}

/* The two stages of this model end at 5 and 8 Å; a potassium is moved in and out beside OH. */
static const uint8_t three_z[3] = {8, 1, 19};
static const double three_x[3][3] = {{0, 0, 0}, {0.3, 0.9, 0.1}, {0, 0, 0}};
static const double away[3] = {0.6, -0.48, 0.64};

static ts_model *smooth_model(ts_softmax_floor floor)
{
  golden_case c = case_read("kcl64-smooth");
  c.desc.floor = floor;
  ts_model *model = case_model(&c, true);
  case_release(&c);
  return model;
}

static void pull_apart(bench *b, double r, double *energy, double force[3][3])
{
  for (ts_lidx i = 0; i < b->system->n; i++)
    if (b->system->z[i] == 19)
      for (int k = 0; k < 3; k++)
        b->system->x[i][k] = r * away[k];
  evaluate(b);
  *energy = case_energy(b->step, b->system);
  case_results(b->step, b->system, NULL, force);
}

/* By how much energy and force jump where the potassium's edge to the oxygen ends. */
static void jump(const ts_model *model, double cutoff, double *energy, double *force)
{
  ts_system *system = case_system(NULL, 3, three_z, three_x);
  system->x[2][0] = 3;
  bench b = bench_create(model, system);
  double in, out, f_in[3][3], f_out[3][3];
  pull_apart(&b, cutoff - 1e-10, &in, f_in);
  pull_apart(&b, cutoff + 1e-10, &out, f_out);
  *energy = fabs(out - in);
  *force = case_difference(9, f_in[0], f_out[0]);
  bench_release(&b);
  ts_system_destroy(&system);
}

static void smooth_floor_is_continuous(void **state)
{
  (void)state;
  ts_model *smooth = smooth_model(TS_FLOOR_ABSOLUTE), *published = smooth_model(TS_FLOOR_MAX);
  double energy, force, largest = 0;
  for (int stage = 0; stage < 2; stage++) {
    jump(smooth, smooth->desc.stage[stage].cutoff, &energy, &force);
    print_message("absolute, at %g A: energy jumps by %.1e eV, a force by %.1e eV/A\n",
                  smooth->desc.stage[stage].cutoff, energy, force);
    assert_true(energy < 1e-9);
    assert_true(force < 1e-7);
    jump(published, smooth->desc.stage[stage].cutoff, &energy, &force);
    print_message("max, at %g A: energy jumps by %.1e eV\n", smooth->desc.stage[stage].cutoff,
                  energy);
    largest = fmax(largest, energy);
  }
  assert_true(largest > 1e-5); /* the test sees jumps */
  ts_model_destroy(&smooth);
  ts_model_destroy(&published);
}

/* The potassium goes from inside one cutoff to outside the other: forces are differences on every
 * stretch, also across the ends. */
static void forces_are_differences_across_cutoffs(void **state)
{
  (void)state;
  static const double distance[] = {4.9, 4.999, 5, 5.00001, 5.1, 7.9, 7.999, 8, 8.00001, 8.1};
  ts_model *model = smooth_model(TS_FLOOR_ABSOLUTE);
  double worst = 0;
  for (size_t i = 0; i < sizeof distance / sizeof *distance; i++) {
    ts_system *system = case_system(NULL, 3, three_z, three_x);
    for (int k = 0; k < 3; k++)
      system->x[2][k] = distance[i] * away[k];
    bench b = bench_create(model, system);
    worst = fmax(worst, gradient_error(&b, 3, 2e-5, false));
    bench_release(&b);
    ts_system_destroy(&system);
  }
  print_message("across cutoffs: relative error of forces %.1e\n", worst);
  assert_true(worst <= 1e-7);
  ts_model_destroy(&model);
}

/* Two atoms pulled apart in steps of 0.001 Å: the energy changes by the work of the force, and
 * beyond the cutoff both are those of lone atoms. */
static void a_pair_comes_apart(void **state)
{
  (void)state;
  golden_case c = case_read("pair");
  ts_model *model = case_model(&c, true);
  bench b = bench_create(model, c.system);
  double lone = 0, before = 0, pull_before = 0, worst = 0;
  for (int s = -1; s <= 200; s++) {
    const double r = s < 0 ? 6 : 4.9 + 0.001 * s;
    memset(c.system->x, 0, 2 * sizeof *c.system->x);
    c.system->x[1][2] = r;
    evaluate(&b);
    const double energy = case_energy(b.step, c.system), pull = ts_step_forces(b.step)[1][2];
    if (s < 0) lone = energy;
    if (s > 0) worst = fmax(worst, fabs(energy - before + 0.0005 * (pull + pull_before)));
    if (r > 5) assert_true(energy == lone && pull == 0);
    before = energy;
    pull_before = pull;
  }
  print_message("pair: energy and work differ by at most %.1e eV in 0.001 A\n", worst);
  assert_true(worst < 2e-7);
  bench_release(&b);
  ts_model_destroy(&model);
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forces_are_differences),
      cmocka_unit_test(forces_of_other_forms_are_differences),
      cmocka_unit_test(forces_of_other_degrees_are_differences),
      cmocka_unit_test(forces_of_split_radial_networks_are_differences),
      cmocka_unit_test(errors_fall_as_h2),
      cmocka_unit_test(smooth_floor_is_continuous),
      cmocka_unit_test(forces_are_differences_across_cutoffs),
      cmocka_unit_test(a_pair_comes_apart),
  };
  ts_engine *engine = case_engine(1, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ts_engine_destroy(&engine);
  return failed;
}
