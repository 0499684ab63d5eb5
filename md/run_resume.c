/* SPDX-License-Identifier: MIT
 *
 * What a checkpoint of a run holds.  Besides the atoms: the positions at the last rebuild and the
 * ages of epoch and period, because a resumed run must rebuild on the same steps as an undisturbed
 * one (a rebuild wraps positions and so touches their last bits); on several ranks the place of the
 * atoms along the curve at the last partition, from which their owners follow (cut by edges they
 * follow from edges that are gone by now, and are stored too); the observer and the
 * RDF's counts; and what the run was made with, so that another model or seed is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/share.h"
#include "comm/sparse.h"
#include "md/run_impl.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"

static const char *precision_name(const ts_job *job)
{
  return job->execution.precision == TS_PRECISION_DOUBLE ? "double" : "float";
}

static bool find_checkpoint(const tsi_run *run)
{
  char path[TS_JOB_TEXT], older[TS_JOB_TEXT + 8];
  if (ts_job_output(run->job, run->job->output.checkpoint.file, path)) return false;
  if (!access(path, F_OK)) return true;
  const char *dot = strrchr(path, '.'); /* the schema asks for .h5 */
  snprintf(older, sizeof older, "%.*s.1%s", (int)(dot - path), path, dot);
  return !access(older, F_OK);
}

bool tsi_run_has_checkpoint(const tsi_run *run)
{
  bool has = find_checkpoint(run);
  return !ts_ranks_share(&run->ranks, &has, sizeof has) && has; /* as rank 0 sees it */
}

static int put_rdf(const tsi_run *run, ts_checkpoint *c)
{
  if (!run->rdf) return 0;
  const int64_t size = ts_rdf_state_size(run->rdf);
  double *state;
  TS_TRY(TSI_NEW(state, size));
  ts_rdf_save(run->rdf, state);
  const int status = ts_checkpoint_put_double(c, "rdf", size, state);
  free(state);
  return status;
}

/* Who has what, on several ranks. */
static int put_owners(const tsi_run *run, ts_checkpoint *c)
{
  const int64_t ranks = run->ranks.size;
  const ts_lidx n = run->system->n;
  int64_t *owner = NULL;
  TS_TRY(ts_checkpoint_put_atoms_int64(c, run->system, "order", 1, /* uint64 of 63 bits */
                                       (const int64_t *)ts_step_keys(run->step)));
  if (run->job->partition.cut != TS_CUT_EDGES) return 0;
  TS_TRY(ts_checkpoint_put_int64(c, "ranks", 1, &ranks));
  int status = tsi_ranks_agree(&run->ranks, TSI_NEW(owner, n));
  for (ts_lidx i = 0; i < n && !status; i++)
    owner[i] = run->ranks.first;
  if (!status) status = ts_checkpoint_put_atoms_int64(c, run->system, "owner", 1, owner);
  free(owner);
  return status;
}

static int fill(const tsi_run *run, ts_checkpoint *c)
{
  const ts_step_ages ages = ts_step_ages_get(run->step);
  const int64_t age[2] = {ages.build, ages.partition}, seed = run->job->velocities.seed;
  TS_TRY(ts_checkpoint_put_text(c, "model", run->model_digest));
  TS_TRY(ts_checkpoint_put_text(c, "precision", precision_name(run->job)));
  TS_TRY(ts_checkpoint_put_int64(c, "seed", 1, &seed));
  TS_TRY(ts_checkpoint_put_double(c, "timestep", 1, &run->job->timestep));
  TS_TRY(ts_checkpoint_put_system(c, run->system));
  TS_TRY(ts_checkpoint_put_atoms_double(c, run->system, "build_position", 3,
                                        ts_step_build_positions(run->step)[0]));
  if (run->ranks.size > 1) TS_TRY(put_owners(run, c));
  if (ts_step_partition_positions(run->step))
    TS_TRY(ts_checkpoint_put_atoms_double(c, run->system, "partition_position", 3,
                                          ts_step_partition_positions(run->step)[0]));
  TS_TRY(ts_checkpoint_put_int64(c, "age", 2, age));
  TS_TRY(
      ts_checkpoint_put_double(c, "observer", TS_OBSERVER_DOUBLES, (const double *)&run->observer));
  return put_rdf(run, c);
}

int tsi_run_save(tsi_run *run)
{
  const double begin = ts_clock();
  char path[TS_JOB_TEXT];
  ts_checkpoint *c = NULL;
  int status;
  TS_TRY(ts_job_output(run->job, run->job->output.checkpoint.file, path));
  TS_TRY(tsi_run_sync(run));
  TS_TRY(ts_checkpoint_create(&run->ranks, run->last.step, tsi_run_time(run, run->last.step), &c));
  status = fill(run, c);
  if (!status) status = ts_checkpoint_write(c, path, (int)run->job->output.checkpoint.keep);
  ts_checkpoint_destroy(&c);
  if (!status) run->saved_step = run->last.step;
  run->output_seconds += ts_clock() - begin;
  return status;
}

/* Time is step x timestep, and the drift is over all of it. */
static int expect_timestep(const ts_checkpoint *c, const ts_job *job)
{
  double stored;
  TS_TRY(ts_checkpoint_get_double(c, "timestep", 1, &stored));
  if (stored == job->timestep) return 0;
  return tsi_fail(
      TS_ERR_INPUT,
      "%s: its timestep is %.15g fs, this job's is %.15g fs; set timestep_fs as it was, "
      "or start a new run",
      ts_checkpoint_path(c), stored, job->timestep);
}

int tsi_run_load(tsi_run *run)
{
  char path[TS_JOB_TEXT];
  const ts_job *job = run->job;
  TS_TRY(ts_job_output(job, job->output.checkpoint.file, path));
  TS_TRY(ts_checkpoint_read(&run->ranks, path, &run->resume));
  const ts_checkpoint *c = run->resume;
  TS_TRY(ts_checkpoint_expect_text(c, "model", run->model_digest,
                                   "to go on with another model, start a new run"));
  TS_TRY(ts_checkpoint_expect_text(c, "precision", precision_name(job),
                                   "set execution.precision as it was"));
  TS_TRY(ts_checkpoint_expect_int64(c, "seed", job->velocities.seed,
                                    "set velocities.seed as it was, or start a new run"));
  TS_TRY(expect_timestep(c, job));
  run->first_step = run->saved_step = ts_checkpoint_step(c);
  if (run->first_step > job->steps)
    return tsi_fail(TS_ERR_INPUT, "%s: the checkpoint is at step %lld, beyond steps = %lld of %s",
                    ts_checkpoint_path(c), (long long)run->first_step, (long long)job->steps,
                    job->path);
  TS_TRY(ts_checkpoint_get_double(c, "observer", TS_OBSERVER_DOUBLES, (double *)&run->observer));
  TS_TRY(ts_checkpoint_get_system(c, &run->system));
  TS_TRY(ts_checkpoint_get_atoms_double(c, run->system, "build_position", 3, run->system->x[0]));
  ts_log(TS_LOG_INFO, "resume     %s, step %lld", ts_checkpoint_path(c),
         (long long)run->first_step);
  return 0;
}

/* Owners of the run that wrote the checkpoint; NULL: other ranks than these. */
static int get_owners(const tsi_run *run, int32_t **out)
{
  const ts_lidx n = run->system->n;
  int64_t ranks = 0, *owner = NULL;
  if (ts_checkpoint_has(run->resume, "ranks"))
    TS_TRY(ts_checkpoint_get_int64(run->resume, "ranks", 1, &ranks));
  if (ranks != run->ranks.size || run->job->partition.cut != TS_CUT_EDGES) return 0;
  int status = TSI_NEW(owner, n);
  if (!status) status = TSI_NEW(*out, n);
  status = tsi_ranks_agree(&run->ranks, status);
  if (!status) status = ts_checkpoint_get_atoms_int64(run->resume, run->system, "owner", 1, owner);
  for (ts_lidx i = 0; i < n && !status; i++)
    (*out)[i] = (int32_t)owner[i];
  free(owner);
  return status;
}

int tsi_run_load_owners(const tsi_run *run, uint64_t **keys, int32_t **owners)
{
  *keys = NULL;
  *owners = NULL;
  if (!run->resume || run->ranks.size == 1 || !ts_checkpoint_has(run->resume, "order")) return 0;
  int status = tsi_ranks_agree(&run->ranks, TSI_NEW(*keys, run->system->n));
  if (!status)
    status = ts_checkpoint_get_atoms_int64(run->resume, run->system, "order", 1, (int64_t *)*keys);
  if (!status) status = get_owners(run, owners);
  if (!status) return 0;
  free(*keys);
  free(*owners);
  *keys = NULL;
  *owners = NULL;
  return status;
}

/* Where an automatic period measures from; a checkpoint of a fixed one lets it begin now. */
static int get_partition_positions(tsi_run *run)
{
  double(*x)[3] = NULL;
  if (!ts_step_partition_positions(run->step) ||
      !ts_checkpoint_has(run->resume, "partition_position"))
    return 0;
  int status = tsi_ranks_agree(&run->ranks, TSI_NEW(x, run->system->n));
  if (!status)
    status =
        ts_checkpoint_get_atoms_double(run->resume, run->system, "partition_position", 3, x[0]);
  if (!status) ts_step_partition_positions_set(run->step, (const double(*)[3])x);
  free(x);
  return status;
}

static int get_rdf(tsi_run *run)
{
  const int64_t size = ts_rdf_state_size(run->rdf);
  double *state;
  TS_TRY(TSI_NEW(state, size));
  int status = ts_checkpoint_get_double(run->resume, "rdf", size, state);
  if (!status) status = ts_rdf_load(run->rdf, size, state);
  if (status == TS_ERR_INPUT)
    status =
        tsi_fail(status,
                 "%s: its radial distributions are of other pairs or bins than this job's; set "
                 "output.rdf as it was, or start a new run",
                 ts_checkpoint_path(run->resume));
  free(state);
  return status;
}

int tsi_run_load_rest(tsi_run *run)
{
  int64_t age[2];
  TS_TRY(ts_checkpoint_get_int64(run->resume, "age", 2, age));
  ts_step_ages_set(run->step, (ts_step_ages){age[0], age[1]});
  TS_TRY(get_partition_positions(run));
  TS_TRY(ts_checkpoint_get_atoms_double(run->resume, run->system, "x", 3, run->system->x[0]));
  if (run->rdf && ts_checkpoint_has(run->resume, "rdf")) TS_TRY(get_rdf(run));
  ts_checkpoint_destroy(&run->resume);
  return 0;
}
