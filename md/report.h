/* SPDX-License-Identifier: MIT
 *
 * What a person sees of a run: a table on the screen, the same and more in log.csv, a progress bar
 * with the time left on a terminal, and at the end a table of phases and summary.json.  Rank 0
 * only.  The columns are explained in docs/units.md.
 *
 * log.csv is written line by line.  A resumed run first drops the rows after the step it resumes
 * from (and a half-written last line), so that the file reads as if nothing had happened.  The
 * progress bar goes to standard error, and only if that is a terminal; it is erased before a row
 * is printed and drawn again behind it. */
#ifndef TS_REPORT_H
#define TS_REPORT_H

#include "md/observe.h"
#include "runtime/json_write.h"

typedef struct ts_report ts_report;

typedef struct ts_report_params {
  const char *directory; /**< exists; log.csv and summary.json go there; borrowed for the call */
  ts_gidx natoms;
  int64_t first_step; /**< the run starts from this step: 0, or that of the checkpoint */
  int64_t last_step;  /**< the step at which it is to end */
  bool resume;        /**< keep the rows of log.csv up to first_step */
} ts_report_params;

/** Seconds spent in one phase of the run. */
typedef struct ts_phase {
  const char *name;
  double seconds;
} ts_phase;

/** Does the directory hold a log.csv with rows?  Not collective. */
bool ts_report_exists(const char *directory);

/** Open log.csv and start the clock.  Not collective.
 * \return 0, TS_ERR_IO, TS_ERR_MEMORY, or TS_ERR_INPUT (log.csv of a resumed run is not ours). */
int ts_report_create(const ts_report_params *params, ts_report **out);

/** Close the files (errors were reported by the calls before).  Accepts NULL. */
void ts_report_destroy(ts_report **report);

/** One row on the screen and in log.csv.  \return 0 or TS_ERR_IO. */
int ts_report_row(ts_report *report, const ts_observables *observed);

/** Tell the progress bar where the run is; cheap, call it on every step. */
void ts_report_progress(ts_report *report, int64_t step);

/** Force the rows of log.csv to the disk, before a checkpoint counts on them.
 * \return 0 or TS_ERR_IO. */
int ts_report_sync(ts_report *report);

/** Erase the progress bar, before something else writes to the terminal (lines of the log need no
 * such call). */
void ts_report_pause(ts_report *report);

/** Print the table of phases: seconds, per step, share; the rest of the wall time as "other". */
void ts_report_phases(ts_report *report, int nphases, const ts_phase *phase);

/** A number that every rank has: smallest, mean and largest. */
typedef struct ts_spread {
  const char *key, *name; /**< in summary.json; on the screen */
  double unit;            /**< the screen shows multiples of it */
  double min, mean, max;
} ts_spread;

/** Print the table of what ranks share, one line for each number. */
void ts_report_spreads(ts_report *report, int ranks, int n, const ts_spread *spread);

/** Begin summary.json with what every run has: status, steps, atoms, wall time, speed, the last
 * observables, means and drift from the observer, phases.  The object stays open for the caller's
 * own members; ts_report_summary_end writes it.
 * \param [in]  status    "done", "stopped", "failed"
 * \param [in]  last      The last observables, or NULL (no step was made).
 * \param [in]  observer  The run's observer, or NULL.
 * \param [out] out       Borrowed until ts_report_summary_end.
 * \return 0 or TS_ERR_MEMORY. */
int ts_report_summary_begin(ts_report *report, const char *status, const ts_observables *last,
                            const ts_observer *observer, int nphases, const ts_phase *phase,
                            ts_json_writer **out);

/** Write summary.json.  \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_report_summary_end(ts_report *report);

/** Seconds of CLOCK_MONOTONIC: for phases and speeds. */
double ts_clock(void);

#endif
