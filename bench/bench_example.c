/* SPDX-License-Identifier: MIT
 *
 * bench_example [ROUNDS [STRUCTURE]]: molecular dynamics of the example (salt water, 632 atoms, 32
 * channels) without output: steps per second with 1 worker and with all, in turn, in float and
 * double; medians of rounds of 20 steps. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/median.h"
#include "md/report.h"
#include "comm/peers.h"
#include "md/velocities.h"
#include "md/xyz.h"
#include "models/tensors.h"
#include "runtime/memory.h"
#include "tests/case.h"

enum { STEPS = 20, MOST = 32, VARIANTS = 4 };

static ts_model *load_model(const ts_system *system, bool is_double)
{
  ts_model_desc desc;
  ts_weights *weights;
  ts_model *model;
  int species[TS_MAX_ELEMENT], count = 0;
  bool seen[TS_MAX_ELEMENT] = {false};
  for (ts_lidx i = 0; i < system->n; i++)
    seen[system->z[i]] = true;
  for (int z = 0; z < TS_MAX_ELEMENT; z++)
    if (seen[z]) species[count++] = z;
  const ts_model_params params = {.is_double = is_double,
                                  .matrix = "auto",
                                  .isa = "auto",
                                  .nspecies = count,
                                  .species = species};
  must(ts_model_load(TS_SOURCE_TREE "/examples/salt-water/salt-water-small.safetensors", false,
                     &desc, &weights));
  must(ts_model_create(&desc, weights, &params, &model));
  ts_weights_destroy(&weights);
  return model;
}

/* Steps per second of one short run from the structure at 300 K. */
static double measure(const char *structure, bool is_double, int workers)
{
  ts_engine *engine = case_engine(workers, NULL);
  ts_system *system;
  ts_step *step;
  ts_partial total;
  const ts_ranks alone = ts_ranks_virtual(1);
  ts_velocity_sums sums = {0};
  const ts_motion motion = {.timestep = 0.5};
  must(ts_xyz_read(&alone, structure, &system));
  ts_velocities_draw(1, system->n, system->gid, system->mass, system->v, &sums);
  ts_velocities_settle(300, &sums, system->n, system->v);
  ts_model *model = load_model(system, is_double);
  ts_step_params params = case_params(model, 0.5);
  params.workers = ts_engine_workers(engine);
  must(ts_step_create(&params, system, &step));
  must(ts_step_evaluate(step, 0, &total));
  must(ts_step_advance(step, &motion, 1, &total));
  const double begin = ts_clock();
  for (int i = 0; i < STEPS; i++)
    must(ts_step_advance(step, &motion, i + 2, &total));
  const double rate = STEPS / (ts_clock() - begin);
  ts_step_destroy(&step);
  ts_model_destroy(&model);
  ts_system_destroy(&system);
  ts_engine_destroy(&engine);
  return rate;
}

int main(int argc, char **argv)
{
  const int rounds = argc > 1 ? atoi(argv[1]) : 5;
  const char *structure =
      argc > 2 ? argv[2] : TS_SOURCE_TREE "/examples/salt-water/salt-water-216.xyz";
  static double rate[VARIANTS][MOST];
  if (rounds < 1 || rounds > MOST) {
    fprintf(stderr, "usage: bench_example [ROUNDS 1..%d [STRUCTURE]]\n", MOST);
    return 1;
  }
  for (int i = 0; i < rounds; i++)
    for (int v = 0; v < VARIANTS; v++)
      rate[v][i] = measure(structure, v & 1, v & 2 ? 0 : 1);
  printf("%-8s %-10s %12s\n", "workers", "precision", "steps/s");
  for (int v = 0; v < VARIANTS; v++)
    printf("%-8s %-10s %12.2f\n", v & 2 ? "all" : "1", v & 1 ? "double" : "float",
           bench_median(rate[v], rounds));
  return 0;
}
