/* SPDX-License-Identifier: MIT
 *
 * Job to model and step parameters. */
#include "md/setup.h"

#include "models/tensors.h"
#include "runtime/error.h"

/* The charge of the job, else of the structure; within what models embed. */
static int choose_charge(const ts_job *job, const ts_system *system, ts_model_params *params)
{
  const bool by_job = job->charge != TS_JOB_UNSET;
  params->has_charge = by_job || system->has_charge;
  params->charge = by_job ? (int)job->charge : system->charge;
  params->multiplicity = by_job ? (int)job->multiplicity : system->multiplicity;
  if (!params->has_charge || by_job) return 0;
  if (params->charge < -10 || params->charge > 10 || params->multiplicity < 0 ||
      params->multiplicity > 20)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: charge %d and multiplicity %d; expected -10 to 10 and 0 to 20",
                    job->structure, params->charge, params->multiplicity);
  return 0;
}

int tsi_setup_model(const ts_job *job, const ts_system *system, ts_model **out)
{
  char path[TS_JOB_TEXT];
  int species[TS_MAX_ELEMENT];
  int64_t count[TS_ELEMENTS + 1];
  ts_model_desc desc;
  ts_weights *weights;
  ts_model_params params = {.is_double = job->execution.precision == TS_PRECISION_DOUBLE,
                            .matrix = job->execution.matrix,
                            .isa = "auto",
                            .species = species,
                            .radial_tolerance = job->execution.radial_tolerance};
  *out = NULL;
  TS_TRY(choose_charge(job, system, &params));
  ts_system_count(system, count);
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (count[z]) species[params.nspecies++] = z;
  TS_TRY(ts_job_input(job, job->model, path));
  TS_TRY(ts_model_load(path, params.has_charge, &desc, &weights));
  const int status = ts_model_create(&desc, weights, &params, out);
  ts_weights_destroy(&weights);
  return status;
}

void tsi_setup_step(const ts_job *job, const ts_model *model, int workers, ts_step_params *out)
{
  ts_step_params_init(out);
  out->model = model;
  out->workers = workers;
  out->skin = job->neighbors.skin;
  out->rebuild = job->neighbors.rebuild;
  out->period = job->partition.period;
  out->curve = job->partition.curve;
  out->backend = job->neighbors.backend;
  out->chunk = (int)job->neighbors.chunk;
  out->tile_atoms = (int)job->execution.tile_atoms;
  out->recompute = job->execution.recompute;
  out->replay = job->execution.replay;
}
