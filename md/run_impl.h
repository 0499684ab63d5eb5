/* SPDX-License-Identifier: MIT
 *
 * The state of a running job, shared by md/run.c (start, loop, end), md/run_output.c (what is
 * written) and md/run_resume.c (checkpoints). */
#ifndef TS_RUN_IMPL_H
#define TS_RUN_IMPL_H

#include "comm/collective.h"
#include "comm/peers.h"
#include "comm/world.h"
#include "md/checkpoint.h"
#include "md/job.h"
#include "md/rdf.h"
#include "md/report.h"
#include "md/step.h"
#include "md/trajectory.h"
#include "runtime/engine.h"

typedef struct tsi_run {
  const ts_job *job;
  ts_world *world;
  ts_ranks ranks;            /**< of the world */
  ts_collective *collective; /**< of its ranks; NULL: there is one */
  ts_engine *engine;
  ts_system *system;
  ts_model *model;
  char model_digest[32]; /**< of the weight file's bytes */
  ts_step *step;
  ts_motion motion;
  ts_observe_setup setup;
  ts_observer observer;
  ts_observables last; /**< of the newest step; step -1: none yet */
  ts_partial total;    /**< sums of step total_step, which may have failed */
  int64_t total_step;
  bool total_known; /**< their extremes are those of all ranks */
  int64_t first_step;
  int64_t saved_step;    /**< of the newest checkpoint; -1: none */
  ts_checkpoint *resume; /**< while a run is being resumed */
  ts_trajectory *trajectory;
  ts_rdf *rdf;
  ts_report *report; /**< on rank 0 */
  double output_seconds;
  double began, step_began; /**< of the run and the present step, by ts_clock() [s] */
  double longest;           /**< step so far [s] */
} tsi_run;

/** Time of a step [fs]. */
double tsi_run_time(const tsi_run *run, int64_t step);

/** Do all ranks have the same settings and weights?  Collective: fails on all, with both values. */
int tsi_run_compare(const tsi_run *run);

/** Refuse to start over in a folder that holds another run, unless it is to be resumed. */
int tsi_run_check_folder(const tsi_run *run, bool resume);

/** Make output.directory, once the inputs are known to be right. */
int tsi_run_make_folder(const tsi_run *run);

/** One line in the log: which files are written, and how often. */
void tsi_run_log_output(const tsi_run *run);

/** Open log, trajectory and RDF (a resumed run keeps what is there up to its step). */
int tsi_run_open_output(tsi_run *run);

/** Is a row of the log due after step `number`? */
bool tsi_run_row_due(const tsi_run *run, int64_t number);

/** Write what is due after step `last.step`: row, frame, RDF; in this order.  Collective. */
int tsi_run_output(tsi_run *run);

/** Force rows and frames to the disk.  Collective. */
int tsi_run_sync(tsi_run *run);

/** The structure with its forces and stress, for task "energy". */
int tsi_run_write_energy(tsi_run *run);

/** Find out whose force is the largest, of the step whose sums are in run->total.  Collective. */
int tsi_run_find_extremes(tsi_run *run);

enum { TSI_SPREADS = 10 };

/** How evenly the ranks share the work.  Collective on several ranks.
 * \param [in] stats  Of this rank's step. */
int tsi_run_spreads(const tsi_run *run, const ts_step_stats *stats, ts_spread out[TSI_SPREADS]);

/** Phase table and summary.json; status as in ts_report_summary_begin.  Collective. */
int tsi_run_finish_output(tsi_run *run, const char *status);

/** Is there a checkpoint to resume from?  Collective. */
bool tsi_run_has_checkpoint(const tsi_run *run);

/** Write a checkpoint of the present step (what it counts on is forced to the disk first). */
int tsi_run_save(tsi_run *run);

/** Read the newest sound checkpoint: the system at the build of its epoch, steps, observer. */
int tsi_run_load(tsi_run *run);

/** Who had which atom (ts_step_params.keys and .owners), in the order of the system that was
 * loaded. Collective. \param [out] keys    [n], for free(); NULL: not a resume, or one rank, or one
 * has written it. \param [out] owners  [n], for free(); NULL: they follow from the keys, or other
 * ranks wrote it. */
int tsi_run_load_owners(const tsi_run *run, uint64_t **keys, int32_t **owners);

/** After the step object exists: put the atoms where they were, and the RDF's counts. */
int tsi_run_load_rest(tsi_run *run);

#endif
