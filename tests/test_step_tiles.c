/* SPDX-License-Identifier: MIT
 *
 * How the work is cut and who does it changes no bit: any tile size, any share of recomputed
 * intermediates, any number of workers, any scheduler, any order of the atoms in memory.  Each
 * setting runs in a process of its own (StarPU starts once in each): an evaluation and a few steps
 * of dynamics with rebuilds and sorts; energies, forces, positions and the sums over all atoms are
 * compared by their bits.  Only another matrix back end or instruction set rounds differently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "md/velocities.h"
#include "runtime/error.h"
#include "models/amx.h"
#include "tests/case.h"
#include "tests/watchdog.h"

enum { MOST_ATOMS = 256, STEPS = 4 };

/* What a setting gave, by gid; shared with the child that computes it. */
typedef struct outcome {
  double energy[MOST_ATOMS], force[MOST_ATOMS][3], x[MOST_ATOMS][3];
  double total, virial[6], kinetic[6];
} outcome;

typedef struct setting {
  int workers;
  const char *scheduler;
  int tile_atoms;
  double recompute;
  bool reversed; /* atoms in memory in the opposite order, with their ids */
} setting;

static const setting usual = {.workers = 1, .tile_atoms = 16};

static outcome *outcome_create(void)
{
  void *shared =
      mmap(NULL, sizeof(outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  return shared;
}

static void reverse(ts_system *system)
{
  ts_lidx order[MOST_ATOMS];
  for (ts_lidx i = 0; i < system->n; i++)
    order[i] = system->n - 1 - i;
  must(ts_system_permute(system, order));
}

/* One evaluation, then dynamics with a rebuild on every second step and a sort on every third. */
static void compute(const ts_model *model, ts_system *system, const setting *s, outcome *out)
{
  const ts_motion motion = {.timestep = 0.1};
  ts_velocity_sums sums = {0};
  ts_step_params params = case_params(model, 0.5);
  ts_partial total;
  ts_step *step;
  ts_engine *engine = case_engine(s->workers, s->scheduler);
  params.tile_atoms = s->tile_atoms;
  params.recompute = s->recompute;
  params.rebuild = 2;
  params.period = 3;
  ts_velocities_draw(1, system->n, system->gid, system->mass, system->v, &sums);
  ts_velocities_settle(300, &sums, system->n, system->v);
  if (s->reversed) reverse(system);
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  for (int i = 1; i <= STEPS; i++)
    must(ts_step_advance(step, &motion, i, &total));
  case_results(step, system, out->energy, out->force);
  for (ts_lidx i = 0; i < system->n; i++)
    memcpy(out->x[system->gid[i]], system->x[i], sizeof system->x[i]);
  out->total = ts_sum_value(&total.energy);
  for (int k = 0; k < 6; k++) {
    out->virial[k] = ts_sum_value(&total.virial[k]);
    out->kinetic[k] = ts_sum_value(&total.kinetic[k]);
  }
  ts_step_destroy(&step);
  ts_engine_destroy(&engine);
}

/* The same in a child; false if it fails or hangs. */
static bool compute_apart(const ts_model *model, const golden_case *c, const setting *s,
                          outcome *out)
{
  memset(out, 0, sizeof *out);
  const pid_t child = fork();
  if (child == 0) {
    watchdog(400);
    ts_system *system = case_copy(c->system);
    compute(model, system, s, out);
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status)
    print_message("%d workers, scheduler %s, tiles of %d: wait status %#x\n", s->workers,
                  s->scheduler ? s->scheduler : "default", s->tile_atoms, (unsigned)status);
  return status == 0;
}

static double relative(size_t n, const double *a, const double *b)
{
  return case_difference(n, a, b) / case_largest(n, a);
}

/* Number of settings that fail or do not give the bits of `base`. */
static int count_others(const ts_model *model, const golden_case *c, const outcome *base, int count,
                        const setting *settings)
{
  const size_t n = (size_t)c->system->n;
  outcome *out = outcome_create();
  int others = 0;
  for (int i = 0; i < count; i++) {
    const setting *s = &settings[i];
    const bool ran = compute_apart(model, c, s, out);
    if (ran && memcmp(out, base, sizeof *out) == 0) continue;
    others++;
    print_message(
        "%s in %s, %d workers, scheduler %s, tiles of %d, recompute %g: energies differ "
        "by %.1e, forces by %.1e, positions by %.1e\n",
        c->name, model->is_double ? "double" : "float", s->workers,
        s->scheduler ? s->scheduler : "default", s->tile_atoms, s->recompute,
        relative(n, base->energy, out->energy), relative(3 * n, base->force[0], out->force[0]),
        relative(3 * n, base->x[0], out->x[0]));
  }
  munmap(out, sizeof *out);
  return others;
}

static void expect_same_bits(const char *name, bool is_double, ts_lidx most, int count,
                             const setting *settings)
{
  golden_case c = case_read(name);
  if (most) c.system->n = c.system->natoms = most;
  ts_model *model = case_model(&c, is_double);
  outcome *base = outcome_create();
  assert_true(compute_apart(model, &c, &usual, base));
  assert_true(base->total != 0 && base->kinetic[0] > 0);
  assert_int_equal(count_others(model, &c, base, count, settings), 0);
  munmap(base, sizeof *base);
  ts_model_destroy(&model);
  case_release(&c);
}

#define EXPECT_SAME_BITS(name, is_double, most, settings) \
  expect_same_bits(name, is_double, most, (int)(sizeof(settings) / sizeof(settings)[0]), settings)

static void any_tile(void **state)
{
  (void)state;
  static const setting settings[] = {
      {1, NULL, 1, 0, false},    {1, NULL, 1, 1, false},      {2, NULL, 7, 0.5, false},
      {2, NULL, 0, 0, false},    {1, NULL, 16, 1, false},     {2, NULL, 64, 0.5, true},
      {2, NULL, 1000, 0, false}, {1, NULL, 1000, 0.5, false}, {2, NULL, 5, 1, true}};
  for (int precision = 0; precision < 2; precision++) {
    EXPECT_SAME_BITS("triclinic-cluster", precision == 1, 0, settings);
    EXPECT_SAME_BITS("slab-zero", precision == 1, 0, settings);
  }
}

/* More atoms and tiles, a long stage that continues from the short one. */
static void many_tiles(void **state)
{
  (void)state;
  static const setting settings[] = {
      {2, NULL, 7, 0.5, false}, {1, NULL, 64, 1, true}, {4, NULL, 24, 0, false}};
  EXPECT_SAME_BITS("kcl64-chain-first", false, 0, settings);
  EXPECT_SAME_BITS("kcl64-chain-first", true, 0, settings);
}

/* The published width: matrices of 256 and 512 rows, where a product may be cut into blocks. */
static void full_width(void **state)
{
  (void)state;
  static const setting settings[] = {
      {2, NULL, 1, 0, false}, {1, NULL, 7, 1, false}, {2, NULL, 40, 0.5, false}};
  EXPECT_SAME_BITS("water64-full", false, 12, settings);
}

static void any_scheduler(void **state)
{
  (void)state;
  const char *names[128];
  setting settings[128];
  const int count = ts_engine_schedulers(names, 128);
  assert_true(count > 0 && count <= 128);
  for (int i = 0; i < count; i++)
    settings[i] = (setting){.workers = 2, .scheduler = names[i], .tile_atoms = 4};
  expect_same_bits("triclinic-cluster", false, 0, count, settings);
}

static void other_arithmetic_is_close(void **state)
{
  (void)state;
  static const char *const given[][2] = {
      {"cblas", "auto"}, {"packed", "base"}, {"packed", "v3"}, {"packed", "v4"}, {"amx3", "auto"}};
  golden_case c = case_read("triclinic-cluster");
  const size_t n = (size_t)c.system->n;
  outcome *base = outcome_create(), *out = outcome_create();
  for (int precision = 0; precision < 2; precision++) {
    ts_model *model = case_model(&c, precision == 1);
    assert_true(compute_apart(model, &c, &usual, base));
    ts_model_destroy(&model);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
      if (!ts_kernels_find(precision == 1, given[i][1])) continue;
      if (!strcmp(given[i][0], "amx3") && (precision == 1 || !ts_amx_ops(3))) continue;
      model = case_model_on(&c, precision == 1, given[i][0], given[i][1]);
      assert_true(compute_apart(model, &c, &usual, out));
      const double energy = relative(n, base->energy, out->energy),
                   force = relative(3 * n, base->force[0], out->force[0]);
      print_message("%s, matrix %s, instructions %s: energies differ by %.1e, forces by %.1e\n",
                    precision ? "double" : "float", given[i][0], given[i][1], energy, force);
      assert_true(energy <= (precision ? 1e-11 : 4e-6));
      assert_true(force <= (precision ? 1e-11 : 1e-5));
      ts_model_destroy(&model);
    }
  }
  munmap(base, sizeof *base);
  munmap(out, sizeof *out);
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_tile),
      cmocka_unit_test(many_tiles),
      cmocka_unit_test(full_width),
      cmocka_unit_test(any_scheduler),
      cmocka_unit_test(other_arithmetic_is_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
