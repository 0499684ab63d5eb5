/* SPDX-License-Identifier: MIT
 *
 * A golden file as a system and a seeded model, ready to be evaluated: shared by the tests that
 * need forces of something known. */
#ifndef TS_TEST_CASE_H
#define TS_TEST_CASE_H

#include "md/step.h"
#include "models/seed.h"
#include "runtime/engine.h"

typedef struct golden_case {
  char name[64];
  ts_model_desc desc;
  ts_weights *weights;
  ts_system *system;
  double energy;       /* [eV] */
  double *atom_energy; /* [n] by gid */
  double (*force)[3];  /* [n,3] by gid */
} golden_case;

/** The folder of the test data; borrowed. */
const char *case_data(void);

/** Read a golden file (a name without '/' is looked up in the test data); exits on failure. */
golden_case case_read(const char *name);
void case_release(golden_case *c);

/** The model of a case; exits on failure. */
ts_model *case_model(const golden_case *c, bool is_double);

/** The same with the kernels of one instruction set (ts_kernels_find knows it). */
ts_model *case_model_isa(const golden_case *c, bool is_double, const char *isa);

/** The same with a matrix back end, too. */
ts_model *case_model_on(const golden_case *c, bool is_double, const char *matrix, const char *isa);

/** The same as case_model_isa with the first layers of the radial networks split. */
ts_model *case_model_split(const golden_case *c, bool is_double, const char *isa);

/** Parameters of a step for a model, skin as given, everything else default. */
ts_step_params case_params(const ts_model *model, double skin);

/** Copy results of the last evaluation by gid; any of the arrays may be NULL. */
void case_results(const ts_step *step, const ts_system *system, double *energy, double (*force)[3]);

/** Total energy [eV] of the last evaluation, summed over gids in double. */
double case_energy(const ts_step *step, const ts_system *system);

/** Atoms in a cell that is periodic in all directions (h NULL: isolated), owned by the caller. */
ts_system *case_system(const double h[3][3], ts_lidx n, const uint8_t *z, const double (*x)[3]);

/** Another system with the same atoms, owned by the caller. */
ts_system *case_copy(const ts_system *system);

/** What one evaluation of a system gave, by gid. */
typedef struct case_output {
  ts_lidx n;
  double total;       /* [eV] */
  double *energy;     /* [n] [eV] */
  double (*force)[3]; /* [n,3] [eV/Å] */
  double virial[9];   /* dE/d(strain) [eV] */
} case_output;

/** Evaluate a copy of a system once; exits on failure. */
case_output case_evaluate(const ts_step_params *params, const ts_system *system);
void case_output_release(case_output *out);

/** Largest difference of two sets of numbers, and their largest magnitude; NaN counts as
 * infinity. */
double case_difference(size_t count, const double *a, const double *b);
double case_largest(size_t count, const double *a);

/** A pseudo-random number in [-1, 1). */
double case_random(uint64_t *state);

/** Exit with the message of the last failure unless status is 0. */
void must(int status);

/** Start the engine with `workers` (0: automatic) and a scheduler (NULL: default). */
ts_engine *case_engine(int workers, const char *scheduler);

#endif
