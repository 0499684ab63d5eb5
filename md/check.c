/* SPDX-License-Identifier: MIT
 *
 * `tessera check`: the filled-in job goes to standard output, where it can be kept as a job file of
 * its own; what the job will work on goes to standard error. */
#include "md/command.h"

#include "md/elements.h"
#include "md/rdf.h"
#include "md/ts_units.h"
#include "md/xyz.h"
#include "models/tensors.h"
#include "runtime/error.h"

#include <stdio.h>

static void print_cell(const ts_cell *cell)
{
  static const char axis[] = "abc";
  fprintf(stderr, "cell       ");
  if (!cell->periodic[0] && !cell->periodic[1] && !cell->periodic[2]) {
    fprintf(stderr, "isolated\n");
    return;
  }
  for (int d = 0; d < 3; ++d)
    fprintf(stderr, "%s%c (%g %g %g)%s", d ? ", " : "", axis[d], cell->h[d][0], cell->h[d][1],
            cell->h[d][2], cell->periodic[d] ? "" : " open");
  fprintf(stderr, " Å\n");
}

static void print_system(const char *path, const ts_system *system)
{
  int64_t count[TS_ELEMENTS + 1];
  double mass = 0.0;
  ts_system_count(system, count);
  for (ts_lidx i = 0; i < system->n; ++i)
    mass += system->mass[i];
  fprintf(stderr, "structure  %s: %lld atoms:", path, (long long)system->natoms);
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (count[z])
      fprintf(stderr, " %s %lld (%g u)", ts_element_symbol(z), (long long)count[z],
              ts_element_mass(z) / TS_ATOMIC_MASS);
  fprintf(stderr, ", %.6g u in all%s\n", mass / TS_ATOMIC_MASS,
          system->has_velocities ? ", with velocities" : "");
  print_cell(&system->cell);
}

/* What the job asks of its structure. */
static int check_system(const ts_job *job, const char *path, const ts_system *system)
{
  if (job->task == TS_TASK_MD && job->velocities.source == TS_VELOCITIES_READ &&
      !system->has_velocities)
    return tsi_fail(TS_ERR_INPUT, "%s: velocities.source is \"read\", but %s has no velocities",
                    job->path, path);
  if (!job->output.rdf.npairs || !job->output.rdf.every) return 0;
  const ts_rdf_params params = {.npairs = (int)job->output.rdf.npairs,
                                .pair = job->output.rdf.pair,
                                .r_max = job->output.rdf.r_max,
                                .bin = job->output.rdf.bin};
  ts_rdf *rdf;
  TS_TRY(ts_rdf_create(&params, &system->cell, system->n, system->z, &rdf));
  ts_rdf_destroy(&rdf);
  return 0;
}

static void print_model(const char *path, const ts_model_desc *desc, const ts_weights *weights)
{
  int64_t parameters = 0;
  for (int i = 0; i < ts_weights_count(weights); ++i)
    parameters += ts_weights_at(weights, i).count;
  fprintf(stderr, "model      %s: %d channels, %d heads, %lld parameters", path, desc->channels,
          desc->heads, (long long)parameters);
  for (int s = 0; s < desc->nstages; ++s)
    fprintf(stderr, "%s %d to %g Å", s ? "," : "; layers:", desc->stage[s].nlayers,
            desc->stage[s].cutoff);
  fprintf(stderr, "\n");
}

static int check_model(const ts_job *job, bool with_charge)
{
  char path[TS_JOB_TEXT];
  ts_model_desc desc;
  ts_weights *weights;
  TS_TRY(ts_job_input(job, job->model, path));
  TS_TRY(ts_model_load(path, with_charge, &desc, &weights));
  print_model(path, &desc, weights);
  ts_weights_destroy(&weights);
  return 0;
}

int ts_check_job(const ts_job *job)
{
  char path[TS_JOB_TEXT];
  ts_system *system;
  TS_TRY(ts_job_print(job, stdout));
  fflush(stdout);
  TS_TRY(ts_job_input(job, job->structure, path));
  TS_TRY(ts_xyz_read(path, &system));
  print_system(path, system);
  int status = check_system(job, path, system);
  if (!status) status = check_model(job, job->charge != TS_JOB_UNSET || system->has_charge);
  ts_system_destroy(&system);
  return status;
}
