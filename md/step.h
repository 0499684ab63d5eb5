/* SPDX-License-Identifier: MIT
 *
 * One step of the simulation on one rank, as tasks: forces of the model, and the motion under them.
 * Between rebuilds everything keeps its shape, so the tasks are recorded once and replayed (an
 * epoch).  An epoch ends when an atom may have left the skin, on schedule, or when the atoms are
 * sorted anew along the curve.  All of it is decided after the atoms have moved and before forces
 * are computed: forces always see the exact edge set, however far atoms went. */
#ifndef TS_STEP_H
#define TS_STEP_H

#include "codelets/codelets.h"
#include "md/observe.h"
#include "md/system.h"
#include "neighbor/curve.h"

typedef struct ts_step_params {
  const ts_model *model; /**< borrowed */
  int workers;           /**< for the automatic tile size */
  double skin;           /**< [Å] >= 0 */
  int64_t rebuild;       /**< steps between scheduled rebuilds, >= 1 */
  int64_t period;        /**< steps between sorts along the curve, >= 1 */
  ts_curve curve;
  ts_search_backend backend;
  int chunk;
  int tile_atoms;   /**< 0: automatic */
  double recompute; /**< 0..1: part of the tiles that keep no large intermediates */
  bool replay; /**< false: record the tasks anew on every step (to measure what replay saves) */
} ts_step_params;

/** Why an epoch began. */
#define TS_REBUILD_MAP(X)                    \
  X(TS_REBUILD_START, "start")               \
  X(TS_REBUILD_SCHEDULE, "schedule")         \
  X(TS_REBUILD_DISPLACEMENT, "displacement") \
  X(TS_REBUILD_PARTITION, "partition")

#define TS_REBUILD_ENUM(name, text) name,
typedef enum ts_rebuild { TS_REBUILD_MAP(TS_REBUILD_ENUM) TS_REBUILD_COUNT } ts_rebuild;
#undef TS_REBUILD_ENUM

/** What was done so far, for logs and summaries. */
typedef struct ts_step_stats {
  int64_t evaluations; /**< of the forces */
  int64_t rebuilds[TS_REBUILD_COUNT];
  int64_t records;                      /**< programs recorded */
  int tiles, tile_atoms, tasks;         /**< of the present epoch */
  int64_t candidates[TS_MAX_STAGES];    /**< edges at cutoff + skin */
  size_t bytes;                         /**< of the step's arrays */
  double phase_seconds[TS_PHASE_COUNT]; /**< summed over workers */
  double rebuild_seconds, run_seconds;  /**< of the calling thread */
} ts_step_stats;

typedef struct ts_step ts_step;

/** Defaults: skin 0.5, rebuild 10, period 100, Hilbert, cells, chunk 512, replay; model unset. */
void ts_step_params_init(ts_step_params *params);

/** Prepare: wrap, sort the atoms along the curve and begin the first epoch at the present
 * positions.  Needs a running engine.  Not collective (one rank).
 * \param [in] system  Borrowed until ts_step_destroy; reordered here and every `period` steps.
 * \return 0, TS_ERR_INPUT (an element without tables, no atoms), TS_ERR_SIMULATION (positions that
 *         are not finite), TS_ERR_MEMORY or TS_ERR_STARPU. */
int ts_step_create(const ts_step_params *params, ts_system *system, ts_step **out);
void ts_step_destroy(ts_step **step);

/** Energies, forces and virial at the present positions (no motion).  Not collective.
 * The caller may have changed system->x: the edges are rebuilt if an atom moved too far.
 * \param [out] total  Sums over all atoms.
 * \return 0, or TS_ERR_SIMULATION naming step and atoms (from 1) that overlap. */
int ts_step_evaluate(ts_step *step, int64_t number, ts_partial *total);

/** One step of dynamics, to step `number`; ts_step_evaluate (or the step before) has left forces.
 * \return 0, or TS_ERR_SIMULATION naming step, atoms and positions: overlap, a value that is not
 *         finite, or an atom that moved more than 1 Å at once. */
int ts_step_advance(ts_step *step, const ts_motion *motion, int64_t number, ts_partial *total);

/** Results of the last evaluation, in the system's present order; borrowed. */
const double (*ts_step_forces(const ts_step *step))[3];   /**< [n,3] [eV/Å] */
const double (*ts_step_virials(const ts_step *step))[9];  /**< [n,9] dE/d(strain) [eV] */
double ts_step_energy(const ts_step *step, ts_lidx atom); /**< [eV], reference included */

/** Fingerprint of the active edges of a stage in global ids, and how many there are. */
int ts_step_topology(const ts_step *step, int stage, uint64_t *hash, int64_t *active);

/** Where in its epoch and period the run is: part of what a checkpoint must hold, because the next
 * rebuild wraps positions and so touches their last bits. */
typedef struct ts_step_ages {
  int64_t build, partition; /**< steps since */
} ts_step_ages;
ts_step_ages ts_step_ages_get(const ts_step *step);

/** Positions at the build [n,3] double [Å], in the system's order, with the system's images;
 * borrowed. */
const double (*ts_step_build_positions(const ts_step *step))[3];

/** Go on inside an epoch that was created at its build positions: set the ages.  The caller then
 * puts the present positions into system->x.  Not collective. */
void ts_step_ages_set(ts_step *step, ts_step_ages ages);

ts_step_stats ts_step_statistics(const ts_step *step);

/** The candidate edges of a stage at the present positions, as an epoch would have them.
 * Not collective.
 * \param [in,out] out  NULL, or an earlier set whose memory is reused.
 * \return as ts_edges_build. */
int ts_step_edges(const ts_step_params *params, const ts_system *system, int stage, ts_edges **out);

/** Say in the log how many atoms a stage's max_neighbors concerns at the present positions.
 * Not collective.
 * \param [in] edges  As ts_step_edges has them.
 * \return 0 or TS_ERR_MEMORY. */
int ts_step_check_bound(const ts_step_params *params, const ts_system *system, int stage,
                        const ts_edges *edges);

/** Bytes of a step's arrays, for n atoms with edges[stage] candidate edges each. */
size_t ts_step_memory(const ts_step_params *params, ts_lidx n, const double *edges);

#endif
