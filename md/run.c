/* SPDX-License-Identifier: MIT
 *
 * One job from start to end: start what it needs, make or resume the state, loop over the steps,
 * leave everything in order, whatever happened. */
#include "md/run.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/sparse.h"
#include "md/h5.h"
#include "md/run_impl.h"
#include "md/setup.h"
#include "md/ts_units.h"
#include "md/velocities.h"
#include "md/xyz.h"
#include "runtime/crc64.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* ---- signals: the loop looks at one flag */

static const struct {
  int number;
  const char *name;
} signals[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}};

static volatile sig_atomic_t signal_seen;
static volatile sig_atomic_t leave_with; /* the exit status */

static void note_signal(int number)
{
  signal_seen = number;
}

static void catch_signals(void)
{
  signal_seen = 0;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    if (signals[i].number == SIGINT) /* a second Ctrl-C ends the run at once */
      action.sa_flags |= (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(signals[i].number, &action, NULL);
  }
}

/* What this rank has to tell the others at the end of a step: which signal it got, or that another
 * step (as long as the longest so far) would not fit into the wall time after this one. */
enum { NEWS_TIME = sizeof signals / sizeof *signals };

static void tell(void *context, int64_t news[TS_STEP_NEWS])
{
  const tsi_run *run = context;
  const double limit = (double)run->job->max_walltime;
  const double longest = fmax(run->longest, ts_clock() - run->step_began);
  for (int i = 0; i < NEWS_TIME; i++)
    news[i] = signal_seen == signals[i].number;
  news[NEWS_TIME] = limit > 0 && run->step_began - run->began + 2 * longest >= limit;
}

/* Why all ranks should stop after this step, whichever of them was told to; NULL: go on. */
static const char *reason_to_stop(const tsi_run *run)
{
  const int64_t *news = ts_step_news(run->step);
  for (int i = 0; i < NEWS_TIME; i++)
    if (news[i]) return signals[i].name;
  return news[NEWS_TIME] ? "max_walltime" : NULL;
}

/* ---- start */

/* `status` is of what came before: all ranks go on, or none. */
static int start_world(tsi_run *run, int status)
{
  char message[2048];
  snprintf(message, sizeof message, "%s", ts_error_message());
  TS_TRY(ts_world_create(&run->world));
  TS_TRY(ts_ranks_of(ts_world_comm(run->world), &run->ranks));
  if (status) tsi_fail(status, "%s", message);
  return tsi_ranks_agree(&run->ranks, status);
}

/* Ranks that wait yield: on the cores of this node are workers that others wait for. */
static int start_collective(tsi_run *run)
{
  ts_collective_params params;
  if (run->ranks.size == 1) return 0;
  ts_collective_params_init(&params);
  params.algorithm = run->job->execution.collectives;
  params.yield = true;
  return ts_collective_create(ts_world_comm(run->world), &params, &run->collective);
}

static int start_engine(tsi_run *run)
{
  ts_topology topology;
  ts_engine_params params;
  char text[512];
  TS_TRY(ts_topology_read(&topology));
  ts_engine_params_init(&params);
  params.workers = (int)run->job->execution.workers;
  params.scheduler = run->job->execution.scheduler;
  TS_TRY(ts_world_share(run->world, &topology, &params.sharers, &params.share));
  if (run->ranks.size > 1) params.comm = ts_world_comm(run->world);
  params.transport = run->job->execution.transfers;
  TS_TRY(ts_engine_create(&topology, &params, &run->engine));
  ts_topology_describe(&topology, text, sizeof text);
  ts_log(TS_LOG_INFO, "machine    %s", text);
  ts_engine_rest(true); /* until there are tasks */
  ts_engine_describe(run->engine, text, sizeof text);
  ts_log(TS_LOG_INFO, "engine     %s", text);
  return 0;
}

/* A digest of the weight file, so that a checkpoint knows its model. */
static int digest_file(const char *path, char *out, size_t size)
{
  char block[65536];
  tsi_crc64 crc;
  FILE *file = fopen(path, "rb");
  if (!file) return tsi_fail(TS_ERR_INPUT, "%s: cannot open", path);
  tsi_crc64_begin(&crc);
  for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0;)
    tsi_crc64_add(&crc, block, got);
  fclose(file);
  snprintf(out, size, "crc64 %016" PRIx64, tsi_crc64_value(&crc));
  return 0;
}

static int new_velocities(tsi_run *run)
{
  const ts_job *job = run->job;
  ts_system *s = run->system;
  if (job->velocities.source == TS_VELOCITIES_READ) {
    if (!s->has_velocities)
      return tsi_fail(TS_ERR_INPUT, "%s: velocities.source is \"read\", but %s has no velocities",
                      job->path, job->structure);
    return 0;
  }
  ts_velocity_sums sums = {0};
  if (s->has_velocities)
    ts_log(TS_LOG_WARNING,
           "%s has velocities, but new ones are drawn (velocities.source is \"draw\")",
           job->structure);
  ts_velocities_draw((uint64_t)job->velocities.seed, s->n, s->gid, s->mass, s->v, &sums);
  TS_TRY(ts_ranks_sum_i64(&run->ranks, sizeof sums / sizeof(int64_t), (int64_t *)&sums));
  ts_velocities_settle(job->velocities.temperature, &sums, s->n, s->v);
  s->has_velocities = true;
  return 0;
}

static int make_step(tsi_run *run)
{
  ts_step_params params;
  uint64_t *keys;
  int32_t *owners;
  tsi_setup_step(run->job, run->model, ts_engine_workers(run->engine), &params);
  params.ask = tell;
  params.context = run;
  if (run->ranks.size > 1) {
    params.ranks = &run->ranks;
    params.collective = run->collective;
    params.transfers = ts_engine_transfers(run->engine);
  }
  TS_TRY(tsi_run_load_owners(run, &keys, &owners));
  params.keys = keys;
  params.owners = owners;
  const int status = ts_step_create(&params, run->system, &run->step);
  free(keys);
  free(owners);
  TS_TRY(status);
  const ts_step_stats stats = ts_step_statistics(run->step);
  int64_t candidates[TS_MAX_STAGES];
  double edges[TS_MAX_STAGES];
  memcpy(candidates, stats.candidates, sizeof candidates);
  TS_TRY(ts_ranks_sum_i64(&run->ranks, TS_MAX_STAGES, candidates));
  for (int s = 0; s < run->model->desc.nstages; s++)
    edges[s] = (double)candidates[s] / (double)run->system->natoms;
  tsi_setup_log_edges(run->model, params.skin, edges);
  tsi_setup_log_memory(run->model, stats.bytes);
  ts_log(TS_LOG_INFO, "tiles      %d of %d atoms", stats.tiles, stats.tile_atoms);
  return 0;
}

static void make_setup(tsi_run *run)
{
  const ts_job *job = run->job;
  const ts_system *s = run->system;
  const bool langevin = job->task == TS_TASK_MD && job->ensemble.kind == TS_ENSEMBLE_NVT;
  const bool bulk = s->cell.periodic[0] && s->cell.periodic[1] && s->cell.periodic[2];
  run->motion = (ts_motion){.timestep = job->timestep,
                            .langevin = langevin,
                            .friction = job->ensemble.friction / TS_FS_PER_PS,
                            .temperature = job->ensemble.temperature,
                            .seed = (uint64_t)job->velocities.seed};
  run->setup = (ts_observe_setup){.natoms = s->natoms,
                                  .dof = ts_observe_dof(s->natoms, langevin),
                                  .momentum_conserved = !langevin,
                                  .volume = bulk ? ts_cell_volume(&s->cell) : 0,
                                  .timestep = job->timestep,
                                  .target = langevin ? job->ensemble.temperature : 0};
}

static void log_task(const tsi_run *run)
{
  const ts_job *job = run->job;
  char ensemble[128] = "NVE";
  if (job->task == TS_TASK_ENERGY) {
    ts_log(TS_LOG_INFO, "task       energy, forces and stress of the structure");
    return;
  }
  if (job->ensemble.kind == TS_ENSEMBLE_NVT)
    snprintf(ensemble, sizeof ensemble, "NVT at %g K (Langevin, friction %g/ps)",
             job->ensemble.temperature, job->ensemble.friction);
  ts_log(TS_LOG_INFO,
         "task       %lld steps of %g fs (%g ps in all), %s, %lld degrees of freedom, seed %lld",
         (long long)(job->steps - run->first_step), job->timestep,
         tsi_run_time(run, job->steps) / TS_FS_PER_PS, ensemble, (long long)run->setup.dof,
         (long long)job->velocities.seed);
}

static int check_ranks(const tsi_run *run)
{
  if (run->ranks.size <= run->system->natoms) return 0;
  return tsi_fail(TS_ERR_INPUT,
                  "%s: %d ranks for the %lld atoms of %s; expected at most one rank "
                  "per atom",
                  run->job->path, run->ranks.size, (long long)run->system->natoms,
                  run->job->structure);
}

/* Inputs first, so that a wrong one is answered before anything is started. */
static int start(tsi_run *run, bool resume)
{
  const ts_job *job = run->job;
  char structure[TS_JOB_TEXT], model[TS_JOB_TEXT];
  tsi_contents contents;
  int status = ts_job_input(job, job->structure, structure);
  if (!status) status = ts_job_input(job, job->model, model);
  TS_TRY(start_world(run, status));
  status = digest_file(model, run->model_digest, sizeof run->model_digest);
  TS_TRY(tsi_ranks_agree(&run->ranks, status));
  TS_TRY(tsi_run_compare(run));
  TS_TRY(tsi_run_check_folder(run, resume));
  if (resume && tsi_run_has_checkpoint(run)) {
    TS_TRY(tsi_run_load(run));
  } else {
    if (resume) ts_log(TS_LOG_INFO, "resume     no checkpoint yet: starting from step 0");
    TS_TRY(ts_xyz_read(&run->ranks, structure, &run->system));
  }
  TS_TRY(check_ranks(run));
  TS_TRY(tsi_setup_contents(&run->ranks, run->system, &contents));
  tsi_setup_log_system(job->structure, run->system, &contents);
  if (job->task == TS_TASK_MD && !run->resume) TS_TRY(new_velocities(run));
  TS_TRY(tsi_run_make_folder(run));
  status = tsi_setup_model(job, run->system, &contents, &run->model);
  TS_TRY(tsi_ranks_agree(&run->ranks, status));
  tsi_setup_log_model(job, run->model);
  make_setup(run);
  TS_TRY(tsi_ranks_agree(&run->ranks, start_engine(run)));
  TS_TRY(start_collective(run));
  TS_TRY(make_step(run));
  log_task(run);
  return 0;
}

/* ---- the tasks */

int tsi_run_find_extremes(tsi_run *run)
{
  if (!run->total_known) TS_TRY(ts_partial_extremes(&run->total, run->collective));
  run->total_known = true;
  return 0;
}

/* Observables of a step; those of a step that has failed do not count.  The sums are equal on all
 * ranks, and so is what follows from them; whose force is the largest is found out where a row or a
 * message needs it. */
static int observe(tsi_run *run, int64_t number, const ts_partial *total, ts_observer *observer)
{
  ts_observables now;
  ts_observer next = *observer;
  run->total = *total;
  run->total_step = number;
  run->total_known = run->ranks.size == 1;
  if (tsi_run_row_due(run, number)) TS_TRY(tsi_run_find_extremes(run));
  int status = ts_observe(&run->setup, number, &run->total, &next, &now);
  if (status && !run->total_known) {
    TS_TRY(tsi_run_find_extremes(run));
    next = *observer;
    status = ts_observe(&run->setup, number, &run->total, &next, &now);
  }
  if (status) return status;
  *observer = next;
  run->last = now;
  return 0;
}

/* Forces and observables at the state as it is.  A resumed step has been observed before. */
static int first_evaluation(tsi_run *run, bool observed)
{
  ts_partial total;
  ts_observer copy = run->observer;
  TS_TRY(ts_step_evaluate(run->step, run->first_step, &total));
  return observe(run, run->first_step, &total, observed ? &copy : &run->observer);
}

static int advance(tsi_run *run, int64_t number)
{
  ts_partial total;
  TS_TRY(ts_step_advance(run->step, &run->motion, number, &total));
  return observe(run, number, &total, &run->observer);
}

static bool checkpoint_due(const tsi_run *run)
{
  const int64_t every = run->job->output.checkpoint.every;
  return run->last.step == run->job->steps || (every > 0 && run->last.step % every == 0);
}

static int loop(tsi_run *run)
{
  for (int64_t number = run->first_step + 1; number <= run->job->steps; number++) {
    run->step_began = ts_clock();
    TS_TRY(advance(run, number));
    TS_TRY(tsi_run_output(run));
    const bool due = checkpoint_due(run);
    if (due) TS_TRY(tsi_run_save(run));
    run->longest = fmax(run->longest, ts_clock() - run->step_began);
    const char *reason = number < run->job->steps ? reason_to_stop(run) : NULL;
    if (!reason) continue;
    if (!due) TS_TRY(tsi_run_save(run));
    return tsi_fail(TS_ERR_STOPPED, "stopped by %s after step %lld of %lld; continue with --resume",
                    reason, (long long)number, (long long)run->job->steps);
  }
  return 0;
}

/* ---- the end */

/* Whether all ranks are here, or come within two seconds. */
static bool all_here(const tsi_run *run)
{
  const struct timespec pause = {.tv_nsec = 1000000};
  const double begin = ts_clock();
  MPI_Request request;
  int here = 0;
  if (MPI_Ibarrier(ts_world_comm(run->world), &request)) return false;
  while (!MPI_Test(&request, &here, MPI_STATUS_IGNORE) && !here && ts_clock() - begin < 2)
    nanosleep(&pause, NULL);
  return here;
}

/* A failure that other ranks do not share (memory, a lost connection) leaves them waiting for this
 * one: end them all. */
static void end_if_alone(const tsi_run *run, int status)
{
  if (!status || run->ranks.size < 2 || all_here(run)) return;
  ts_error_print(status);
  fflush(stdout);
  ts_world_abort(run->world, status);
}

static int run_md(tsi_run *run)
{
  const bool resumed = run->resume != NULL;
  TS_TRY(tsi_run_open_output(run));
  tsi_run_log_output(run);
  if (resumed) TS_TRY(tsi_run_load_rest(run));
  int status = first_evaluation(run, resumed);
  if (!status && !resumed) {
    status = tsi_run_output(run);
    if (!status && run->job->steps == 0) status = tsi_run_save(run);
  }
  if (!status) status = loop(run);
  end_if_alone(run, status);
  char message[2048]; /* the summary must not replace the message of a failure */
  snprintf(message, sizeof message, "%s", ts_error_message());
  if (status && status != TS_ERR_STOPPED && run->saved_step >= 0)
    ts_log(TS_LOG_INFO, "the newest checkpoint is of step %lld", (long long)run->saved_step);
  const int finish = tsi_run_finish_output(run, !status                    ? "done"
                                                : status == TS_ERR_STOPPED ? "stopped"
                                                                           : "failed");
  return status ? tsi_fail(status, "%s", message) : finish;
}

static int run_energy(tsi_run *run)
{
  char path[TS_JOB_TEXT];
  TS_TRY(first_evaluation(run, false));
  TS_TRY(tsi_run_write_energy(run));
  TS_TRY(ts_job_output(run->job, run->job->output.trajectory.file, path));
  if (run->ranks.first > 0) return 0;
  printf("energy %.10f eV\nlargest force %.6f eV/Å on atom %lld\n", run->last.epot,
         run->last.max_force, (long long)run->last.max_force_gid + 1);
  if (run->setup.volume > 0) {
    const double *s = run->last.virial_stress;
    printf("stress xx yy zz yz xz xy %.8f %.8f %.8f %.8f %.8f %.8f eV/Å^3\n", s[0], s[1], s[2],
           s[3], s[4], s[5]);
  }
  printf("forces are in %s\n", path);
  return 0;
}

/* The end of a failed run must not wait for a transfer that never comes. */
static void leave(int number)
{
  (void)number;
  _exit(leave_with);
}

static int finish(tsi_run *run, int status)
{
  char message[2048];
  snprintf(message, sizeof message, "%s", ts_error_message());
  end_if_alone(run, status);
  if (status && run->ranks.size > 1) {
    if (run->ranks.first == 0) ts_error_print(status);
    leave_with = ts_status_exit(status);
    signal(SIGALRM, leave);
    alarm(3);
  }
  const int closed = ts_trajectory_close(&run->trajectory);
  if (!status && closed) {
    status = closed;
    snprintf(message, sizeof message, "%s", ts_error_message());
  }
  ts_report_destroy(&run->report);
  ts_rdf_destroy(&run->rdf);
  ts_checkpoint_destroy(&run->resume);
  ts_step_destroy(&run->step);
  ts_model_destroy(&run->model);
  ts_system_destroy(&run->system);
  ts_engine_destroy(&run->engine);
  ts_collective_destroy(&run->collective);
  if (status) tsi_fail(status, "%s", message);
  const bool broken = tsi_h5_is_broken();
  if (status && broken && run->ranks.first == 0) ts_error_print(status);
  if (status && run->world && broken) {
    fflush(stdout);
    ts_world_abort(run->world, status);
  }
  ts_world_destroy(&run->world);
  return status;
}

int ts_run_refuse(int status)
{
  int rank;
  tsi_run run = {0};
  if (!ts_world_launched(&rank)) return status;
  return finish(&run, start_world(&run, status));
}

int ts_run_job(const ts_job *job, bool resume)
{
  tsi_run run = {.job = job,
                 .saved_step = -1,
                 .total_step = -1,
                 .total_known = true,
                 .last = {.step = -1},
                 .began = ts_clock()};
  catch_signals();
  int status = start(&run, resume);
  if (!status) status = job->task == TS_TASK_ENERGY ? run_energy(&run) : run_md(&run);
  return finish(&run, status);
}
