/* SPDX-License-Identifier: MIT
 *
 * What must not matter does not: where the system is, how it is turned, in which order and in which
 * periods its atoms are given, how many copies of the cell are written down.  Energies of atoms and
 * forces are compared in double and in float, on a triclinic crystal with both stages, an isolated
 * molecule and a slab.  And the smallest systems have sound results: one atom, two far apart, an
 * atom that sees only its own images, a long stage without edges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/memory.h"
#include "tests/case.h"

/* One golden system under one precision, and its results as given. */
typedef struct subject {
  golden_case c;
  ts_model *model;
  case_output base;
  double energy_tolerance, force_tolerance; /* of the largest energy of an atom, and force */
} subject;

static const double unit[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

static case_output evaluate(const ts_model *model, const ts_system *system)
{
  const ts_step_params params = case_params(model, 0.5);
  return case_evaluate(&params, system);
}

/* Atom i of `system` is atom i mod n of the subject; forces are turned by `turn`. */
static void expect_same(const subject *s, const ts_system *system, const double turn[3][3],
                        const char *change)
{
  case_output out = evaluate(s->model, system);
  double energy = 0, force = 0, net[3] = {0};
  const double largest = case_largest(3 * (size_t)s->base.n, s->base.force[0]);
  for (ts_lidx i = 0; i < out.n; i++) {
    const ts_lidx j = i % s->base.n;
    double turned[3] = {0};
    for (int k = 0; k < 3; k++)
      for (int l = 0; l < 3; l++)
        turned[k] += turn[k][l] * s->base.force[j][l];
    energy = fmax(energy, case_difference(1, &out.energy[i], &s->base.energy[j]));
    force = fmax(force, case_difference(3, out.force[i], turned));
    for (int k = 0; k < 3; k++)
      net[k] += out.force[i][k];
  }
  energy /= case_largest((size_t)s->base.n, s->base.energy);
  print_message("%-18s %-6s %-28s energies %.1e, forces %.1e, net force %.1e\n", s->c.name,
                s->model->is_double ? "double" : "float", change, energy, force / largest,
                case_largest(3, net) / largest);
  assert_true(energy <= s->energy_tolerance);
  assert_true(force <= s->force_tolerance * largest);
  assert_true(case_largest(3, net) <= 1e-12 * largest);
  case_output_release(&out);
}

static void check_translations(const subject *s)
{
  static const double by[][3] = {{0.37, -1.21, 2.9}, {-1234.5, 4321.3, 777.7}, {1e4, 1e4, -1e4}};
  for (int t = 0; t < 4; t++) {
    ts_system *moved = case_copy(s->c.system);
    char change[64];
    for (ts_lidx i = 0; i < moved->n; i++)
      for (int k = 0; k < 3; k++)
        moved->x[i][k] += t < 3 ? by[t][k] : -s->c.system->x[0][k];
    if (t < 3)
      snprintf(change, sizeof change, "moved by %g %g %g", by[t][0], by[t][1], by[t][2]);
    else
      snprintf(change, sizeof change, "atom 1 at the origin");
    expect_same(s, moved, unit, change);
    ts_system_destroy(&moved);
  }
}

/* x = turn x for positions and cell vectors. */
static void turn_system(ts_system *system, const double turn[3][3])
{
  double cell[3][3] = {{0}}, x[3];
  for (int m = 0; m < 3; m++)
    for (int k = 0; k < 3; k++)
      for (int l = 0; l < 3; l++)
        cell[m][k] += turn[k][l] * system->cell.h[m][l];
  must(ts_cell_init(&system->cell, (const double(*)[3])cell, system->cell.periodic));
  for (ts_lidx i = 0; i < system->n; i++) {
    memcpy(x, system->x[i], sizeof x);
    for (int k = 0; k < 3; k++)
      system->x[i][k] = turn[k][0] * x[0] + turn[k][1] * x[1] + turn[k][2] * x[2];
  }
}

/* The rotation of a quaternion. */
static void rotation(const double q[4], double turn[3][3])
{
  const double n = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  const double v[3] = {q[1], q[2], q[3]};
  for (int k = 0; k < 3; k++)
    for (int l = 0; l < 3; l++) {
      const double cross = k == l ? 0 : ((l - k + 3) % 3 == 1 ? -1 : 1) * v[3 - k - l];
      turn[k][l] =
          (k == l) * (1 - 2 * (n - q[0] * q[0]) / n) + 2 * (v[k] * v[l] + q[0] * cross) / n;
    }
}

static void check_rotations(const subject *s)
{
  uint64_t random = 5;
  for (int t = 0; t < 3; t++) {
    double q[4], turn[3][3];
    for (int k = 0; k < 4; k++)
      q[k] = case_random(&random);
    rotation(q, turn);
    ts_system *turned = case_copy(s->c.system);
    turn_system(turned, (const double(*)[3])turn);
    expect_same(s, turned, (const double(*)[3])turn, "turned with the cell");
    ts_system_destroy(&turned);
  }
}

/* Every atom in a period of its own, up to 40 away. */
static void check_wrapping(const subject *s)
{
  uint64_t random = 6;
  ts_system *moved = case_copy(s->c.system);
  for (ts_lidx i = 0; i < moved->n; i++)
    for (int m = 0; m < 3; m++) {
      const double periods = moved->cell.periodic[m] ? floor(40 * case_random(&random)) : 0;
      for (int k = 0; k < 3; k++)
        moved->x[i][k] += periods * moved->cell.h[m][k];
    }
  expect_same(s, moved, unit, "in other periods");
  ts_system_destroy(&moved);
}

/* The rows of the file in another order: gid says nothing about who is who. */
static void check_permutation(const subject *s)
{
  const ts_lidx n = s->base.n;
  ts_system *mixed = case_copy(s->c.system);
  subject other = *s;
  must(TSI_NEW(other.base.energy, n));
  must(TSI_NEW(other.base.force, n));
  for (ts_lidx i = 0; i < n; i++) {
    const ts_lidx from = (7 * i + 3) % n; /* n is no multiple of 7 */
    memcpy(mixed->x[i], s->c.system->x[from], sizeof mixed->x[i]);
    mixed->z[i] = s->c.system->z[from];
    other.base.energy[i] = s->base.energy[from];
    memcpy(other.base.force[i], s->base.force[from], sizeof other.base.force[i]);
  }
  assert_true(n % 7 != 0);
  expect_same(&other, mixed, unit, "in another order");
  case_output_release(&other.base);
  ts_system_destroy(&mixed);
}

static ts_system *replicated(const ts_system *system, const int times[3])
{
  const ts_lidx n = system->n, copies = times[0] * times[1] * times[2];
  ts_system *out;
  double cell[3][3];
  must(ts_system_create(n * copies, n * copies, &out));
  for (int m = 0; m < 3; m++)
    for (int k = 0; k < 3; k++)
      cell[m][k] = times[m] * system->cell.h[m][k];
  must(ts_cell_init(&out->cell, (const double(*)[3])cell, system->cell.periodic));
  for (ts_lidx i = 0; i < n * copies; i++) {
    const ts_lidx copy = i / n;
    const int at[3] = {copy % times[0], copy / times[0] % times[1], copy / times[0] / times[1]};
    for (int k = 0; k < 3; k++)
      out->x[i][k] = system->x[i % n][k] + at[0] * system->cell.h[0][k] +
                     at[1] * system->cell.h[1][k] + at[2] * system->cell.h[2][k];
    out->z[i] = system->z[i % n];
    out->mass[i] = system->mass[i % n];
  }
  return out;
}

static void check_replication(const subject *s)
{
  static const int times[][3] = {{2, 1, 1}, {1, 1, 2}, {2, 2, 2}};
  for (int t = 0; t < 3; t++) {
    int allowed[3];
    char change[64];
    for (int m = 0; m < 3; m++)
      allowed[m] = s->c.system->cell.periodic[m] ? times[t][m] : 1;
    ts_system *larger = replicated(s->c.system, allowed);
    snprintf(change, sizeof change, "%d x %d x %d cells", allowed[0], allowed[1], allowed[2]);
    expect_same(s, larger, unit, change);
    ts_system_destroy(&larger);
  }
}

/* The same twice, by one step object and by two. */
static void check_repetition(const subject *s)
{
  const ts_step_params params = case_params(s->model, 0.5);
  const size_t n = (size_t)s->base.n;
  ts_system *copy = case_copy(s->c.system);
  ts_step *step;
  ts_partial total;
  case_output again = {.n = s->base.n};
  must(TSI_NEW(again.energy, n));
  must(TSI_NEW(again.force, n));
  must(ts_step_create(&params, copy, &step));
  for (int repeat = 0; repeat < 3; repeat++) {
    must(ts_step_evaluate(step, 0, &total));
    case_results(step, copy, again.energy, again.force);
    assert_memory_equal(again.energy, s->base.energy, n * sizeof *again.energy);
    assert_memory_equal(again.force, s->base.force, n * sizeof *again.force);
  }
  ts_step_destroy(&step);
  ts_system_destroy(&copy);
  case_output_release(&again);
}

static void check_subject(const char *name, bool is_double)
{
  subject s = {.c = case_read(name)};
  s.model = case_model(&s.c, is_double);
  s.energy_tolerance = is_double ? 1e-10 : 4e-6; /* each of the two is good to 2e-6 */
  s.force_tolerance = is_double ? 1e-10 : 1e-5;
  s.base = evaluate(s.model, s.c.system);
  check_repetition(&s);
  check_translations(&s);
  if (s.c.desc.head_kind != TS_HEAD_SPHERE) /* its directions stay where they are */
    check_rotations(&s);
  check_wrapping(&s);
  check_permutation(&s);
  check_replication(&s);
  case_output_release(&s.base);
  ts_model_destroy(&s.model);
  case_release(&s.c);
}

static void in_double(void **state)
{
  (void)state;
  check_subject("triclinic-cluster", true);
  check_subject("molecule-first", true);
  check_subject("slab-zero", true);
}

static void other_forms(void **state)
{
  static const char *const name[] = {"forms/form-softplus",    "forms/form-sigmoid",
                                     "forms/form-sphere-head", "forms/form-qkdot",
                                     "forms/form-qkdots",      "forms/form-cap8"};
  (void)state;
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    check_subject(name[i], true);
  check_subject("made/sphere-cluster", false);
}

static void other_degrees(void **state)
{
  (void)state;
  check_subject("made/degree-1-cluster", true);
  check_subject("made/degree-1-qkdot", true);
  check_subject("made/degree-3-cluster", true);
  check_subject("made/degree-3-qkdots", true);
  check_subject("made/degree-3", false);
}

static void in_float(void **state)
{
  (void)state;
  check_subject("triclinic-cluster", false);
  check_subject("molecule-first", false);
  check_subject("slab-zero", false);
}

/* Lone atoms, isolated and in a wide cell; two of them apart; potassium and oxygen. */
static void check_lone(const ts_model *model)
{
  static const double wide[3][3] = {{100, 0, 0}, {0, 100, 0}, {0, 0, 100}};
  static const double x[2][3] = {{50, 50, 50}, {58, 50, 56}};
  static const uint8_t z[2] = {19, 8};
  double lone = 0;
  for (int i = 0; i < 4; i++) {
    ts_system *system = case_system(i < 2 ? NULL : wide, 1, &z[i % 2], &x[i % 2]);
    case_output out = evaluate(model, system);
    assert_true(isfinite(out.total) && out.total != 0);
    for (int k = 0; k < 9; k++)
      assert_true(out.virial[k] == 0 && out.force[0][k % 3] == 0);
    if (i < 2) lone += out.total;
    case_output_release(&out);
    ts_system_destroy(&system);
  }
  for (int i = 0; i < 2; i++) {
    ts_system *system = case_system(i ? wide : NULL, 2, z, x);
    case_output out = evaluate(model, system);
    assert_true(out.total == lone);
    assert_true(case_largest(6, out.force[0]) == 0);
    case_output_release(&out);
    ts_system_destroy(&system);
  }
}

/* One atom in a cell that is smaller than the cutoffs: it sees its own images, and as much as the
 * atoms of a larger piece of the same crystal do.  (With the published floor the forces would not
 * vanish: all scores of a shell are the largest, and rounding decides which of them counts.) */
static void check_images(const ts_model *model)
{
  static const double cubic[3][3] = {{4.1, 0, 0}, {0, 4.1, 0}, {0, 0, 4.1}}, x[1][3] = {{1, 2, 3}};
  static const uint8_t z[1] = {8};
  static const int times[3] = {3, 3, 3};
  ts_system *small = case_system(cubic, 1, z, x), *large = replicated(small, times);
  case_output one = evaluate(model, small), many = evaluate(model, large);
  double energy = 0;
  for (ts_lidx i = 0; i < many.n; i++)
    energy = fmax(energy, fabs(many.energy[i] - one.energy[0]) / fabs(one.energy[0]));
  const double force = case_largest(3, one.force[0]);
  const double forces = case_largest(3 * (size_t)many.n, many.force[0]);
  print_message("own images  %-6s energy %g eV differs by %.1e, forces %.1e and %.1e eV/A\n",
                model->is_double ? "double" : "float", one.energy[0], energy, force, forces);
  assert_true(energy <= (model->is_double ? 1e-12 : 1e-5));
  assert_true(fmax(force, forces) <= (model->is_double ? 1e-12 : 1e-4));
  case_output_release(&one);
  case_output_release(&many);
  ts_system_destroy(&small);
  ts_system_destroy(&large);
}

/* Hydrogen does not send in the long stage: with nothing else that stage has no edge at all. */
static void check_empty_stage(const ts_model *model)
{
  static const double x[4][3] = {{0, 0, 0}, {0.8, 0.3, 0}, {-0.2, 1.4, 0.9}, {6.5, 0, 0}};
  static const uint8_t z[4] = {1, 1, 1, 1};
  const ts_step_params params = case_params(model, 0.5);
  ts_system *system = case_system(NULL, 4, z, x);
  ts_step *step;
  ts_partial total;
  uint64_t hash;
  int64_t active;
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  must(ts_step_topology(step, 1, &hash, &active));
  assert_int_equal(active, 0);
  must(ts_step_topology(step, 0, &hash, &active));
  assert_int_equal(active, 6);
  double net[3] = {0}, force[4][3];
  case_results(step, system, NULL, force);
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++)
      net[k] += force[i][k];
  assert_true(isfinite(ts_sum_value(&total.energy)));
  assert_true(case_largest(9, force[0]) > 1e-3 && case_largest(3, force[3]) == 0);
  assert_true(case_largest(3, net) < 1e-12);
  ts_step_destroy(&step);
  ts_system_destroy(&system);
}

static void smallest_systems(void **state)
{
  (void)state;
  golden_case c = case_read("triclinic-cluster");
  c.desc.floor = TS_FLOOR_ABSOLUTE;
  for (int precision = 0; precision < 2; precision++) {
    ts_model *model = case_model(&c, precision == 1);
    check_lone(model);
    check_images(model);
    check_empty_stage(model);
    ts_model_destroy(&model);
  }
  case_release(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_double),        cmocka_unit_test(in_float),
      cmocka_unit_test(other_forms),      cmocka_unit_test(other_degrees),
      cmocka_unit_test(smallest_systems),
  };
  ts_engine *engine = case_engine(0, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ts_engine_destroy(&engine);
  return failed;
}
