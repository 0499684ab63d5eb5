/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_step_ranks.sh under mpirun: the same simulation on the ranks at hand and on
 * rank 0 alone.  Energies and forces agree to 1e-11 and 1e-10 (double), the active edges are the
 * same at every step, counts are exact, and in the reproducible mode every bit of the positions is
 * the same after dynamics with rebuilds and partitions on nearly every step.
 *
 *   step_ranks FILE...             golden systems, one evaluation in double and float
 *   step_ranks dynamics FILE...    steps in every variant
 *   step_ranks shapes FILE         cells that are hard, with the model of a golden system
 *   step_ranks example XYZ MODEL   steps of a structure in double and float */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/peers.h"
#include "md/velocities.h"
#include "md/xyz.h"
#include "models/tensors.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "tests/case.h"
#include "tests/ranks_start.h"
#include "tests/ranks_watchdog.h"

enum { STEPS = 6, SHAPE_ATOMS = 96 };

static int failures, steps = 4;
static struct {
  double energy, force; /* relative to the largest of an atom */
} worst[2];             /* of float and double */

static void check(bool ok, const char *name, const char *what, double value, double limit)
{
  if (ok) return;
  fprintf(stderr, "%d ranks, %s: %s: %g, expected at most %g\n", ranks.size, name, what, value,
          limit);
  failures++;
}

/* What a run gave, by gid, on every rank. */
typedef struct outcome {
  ts_gidx n;
  double *energy, *force, *x,
      *last_x; /* [n], [3n]: of the first evaluation, at the start and end */
  double total, virial[6];
  uint64_t hash[STEPS + 1][TS_MAX_STAGES];
  int64_t active[STEPS + 1][TS_MAX_STAGES];
  int64_t partitions; /* after the first */
} outcome;

static outcome outcome_create(ts_gidx n)
{
  outcome o = {.n = n};
  must(TSI_NEW(o.energy, n));
  must(TSI_NEW(o.force, 3 * n));
  must(TSI_NEW(o.x, 3 * n));
  must(TSI_NEW(o.last_x, 3 * n));
  return o;
}

static void outcome_free(outcome *o)
{
  free(o->energy);
  free(o->force);
  free(o->x);
  free(o->last_x);
}

/* The part of a system that rank r of k reads: a slice of ids. */
static ts_system *slice(const ts_system *whole, int r, int k)
{
  const ts_gidx first = whole->natoms * r / k, last = whole->natoms * (r + 1) / k;
  ts_system *s;
  must(ts_system_create(whole->natoms, (ts_lidx)(last - first), &s));
  s->cell = whole->cell;
  for (ts_gidx i = 0; i < whole->n; i++) {
    if (whole->gid[i] < first || whole->gid[i] >= last) continue;
    const ts_lidx to = (ts_lidx)(whole->gid[i] - first);
    s->gid[to] = whole->gid[i];
    s->z[to] = whole->z[i];
    s->mass[to] = whole->mass[i];
    memcpy(s->x[to], whole->x[i], sizeof s->x[to]);
    memcpy(s->v[to], whole->v[i], sizeof s->v[to]);
  }
  return s;
}

static void share(const ts_ranks *among, double *x, size_t n)
{
  if (among->size > 1) MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_SUM, among->comm);
}

static void topology(const ts_step *step, int stages, int number, outcome *o)
{
  for (int k = 0; k < stages; k++)
    must(ts_step_topology(step, k, &o->hash[number][k], &o->active[number][k]));
}

static outcome simulate(const ts_step_params *given, const ts_system *whole, const ts_ranks *among)
{
  const ts_motion motion = {.timestep = 0.2};
  outcome o = outcome_create(whole->natoms);
  ts_step_params params = *given;
  ts_system *system = slice(whole, among->first, among->size);
  ts_partial total;
  ts_step *step;
  const int stages = params.model->desc.nstages;
  params.ranks = among->size > 1 ? among : NULL;
  const int last = given->period || steps == 0 ? steps : STEPS;
  params.rebuild = 2;
  params.period = given->period ? 3 : 0;
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  o.total = ts_sum_value(&total.energy);
  for (int c = 0; c < 6; c++)
    o.virial[c] = ts_sum_value(&total.virial[c]);
  for (ts_lidx i = 0; i < system->n; i++) {
    o.energy[system->gid[i]] = ts_step_energy(step, i);
    memcpy(o.force + 3 * system->gid[i], ts_step_forces(step)[i], 3 * sizeof(double));
  }
  topology(step, stages, 0, &o);
  for (int i = 1; i <= last; i++) {
    must(ts_step_advance(step, &motion, i, &total));
    topology(step, stages, i, &o);
    const int64_t low = system->natoms / among->size,
                  high = low + (system->natoms % among->size > 0);
    check(given->weighted || (system->n >= low && system->n <= high), "counts", "atoms of a rank",
          system->n, (double)high);
  }
  for (ts_lidx i = 0; i < system->n; i++)
    for (int k = 0; k < 3; k++)
      o.last_x[3 * system->gid[i] + k] =
          system->x[i][k] + system->image[i][0] * system->cell.h[0][k] +
          system->image[i][1] * system->cell.h[1][k] + system->image[i][2] * system->cell.h[2][k];
  share(among, o.energy, (size_t)o.n);
  share(among, o.force, 3 * (size_t)o.n);
  share(among, o.last_x, 3 * (size_t)o.n);
  o.partitions = ts_step_statistics(step).rebuilds[TS_REBUILD_PARTITION];
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  return o;
}

static void compare(const char *name, const outcome *a, const outcome *b, bool is_double, bool bits)
{
  const size_t n = (size_t)a->n;
  const double de = case_difference(n, a->energy, b->energy);
  const double e = case_largest(n, b->energy), f = case_largest(3 * n, b->force);
  const double df = case_difference(3 * n, a->force, b->force);
  const double limit_e = is_double ? 1e-11 : 2e-6, limit_f = is_double ? 1e-10 : 1e-5;
  worst[is_double].energy = fmax(worst[is_double].energy, de / e);
  worst[is_double].force = fmax(worst[is_double].force, df / f);
  double total = is_double ? fabs(b->total) : 0; /* in float it may be little of what is summed */
  for (size_t i = 0; i < n && !is_double; i++)
    total += fabs(b->energy[i]);
  check(fabs(a->total - b->total) <= limit_e * total, name, "energy",
        fabs(a->total - b->total) / total, limit_e);
  check(de <= limit_e * e, name, "energy of an atom", de / e, limit_e);
  check(df <= limit_f * f, name, "force", df / f, limit_f);
  check(case_difference(6, a->virial, b->virial) <= 10 * limit_f * case_largest(6, b->virial), name,
        "virial", case_difference(6, a->virial, b->virial), limit_f);
  check(memcmp(a->hash, b->hash, sizeof a->hash) == 0, name, "active edges differ", 1, 0);
  check(memcmp(a->active, b->active, sizeof a->active) == 0, name, "edges counted differently", 1,
        0);
  if (bits) {
    check(memcmp(a->force, b->force, 3 * n * sizeof(double)) == 0, name, "bits of a force", df, 0);
    check(memcmp(a->last_x, b->last_x, 3 * n * sizeof(double)) == 0, name, "bits of a position",
          case_difference(3 * n, a->last_x, b->last_x), 0);
    check(memcmp(&a->total, &b->total, sizeof a->total) == 0, name, "bits of the energy", 1, 0);
  } else {
    const double dx = case_difference(3 * n, a->last_x, b->last_x);
    check(dx <= (is_double ? 1e-9 : 1e-4), name, "positions after dynamics", dx, 1e-9);
  }
}

typedef struct variant {
  const char *name;
  bool is_double, reproducible, no_overlap, faiss, morton, root_sort, weighted, travel;
  int level1, tile_atoms;
} variant;

static const variant variants[] = {
    {"double", .is_double = true, .level1 = TS_LEVEL1_BOX},
    {"float", .level1 = TS_LEVEL1_BOX, .faiss = true},
    {"reproducible", .is_double = true, .reproducible = true, .level1 = TS_LEVEL1_BOXES},
    {"reproducible float", .reproducible = true, .level1 = TS_LEVEL1_ALL, .root_sort = true},
    {"no overlap", .is_double = true, .no_overlap = true, .level1 = TS_LEVEL1_BINS, .morton = true},
    {"tiles of 5", .is_double = true, .tile_atoms = 5, .level1 = TS_LEVEL1_ROUTED},
    {"by edges", .is_double = true, .weighted = true, .level1 = TS_LEVEL1_BOX},
    {"automatic period", .is_double = true, .travel = true, .level1 = TS_LEVEL1_BOX},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* model: of the variant's precision */
static void run(const char *what, const ts_model *model, ts_system *system, const variant *v)
{
  if (system->natoms < ranks.size) return;
  ts_step_params params = case_params(model, 0.4);
  const ts_ranks alone = {.comm = MPI_COMM_NULL, .size = 1, .hosted = 1};
  ts_velocity_sums sums = {0};
  char name[128];
  snprintf(name, sizeof name, "%s, %s", what, v->name);
  params.tile_atoms = v->tile_atoms;
  params.reproducible = v->reproducible;
  params.overlap = !v->no_overlap;
  params.level1.scheme = (ts_level1_scheme)v->level1;
  params.backend = v->faiss ? TS_SEARCH_FAISS : TS_SEARCH_CELLS;
  params.partition =
      (ts_partition_params){.curve = v->morton ? TS_CURVE_MORTON : TS_CURVE_HILBERT,
                            .normalization = v->morton ? TS_NORMALIZE_LONGEST : TS_NORMALIZE_AXES,
                            .root_sort = v->root_sort};
  params.weighted = v->weighted;
  params.partition.slack = 0.5;
  params.collective = collective;
  params.transfers = ts_engine_transfers(engine);
  ts_velocities_draw(7, system->n, system->gid, system->mass, system->v, &sums);
  ts_velocities_settle(300, &sums, system->n, system->v);
  if (v->travel) { /* all atoms together, by nearly 1.2 Å a step */
    params.period = 0;
    for (ts_lidx i = 0; i < system->n; i++)
      system->v[i][0] += 5.8;
  }
  outcome many = simulate(&params, system, &ranks);
  if (ranks.first == 0) {
    outcome one = simulate(&params, system, &alone);
    compare(name, &many, &one, v->is_double, v->reproducible);
    check(many.partitions == one.partitions, name, "partitions", (double)many.partitions,
          (double)one.partitions);
    check(!v->travel || steps == 0 || one.partitions == 1, name, "automatic partitions",
          (double)one.partitions, 1);
    outcome_free(&one);
  }
  outcome_free(&many);
}

/* ---- shapes that partitions and halos find hard */

typedef struct shape {
  const char *name;
  ts_lidx n;
  double h[3][3];
  bool periodic[3];
  double low[3], high[3]; /* where the atoms are, in fractions */
  double blob;            /* part of the atoms that sit in the middle, densely */
} shape;

#define ALL          \
  {                  \
    true, true, true \
  }
#define CELL \
  {0, 0, 0}, \
  {          \
    1, 1, 1  \
  }
static const shape shapes[] = {
    {"thin along a", 60, {{3, 0, 0}, {0, 14, 0}, {0, 0, 14}}, ALL, CELL, 0},
    {"thin along b", 60, {{14, 0, 0}, {0, 3, 0}, {0, 0, 14}}, ALL, CELL, 0},
    {"thin along c", 60, {{14, 0, 0}, {0, 14, 0}, {0, 0, 3}}, ALL, CELL, 0},
    {"two atoms and their images", 8, {{4, 0, 0}, {1, 4, 0}, {-1, 1, 4}}, ALL, CELL, 0},
    {"across the faces",
     64,
     {{12, 0, 0}, {5, 12, 0}, {-4, 3, 12}},
     ALL,
     {-0.3, 0.6, 0.7},
     {0.3, 1.4, 1.5},
     0},
    {"slab with vacuum",
     72,
     {{12, 0, 0}, {0, 12, 0}, {0, 0, 60}},
     {true, true, false},
     {0, 0, 0.4},
     {1, 1, 0.6},
     0},
    {"droplet in a large box",
     64,
     {{80, 0, 0}, {0, 80, 0}, {0, 0, 80}},
     ALL,
     {0.45, 0.45, 0.45},
     {0.55, 0.55, 0.55},
     0},
    {"dense blob", SHAPE_ATOMS, {{20, 0, 0}, {0, 20, 0}, {0, 0, 20}}, ALL, CELL, 0.7},
    {"molecules far apart",
     24,
     {{90, 0, 0}, {0, 90, 0}, {0, 0, 90}},
     {false, false, false},
     CELL,
     0},
};

/* Atoms at random, none closer than 1 Å to another one's nearest image. */
static ts_system *make_shape(const shape *p, const ts_system *like)
{
  uint64_t state = 1;
  ts_system *s;
  must(ts_system_create(p->n, p->n, &s));
  must(ts_cell_init(&s->cell, p->h, p->periodic));
  for (ts_lidx i = 0; i < p->n; i++) {
    s->z[i] = like->z[i % like->n];
    s->mass[i] = like->mass[i % like->n];
    for (int tries = 0; tries < 10000; tries++) {
      const bool dense = i < p->blob * p->n;
      double t[3];
      for (int k = 0; k < 3; k++) {
        const double u = 0.5 + 0.5 * case_random(&state);
        t[k] = dense ? 0.35 + 0.3 * u : p->low[k] + u * (p->high[k] - p->low[k]);
      }
      for (int k = 0; k < 3; k++)
        s->x[i][k] = t[0] * p->h[0][k] + t[1] * p->h[1][k] + t[2] * p->h[2][k];
      double nearest = 1e9;
      for (ts_lidx j = 0; j < i; j++)
        for (int m = 0; m < 27; m++) {
          const int image[3] = {m % 3 - 1, m / 3 % 3 - 1, m / 9 - 1};
          double d2 = 0;
          for (int k = 0; k < 3; k++) {
            double d = s->x[i][k] - s->x[j][k];
            for (int l = 0; l < 3; l++)
              d += p->periodic[l] ? image[l] * p->h[l][k] : 0;
            d2 += d * d;
          }
          nearest = fmin(nearest, sqrt(d2));
        }
      if (nearest > (dense ? 1.2 : 1.0)) break;
    }
  }
  return s;
}

/* The models of a case, made once: their tables take longer than a step. */
typedef struct models {
  ts_model *of[2]; /* float, double */
} models;

static models models_of(const golden_case *c)
{
  return (models){{case_model(c, false), case_model(c, true)}};
}

static void models_destroy(models *m)
{
  ts_model_destroy(&m->of[0]);
  ts_model_destroy(&m->of[1]);
}

static void run_file(const char *file, int first, int last)
{
  golden_case c = case_read(file);
  models m = models_of(&c);
  for (int v = first; v < last; v++)
    run(c.name, m.of[variants[v].is_double], c.system, &variants[v]);
  models_destroy(&m);
  case_release(&c);
}

static void run_example(const char *structure, const char *model)
{
  const ts_ranks alone = ts_ranks_virtual(1);
  golden_case c = {.name = "example"};
  must(ts_xyz_read(&alone, structure, &c.system));
  must(ts_model_load(model, false, &c.desc, &c.weights));
  models m = models_of(&c);
  for (int v = 0; v < 2; v++)
    run(c.name, m.of[variants[v].is_double], c.system, &variants[v]);
  models_destroy(&m);
  case_release(&c);
}

static void run_shapes(const char *file)
{
  golden_case c = case_read(file);
  models m = models_of(&c);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    ts_system *s = make_shape(&shapes[i], c.system);
    run(shapes[i].name, m.of[variants[i % VARIANTS].is_double], s, &variants[i % VARIANTS]);
    ts_system_destroy(&s);
  }
  models_destroy(&m);
  case_release(&c);
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  ranks_watchdog(570);
  start();
  if (strcmp(mode, "shapes") == 0) {
    steps = 2;
    run_shapes(argv[2]);
  } else if (strcmp(mode, "dynamics") == 0) {
    for (int i = 2; i < argc; i++)
      run_file(argv[i], 0, VARIANTS);
  } else if (strcmp(mode, "example") == 0) {
    run_example(argv[2], argv[3]);
  } else {
    steps = 0;
    for (int i = 1; i < argc; i++)
      run_file(argv[i], 0, 2);
  }
  int total = failures;
  MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, ranks.comm);
  if (ranks.first == 0)
    printf("%d ranks: %d failed; most in double: energy %.1e, force %.1e; in float: %.1e, %.1e\n",
           ranks.size, total, worst[1].energy, worst[1].force, worst[0].energy, worst[0].force);
  stop();
  return total > 0;
}
