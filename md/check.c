/* SPDX-License-Identifier: MIT
 *
 * `tessera check`: the filled-in job goes to standard output, where it can be kept as a job file of
 * its own; what the job will work on goes to standard error.  The structure and the model are read
 * and the edges are found as a run would, so what passes here starts there. */
#include "comm/peers.h"
#include "md/command.h"

#include "md/rdf.h"
#include "md/setup.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "runtime/topology.h"

#include <stdio.h>
#include <stdlib.h>

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

static int log_memory(const ts_job *job, const ts_system *system, const ts_model *model)
{
  double edges[TS_MAX_STAGES];
  ts_topology topology;
  ts_step_params step;
  TS_TRY(ts_topology_read(&topology));
  const int workers = (int)job->execution.workers;
  tsi_setup_step(job, model, workers ? workers : ts_topology_workers(&topology, 1), &step);
  for (int s = 0; s < model->desc.nstages; ++s) {
    ts_edges *set = NULL;
    TS_TRY(ts_step_edges(&step, system, s, &set));
    edges[s] = (double)set->count / (double)system->n;
    const int failed = ts_step_check_bound(&step, system, s, set);
    ts_edges_destroy(&set);
    TS_TRY(failed);
  }
  tsi_setup_log_edges(model, step.skin, edges);
  tsi_setup_log_memory(model, ts_step_memory(&step, system->n, edges));
  return 0;
}

int ts_check_job(const ts_job *job)
{
  const ts_ranks alone = ts_ranks_virtual(1);
  tsi_contents contents;
  char path[TS_JOB_TEXT];
  ts_system *system;
  ts_model *model = NULL;
  TS_TRY(ts_job_print(job, stdout));
  fflush(stdout);
  TS_TRY(ts_job_input(job, job->structure, path));
  TS_TRY(ts_xyz_read(&alone, path, &system));
  int status;
  TS_TRY_GOTO(status, tsi_setup_contents(&alone, system, &contents), done);
  tsi_setup_log_system(path, system, &contents);
  TS_TRY_GOTO(status, check_system(job, path, system), done);
  TS_TRY_GOTO(status, tsi_setup_model(job, system, &contents, &model), done);
  tsi_setup_log_model(job, model);
  TS_TRY_GOTO(status, log_memory(job, system, model), done);
done:
  ts_model_destroy(&model);
  ts_system_destroy(&system);
  return status;
}
