/* SPDX-License-Identifier: MIT
 *
 * One step of the simulation, as tasks: forces of the model, and the motion under them.
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
#include "neighbor/level1.h"
#include "neighbor/partition.h"

enum { TS_STEP_NEWS = 4 };

typedef struct ts_step_params {
  const ts_model *model; /**< borrowed */
  int workers;           /**< for the automatic tile size */
  double skin;           /**< [Å] >= 0 */
  int64_t rebuild;       /**< steps between scheduled rebuilds, >= 1 */
  int64_t period; /**< steps between partitions (on one rank: sorts along the curve); 0: at the
                     first rebuild at which an atom is half the longest cutoff from where it was */
  ts_search_backend backend;
  int chunk;
  int tile_atoms;   /**< 0: automatic */
  double recompute; /**< 0..1: part of the tiles that keep no large intermediates */
  bool replay; /**< false: record the tasks anew on every step (to measure what replay saves) */
  bool reproducible; /**< the same bits on any number of ranks: sums of integers, no halves */
  /* several ranks; on one, all may stay as ts_step_params_init leaves them */
  const ts_ranks *ranks;     /**< NULL: this rank is alone; copied */
  ts_transfers *transfers;   /**< what sends handles: ts_engine_transfers(); borrowed */
  ts_collective *collective; /**< of these ranks; borrowed */
  ts_level1_params level1;
  ts_partition_params partition; /**< its curve also on one rank */
  bool weighted;                 /**< cut by edges instead of atoms */
  bool overlap; /**< false: wait for every exchange at once (to measure what hiding it saves) */
  /** What this rank has to tell the others besides (md/run.c: that it should stop), asked at the
   * end of each evaluation, so that it travels with the sums; NULL: nothing. */
  void (*ask)(void *context, int64_t news[TS_STEP_NEWS]);
  void *context;
  /* of a resumed run, for the first partition; read in ts_step_create; or NULL */
  const uint64_t *keys;  /**< [system->n] order of the atoms instead of the curve's */
  const int32_t *owners; /**< [system->n] ranks instead of a cut; needs keys */
} ts_step_params;

/** Why an epoch began. */
#define TS_REBUILD_MAP(X)                    \
  X(TS_REBUILD_START, "start")               \
  X(TS_REBUILD_SCHEDULE, "schedule")         \
  X(TS_REBUILD_DISPLACEMENT, "displacement") \
  X(TS_REBUILD_PASSIVE, "passive")           \
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
  ts_lidx halo[TS_MAX_STAGES];          /**< atoms of other ranks */
  int peers;                            /**< ranks that send to this one, in any stage */
  int64_t sent_bytes;                   /**< by one step */
  int sent_messages;                    /**< by one step */
  size_t bytes;                         /**< of the step's arrays */
  double phase_seconds[TS_PHASE_COUNT]; /**< summed over workers */
  double rebuild_seconds, run_seconds;  /**< of the calling thread */
} ts_step_stats;

typedef struct ts_step ts_step;

/** Defaults: skin 0.5, rebuild 10, period 100, Hilbert, cells, chunk 512, replay; model unset. */
void ts_step_params_init(ts_step_params *params);

/** Prepare: wrap, sort the atoms along the curve and begin the first epoch at the present
 * positions.  Needs a running engine.  On several ranks the atoms may be given in any distribution;
 * every rank gets its share of the curve.  Collective, as are all calls below that compute; where
 * one rank fails all do, and the message is with the one that did. \param [in] system  Borrowed
 * until ts_step_destroy; reordered here and every `period` steps. \return 0, TS_ERR_INPUT (an
 * element without tables, no atoms), TS_ERR_SIMULATION (positions that are not finite),
 * TS_ERR_MEMORY or TS_ERR_STARPU. */
int ts_step_create(const ts_step_params *params, ts_system *system, ts_step **out);
void ts_step_destroy(ts_step **step);

/** Energies, forces and virial at the present positions (no motion).  Collective.
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

/** Fingerprint of the active edges of a stage in global ids, and how many there are, on all ranks
 * together.  Collective. */
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

/** Unwrapped positions at the last partition [n,3] double [Å], in the system's order: where an
 * automatic period measures from.  Borrowed; NULL: the period is fixed. */
const double (*ts_step_partition_positions(const ts_step *step))[3];

/** Measure from these positions, of the run that is resumed.  Not collective.
 * \param [in] x  [n,3] double [Å], in the system's order; copied. */
void ts_step_partition_positions_set(ts_step *step, const double (*x)[3]);

/** [n] place of every atom along the curve at the last partition, in the system's order: what a
 * checkpoint holds, so that a resumed run gives every atom the owner that it had.  Borrowed; NULL
 * on one rank. */
const uint64_t *ts_step_keys(const ts_step *step);

/** [TS_STEP_NEWS] sums over all ranks of what params.ask said in the last evaluation; borrowed. */
const int64_t *ts_step_news(const ts_step *step);

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
