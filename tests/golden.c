/* SPDX-License-Identifier: MIT
 *
 * Golden systems: energies and forces of the model against recorded values, in double and float.
 * `golden FILE...` prints the errors of any such file; without arguments it checks the sixteen of
 * tests/data, those of the published code's other forms and those of other degrees, all but the
 * widest with the kernels of every instruction set that this CPU has, and some again with radial
 * networks whose first layer is split by element. Double: 1e-10 of the energy,
 * 1e-9 of the largest force. Float: 2e-6 of the largest atom energy, 1e-4 of the largest force. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/memory.h"
#include "models/amx.h"
#include "tests/case.h"

static const char *const all[] = {"cutoff-edge",
                                  "kcl64-chain-first",
                                  "kcl64-chain",
                                  "kcl64-cluster",
                                  "kcl64-smooth",
                                  "molecule-charged",
                                  "molecule-first",
                                  "molecule-mixed",
                                  "molecule-zero",
                                  "pair",
                                  "slab-zero",
                                  "triclinic-cluster-bell",
                                  "triclinic-cluster",
                                  "triclinic-first",
                                  "water216-first",
                                  "forms/form-softplus",
                                  "forms/form-sigmoid",
                                  "forms/form-sphere-head",
                                  "forms/form-qkdot",
                                  "forms/form-qkdots",
                                  "forms/form-cap8",
                                  "made/sphere-cluster",
                                  "made/degree-1",
                                  "made/degree-1-cluster",
                                  "made/degree-1-qkdot",
                                  "made/degree-3",
                                  "made/degree-3-cluster",
                                  "made/degree-3-qkdot",
                                  "made/degree-3-qkdots",
                                  "water64-full"};

/* Both merges, both orders, charge, the forms with other radial networks, every degree. */
static const char *const all_split[] = {"kcl64-chain-first",
                                        "kcl64-cluster",
                                        "molecule-charged",
                                        "molecule-mixed",
                                        "pair",
                                        "triclinic-first",
                                        "forms/form-softplus",
                                        "forms/form-qkdot",
                                        "forms/form-qkdots",
                                        "made/degree-1-cluster",
                                        "made/degree-3"};

typedef struct errors {
  double energy, atoms, force; /* relative: to |E|, the largest |atom energy|, the largest force */
} errors;

static errors compare(const golden_case *c, const ts_step *step)
{
  errors worst = {0};
  double *energy, (*force)[3], scale_e = 0, scale_f = 0, total = 0;
  const int n = c->system->n;
  must(TSI_NEW(energy, n));
  must(TSI_NEW(force, n));
  case_results(step, c->system, energy, force);
  for (int i = 0; i < n; i++) {
    total += energy[i];
    scale_e = fmax(scale_e, fabs(c->atom_energy[i]));
    worst.atoms = fmax(worst.atoms, fabs(energy[i] - c->atom_energy[i]));
    for (int k = 0; k < 3; k++) {
      scale_f = fmax(scale_f, fabs(c->force[i][k]));
      worst.force = fmax(worst.force, fabs(force[i][k] - c->force[i][k]));
    }
    if (!isfinite(energy[i]) || !isfinite(force[i][0] + force[i][1] + force[i][2]))
      worst.force = INFINITY;
  }
  worst.energy = fabs(total - c->energy) / fabs(c->energy);
  worst.atoms /= scale_e;
  worst.force /= scale_f;
  free(energy);
  free(force);
  return worst;
}

/* 1 if the file fails. */
static int check(const char *name, bool split, bool is_double, const char *matrix, const char *isa)
{
  golden_case c = case_read(name);
  ts_model *model =
      split ? case_model_split(&c, is_double, isa) : case_model_on(&c, is_double, matrix, isa);
  const ts_step_params params = case_params(model, 0.5);
  ts_step *step;
  ts_partial total;
  must(ts_step_create(&params, c.system, &step));
  must(ts_step_evaluate(step, 0, &total));
  const errors e = compare(&c, step);
  const bool ok =
      is_double ? e.energy <= 1e-10 && e.force <= 1e-9 : e.atoms <= 2e-6 && e.force <= 1e-4;
  printf("%-24s %-6s %-4s %-6s energy %8.1e  atoms %8.1e  force %8.1e  %-6s %8.1e  %s\n", c.name,
         is_double ? "double" : "float", model->kernels->isa, model->matrix->name, e.energy,
         e.atoms, e.force, model->embed.split ? "split" : "table", model->radial_error,
         ok ? "ok" : "FAILED");
  ts_step_destroy(&step);
  ts_model_destroy(&model);
  case_release(&c);
  return !ok;
}

int main(int argc, char **argv)
{
  static const char *const isas[] = {"auto", "v3", "base"};
  const int tables = sizeof all / sizeof all[0], splits = sizeof all_split / sizeof all_split[0];
  ts_engine *engine = case_engine(0, NULL);
  const int count = argc > 1 ? argc - 1 : tables + splits;
  int failed = 0, checks = 0;
  for (int i = 0; i < count; i++) {
    const bool split = argc == 1 && i >= tables, widest = argc == 1 && i == tables - 1;
    const char *name = argc > 1 ? argv[i + 1] : split ? all_split[i - tables] : all[i];
    for (int k = 0; k < (widest ? 1 : 3); k++) {
      if (!ts_kernels_find(true, isas[k])) continue;
      failed += check(name, split, true, "packed", isas[k]) +
                check(name, split, false, "packed", isas[k]);
      checks += 2;
    }
    if (split || !ts_amx_ops(3)) continue; /* a split one has had what is automatic */
    failed += check(name, false, false, "amx3", "auto");
    checks++;
  }
  ts_engine_destroy(&engine);
  printf("%d of %d failed\n", failed, checks);
  return failed > 0;
}
