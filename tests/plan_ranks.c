/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_plan_ranks.sh under mpirun, or alone: the ranks at hand begin an epoch as every
 * run does, and each compares what it has with what the planner says of it: its atoms in their
 * order, in both stages (H does not send in the second) the edges, peers, counts and rows of the
 * plan, and the messages and bytes that the recorded step sends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md/plan_survey.h"
#include "md/step_impl.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "tests/case.h"
#include "tests/ranks_start.h"
#include "tests/ranks_watchdog.h"

static int failures;

static void check(bool ok, const char *name, const char *what, double real, double planned)
{
  if (ok) return;
  fprintf(stderr, "%s, rank %d of %d: %s: %g, planned %g\n", name, ranks.first, ranks.size, what,
          real, planned);
  failures++;
}

static void same(const char *name, const char *what, int64_t real, int64_t planned)
{
  check(real == planned, name, what, (double)real, (double)planned);
}

static void same_list(const char *name, const char *what, int n, const int32_t *real,
                      const int32_t *planned)
{
  for (int i = 0; i < n; i++)
    if (real[i] != planned[i]) {
      check(false, name, what, real[i], planned[i]);
      return;
    }
}

static void compare_plans(const char *name, const ts_plan *real, const ts_plan *planned)
{
  same(name, "ranks that send to it", real->sources, planned->sources);
  same(name, "ranks that it sends to", real->targets, planned->targets);
  if (real->sources != planned->sources || real->targets != planned->targets) return;
  same_list(name, "a source", real->sources, real->source, planned->source);
  same_list(name, "atoms of a source", real->sources + 1, real->first, planned->first);
  same_list(name, "a target", real->targets, real->target, planned->target);
  same_list(name, "atoms for a target", real->targets + 1, real->start, planned->start);
  same_list(name, "a row to send", real->start[real->targets], real->row, planned->row);
}

static void compare(const char *name, const ts_step *step, const ts_survey *survey,
                    const ts_plan_atoms *atoms)
{
  const int me = ranks.first;
  const ts_plan_load *load = &survey->load[me];
  const ts_step_stats stats = ts_step_statistics(step);
  same(name, "atoms", step->system->n, load->n);
  for (ts_lidx i = 0; i < step->system->n && i < load->n; i++)
    if (step->system->gid[i] != atoms->gid[survey->first[me] + i])
      check(false, name, "id of an atom", (double)step->system->gid[i],
            (double)atoms->gid[survey->first[me] + i]);
  for (int k = 0; k < survey->stages; k++) {
    same(name, "edges", stats.candidates[k], load->stage[k].edges);
    same(name, "halo", stats.halo[k], load->stage[k].halo);
    if (step->halo[k]) compare_plans(name, &step->halo[k]->plan, &survey->plan[k][me]);
  }
  same(name, "messages of a step", stats.sent_messages, load->step_messages);
  same(name, "bytes of a step", stats.sent_bytes, load->step_bytes);
  if (me == 0)
    printf("%s, %d ranks: halo %d and %d, %d messages, %lld bytes; memory %.2f MB, planned %.2f\n",
           name, ranks.size, stats.halo[0], stats.halo[1], stats.sent_messages,
           (long long)stats.sent_bytes, 1e-6 * (double)stats.bytes, 1e-6 * (double)load->bytes);
}

static void run(const char *name, const char *file, const ts_step_params *params)
{
  const int once[3] = {1, 1, 1};
  ts_plan_params plan = {
      .ranks = ranks.size, .step = *params, .sample = ranks.size, .scheme = {false}};
  ts_plan_atoms atoms;
  ts_survey *survey;
  ts_system *system;
  ts_step *step;
  must(ts_xyz_read(&ranks, file, &system));
  must(ts_step_create(params, system, &step));
  if (params->weighted) must(tsi_epoch_begin(step, true)); /* by the edges of the first */
  must(tsi_step_record(step));
  must(ts_plan_atoms_read(file, once, &atoms));
  must(ts_plan_atoms_sort(&atoms, &params->partition));
  must(ts_survey_create(&plan, &atoms, &survey));
  compare(name, step, survey, &atoms);
  ts_survey_destroy(&survey);
  ts_plan_atoms_free(&atoms);
  ts_step_destroy(&step);
  ts_system_destroy(&system);
}

int main(void)
{
  const char *source = getenv("TS_SOURCE_DIR");
  char file[4096];
  snprintf(file, sizeof file, "%s/examples/salt-water/salt-water-216.xyz", source ? source : ".");
  ranks_watchdog(200);
  start();
  golden_case golden = case_read("kcl64-cluster");
  ts_model *model = case_model(&golden, false);
  ts_step_params params = case_params(model, 0.5);
  params.ranks = ranks.size > 1 ? &ranks : NULL;
  params.collective = collective;
  params.transfers = ts_engine_transfers(engine);
  params.partition.slack = 0.5;
  run("hilbert", file, &params);
  params.weighted = ranks.size > 1;
  run("by edges", file, &params);
  params.weighted = false;
  params.partition.curve = TS_CURVE_MORTON;
  params.partition.normalization = TS_NORMALIZE_LONGEST;
  params.level1.scheme = TS_LEVEL1_BINS;
  run("morton", file, &params);
  ts_model_destroy(&model);
  case_release(&golden);
  int total = failures;
  MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, ranks.comm);
  stop();
  return total > 0;
}
