/* SPDX-License-Identifier: MIT
 *
 * What a run writes: rows, frames, radial distribution functions, phases, summary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/sparse.h"
#include "md/run_impl.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/file.h"
#include "runtime/log.h"

double tsi_run_time(const tsi_run *run, int64_t step)
{
  return (double)step * run->job->timestep; /* the same bits wherever a run was cut */
}

/* Rank 0 does what has one place, and all have its success or failure. */
static bool is_first(const tsi_run *run)
{
  return run->ranks.first == 0;
}

int tsi_run_check_folder(const tsi_run *run, bool resume)
{
  char folder[TS_JOB_TEXT];
  const bool energy = run->job->task == TS_TASK_ENERGY;
  TS_TRY(ts_job_output(run->job, "", folder));
  if (energy && resume)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: task \"energy\" is one evaluation; --resume is for task \"md\"",
                    run->job->path);
  const bool started = tsi_run_has_checkpoint(run);
  int status = 0;
  if (!resume && is_first(run) && (started || ts_report_exists(folder)))
    status = tsi_fail(TS_ERR_INPUT,
                      "%s: output.directory %s holds a run already; %sname another directory "
                      "(--set output.directory=...), or remove it",
                      run->job->path, folder, energy ? "" : "continue it with --resume, ");
  return tsi_ranks_agree(&run->ranks, status);
}

int tsi_run_make_folder(const tsi_run *run)
{
  char folder[TS_JOB_TEXT];
  int status = ts_job_output(run->job, "", folder);
  if (!status && is_first(run)) status = tsi_folder_make(folder);
  return tsi_ranks_agree(&run->ranks, status);
}

/* "FILE every N steps", or how else it is written. */
static void log_file(char *text, size_t room, const char *file, int64_t every, const char *never)
{
  const size_t used = strlen(text);
  if (every > 0)
    snprintf(text + used, room - used, ", %s every %lld", file, (long long)every);
  else if (never)
    snprintf(text + used, room - used, ", %s %s", file, never);
}

void tsi_run_log_output(const tsi_run *run)
{
  const ts_job *job = run->job;
  char folder[TS_JOB_TEXT], text[4096];
  if (ts_job_output(job, "", folder)) return;
  snprintf(text, sizeof text, "output     %s: log.csv every %lld steps", folder,
           (long long)job->output.log_every);
  log_file(text, sizeof text, job->output.trajectory.file, job->output.trajectory.every, NULL);
  log_file(text, sizeof text, job->output.checkpoint.file, job->output.checkpoint.every,
           "at the end");
  if (run->rdf) log_file(text, sizeof text, job->output.rdf.file, job->output.rdf.every, NULL);
  ts_log(TS_LOG_INFO, "%s", text);
}

static int open_trajectory(tsi_run *run)
{
  char path[TS_JOB_TEXT];
  const ts_job *job = run->job;
  ts_trajectory_params params;
  ts_trajectory_params_init(&params);
  TS_TRY(ts_job_output(job, job->output.trajectory.file, path));
  params.path = path;
  params.velocities =
      job->output.trajectory.velocities && (job->task == TS_TASK_MD || run->system->has_velocities);
  params.forces = job->output.trajectory.forces || job->task == TS_TASK_ENERGY;
  params.resume = run->resume ? run->first_step : -1;
  return ts_trajectory_open(&run->ranks, &params, run->system, &run->trajectory);
}

int tsi_run_open_output(tsi_run *run)
{
  const ts_job *job = run->job;
  char folder[TS_JOB_TEXT];
  TS_TRY(ts_job_output(job, "", folder));
  if (job->output.trajectory.every > 0) TS_TRY(open_trajectory(run));
  if (job->output.rdf.npairs && job->output.rdf.every) {
    const ts_rdf_params params = {.npairs = (int)job->output.rdf.npairs,
                                  .pair = job->output.rdf.pair,
                                  .r_max = job->output.rdf.r_max,
                                  .bin = job->output.rdf.bin,
                                  .ranks = &run->ranks};
    TS_TRY(ts_rdf_create(&params, &run->system->cell, run->system->n, run->system->z, &run->rdf));
  }
  const ts_report_params params = {.directory = folder,
                                   .natoms = run->system->natoms,
                                   .first_step = run->first_step,
                                   .last_step = job->steps,
                                   .resume = run->resume != NULL};
  return tsi_ranks_agree(&run->ranks, is_first(run) ? ts_report_create(&params, &run->report) : 0);
}

static int write_frame(tsi_run *run)
{
  const ts_observables *o = &run->last;
  const bool still = run->job->task == TS_TASK_ENERGY; /* nothing moves: no kinetic part anywhere */
  ts_frame_values values = {.potential_energy = o->epot,
                            .kinetic_energy = still ? NAN : o->ekin,
                            .temperature = still ? NAN : o->temperature,
                            .pressure = still ? NAN : o->pressure};
  memcpy(values.stress, still ? o->virial_stress : o->stress, sizeof values.stress);
  const ts_frame frame = {.step = o->step,
                          .time = tsi_run_time(run, o->step),
                          .system = run->system,
                          .force = ts_step_forces(run->step),
                          .values = &values};
  return ts_trajectory_write(run->trajectory, &frame);
}

static int write_rdf(tsi_run *run)
{
  char path[TS_JOB_TEXT];
  TS_TRY(ts_job_output(run->job, run->job->output.rdf.file, path));
  return tsi_ranks_agree(&run->ranks, is_first(run) ? ts_rdf_write(run->rdf, path) : 0);
}

bool tsi_run_row_due(const tsi_run *run, int64_t number)
{
  return number % run->job->output.log_every == 0;
}

static int write_row(tsi_run *run)
{
  const int status = run->report ? ts_report_row(run->report, &run->last) : 0;
  return tsi_ranks_agree(&run->ranks, status);
}

int tsi_run_output(tsi_run *run)
{
  const ts_job *job = run->job;
  const int64_t step = run->last.step;
  const double begin = ts_clock();
  if (run->report) ts_report_progress(run->report, step);
  if (tsi_run_row_due(run, step)) TS_TRY(write_row(run));
  if (run->trajectory && step % job->output.trajectory.every == 0) TS_TRY(write_frame(run));
  if (run->rdf && step % job->output.rdf.every == 0) {
    TS_TRY(ts_rdf_add(run->rdf, &run->system->cell, run->system->n,
                      (const double(*)[3])run->system->x, run->system->z));
    TS_TRY(write_rdf(run));
  }
  run->output_seconds += ts_clock() - begin;
  return 0;
}

int tsi_run_sync(tsi_run *run)
{
  TS_TRY(tsi_ranks_agree(&run->ranks, run->report ? ts_report_sync(run->report) : 0));
  return run->trajectory ? ts_trajectory_sync(run->trajectory) : 0;
}

int tsi_run_write_energy(tsi_run *run)
{
  TS_TRY(open_trajectory(run));
  return write_frame(run);
}

#define PHASE_NAME(name, text) text,
static const char *const phase_name[] = {TS_PHASE_MAP(PHASE_NAME)};
#define REBUILD_NAME(name, text) text,
static const char *const rebuild_name[] = {TS_REBUILD_MAP(REBUILD_NAME)};

enum { NPHASES = TS_PHASE_COUNT + 2 };

/* Seconds of wall time: tasks' busy time is shared by the workers. */
static void phases(const tsi_run *run, const ts_step_stats *stats, ts_phase phase[NPHASES])
{
  const int workers = ts_engine_workers(run->engine);
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    phase[p] = (ts_phase){phase_name[p], stats->phase_seconds[p] / workers};
  phase[TS_PHASE_COUNT] = (ts_phase){"rebuild", stats->rebuild_seconds};
  phase[TS_PHASE_COUNT + 1] = (ts_phase){"output", run->output_seconds};
}

static void put_step_stats(ts_json_writer *w, const tsi_run *run, const ts_step_stats *s)
{
  int64_t rebuilds = 0;
  ts_json_put_string(w, "precision", run->model->is_double ? "double" : "float");
  ts_json_put_string(w, "kernels", run->model->kernels->isa);
  ts_json_put_string(w, "matrix", run->model->matrix->name);
  ts_json_put_number(w, "radial_table_error", run->model->radial_error);
  ts_json_put_int(w, "workers", ts_engine_workers(run->engine));
  ts_json_put_string(w, "scheduler", ts_engine_scheduler(run->engine));
  ts_json_put_int(w, "tile_atoms", s->tile_atoms);
  ts_json_put_int(w, "tiles", s->tiles);
  ts_json_put_int(w, "tasks_per_step", s->tasks);
  ts_json_put_int(w, "evaluations", s->evaluations);
  ts_json_put_int(w, "programs_recorded", s->records);
  ts_json_open_object(w, "rebuilds");
  for (int i = 0; i < TS_REBUILD_COUNT; i++) {
    ts_json_put_int(w, rebuild_name[i], s->rebuilds[i]);
    rebuilds += s->rebuilds[i];
  }
  ts_json_close(w);
  ts_json_put_number(w, "hit_rate",
                     s->evaluations ? 1 - (double)rebuilds / (double)s->evaluations : 0);
  ts_json_put_int(w, "step_bytes", (int64_t)s->bytes);
  ts_json_put_int(w, "model_bytes", (int64_t)run->model->bytes);
}

static void put_spreads(ts_json_writer *w, const tsi_run *run, const ts_spread *spread)
{
  ts_json_open_object(w, "ranks");
  ts_json_put_int(w, "count", run->ranks.size);
  for (int i = 0; i < TSI_SPREADS; i++) {
    ts_json_open_object(w, spread[i].key);
    ts_json_put_number(w, "min", spread[i].min);
    ts_json_put_number(w, "mean", spread[i].mean);
    ts_json_put_number(w, "max", spread[i].max);
    ts_json_close(w);
  }
  ts_json_close(w);
}

/* By rank 0. */
static int report_end(tsi_run *run, const char *status, const ts_step_stats *stats,
                      const ts_spread *spread)
{
  const bool several = run->ranks.size > 1;
  ts_phase phase[NPHASES];
  ts_json_writer *w;
  phases(run, stats, phase);
  ts_report_pause(run->report);
  if (run->last.step > run->first_step) {
    ts_report_phases(run->report, NPHASES, phase);
    if (several) ts_report_spreads(run->report, run->ranks.size, TSI_SPREADS, spread);
  }
  TS_TRY(ts_report_summary_begin(run->report, status, run->last.step < 0 ? NULL : &run->last,
                                 &run->observer, NPHASES, phase, &w));
  put_step_stats(w, run, stats);
  if (several) put_spreads(w, run, spread);
  return ts_report_summary_end(run->report);
}

int tsi_run_finish_output(tsi_run *run, const char *status)
{
  const ts_step_stats stats = ts_step_statistics(run->step);
  ts_spread spread[TSI_SPREADS];
  if (run->ranks.size > 1) {
    TS_TRY(tsi_run_find_extremes(run));
    TS_TRY(tsi_run_spreads(run, &stats, spread));
    if (run->total_step == run->last.step) {
      run->last.max_force = run->total.force2 > 0 ? sqrt(run->total.force2) : 0;
      run->last.max_force_gid = run->total.force_gid;
    }
  }
  return tsi_ranks_agree(&run->ranks, run->report ? report_end(run, status, &stats, spread) : 0);
}
