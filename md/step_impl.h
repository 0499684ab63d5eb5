/* SPDX-License-Identifier: MIT
 *
 * The body of a step, shared by md/step.c (decisions), md/step_record.c (the order of the
 * tasks) and md/epoch.c (arrays, handles, edges). */
#ifndef TS_STEP_IMPL_H
#define TS_STEP_IMPL_H

#include "md/halo.h"
#include "md/motion.h"
#include "md/step.h"
#include "runtime/memory.h"

enum { TSI_LAYERS = TS_MAX_STAGES * TS_MAX_LAYERS };

/** Handles of one tile.  h[k] is the input of layer k (counted over stages), h[layers] the output
 * of the last; between is the normalised input of a cluster's long stage. */
typedef struct tsi_tile_data {
  starpu_data_handle_t x, motion, energy;
  starpu_data_handle_t h[TSI_LAYERS + 1], between;
  starpu_data_handle_t q[TSI_LAYERS], kv[TSI_LAYERS], saved[TSI_LAYERS];
  starpu_data_handle_t sum, dq, dkv, dh, dshort;
  starpu_data_handle_t fixed; /**< reproducible: gradients of keys and values as integers */
  starpu_data_handle_t edges[TS_MAX_STAGES], grad[TS_MAX_STAGES], pull[TS_MAX_STAGES], share;
  bool keep; /**< keeps the large intermediates */
} tsi_tile_data;

struct ts_step {
  ts_step_params params;
  const ts_model *model;
  ts_system *system;
  ts_shape shape;
  ts_ranks ranks;      /**< all of the run; one rank: without communicator */
  ts_lidx atoms;       /**< that the arrays below are for, */
  const void *atoms_x; /**< and where their positions are */
  int layers, ntiles;
  bool first_order; /**< some layer is */
  bool bound_said;  /**< the log has the line about max_neighbors */

  double (*f)[3];
  int64_t (*f_fixed)[3]; /**< reproducible: forces as integers */
  double (*virial)[9];
  double (*x_build)[3];
  double (*x_partition)[3]; /**< unwrapped, at the last partition; automatic period */
  double strayed;           /**< largest distance from there at the build [Å] */
  double *reference;        /**< [n] [eV] */

  ts_edges *edges[TS_MAX_STAGES];
  ts_tiles *tiles[TS_MAX_STAGES];
  int32_t *pair[TS_MAX_STAGES];  /**< [E] species pair of every edge */
  tsi_halo *halo[TS_MAX_STAGES]; /**< several ranks */
  ts_closest *closest;           /**< [stages, tiles] */
  ts_motion_report *report;      /**< [tiles] */
  ts_partial *partial;           /**< [tiles] */
  ts_slice *slice;               /**< [tiles] */
  double **energy;               /**< [tiles] [A] */
  uint8_t **active;              /**< [stages, tiles] */
  tsi_tile_data *tile;           /**< [tiles] */
  starpu_data_handle_t scratch;
  size_t scratch_bytes;
  int partners; /**< longest list of blocks that a task names */

  ts_arena *atoms_arena, *edges_arena, *halo_arena;
  size_t edges_bytes;

  uint64_t *key; /**< [n] place along the curve at the last partition; several ranks */
  bool ready;    /**< an epoch has begun: edges and arrays are there */
  ts_program *move, *force;
  ts_step_now now;
  int64_t news[TS_STEP_NEWS];
  int64_t age; /**< steps since the build */
  int64_t partition_age;
  ts_step_stats stats;
};

/** Tile size, number of tiles and what else follows from parameters and number of atoms. */
void tsi_step_sizes(ts_step *step, const ts_step_params *params, ts_lidx n);

/** Begin an epoch at the present positions: wrap; with `sort` also give every atom to its owner, by
 * the curve or by params.keys and params.owners; build edges, tiles, plans and the arrays on them.
 * The programs are gone when it returns.  Collective on the ranks. */
int tsi_epoch_begin(ts_step *step, bool sort);

/** A period begins at the present build. */
void tsi_period_begin(ts_step *step);

/** How far atoms are from where they were at the last partition: sets `strayed`. */
void tsi_period_measure(ts_step *step);

/** Is a partition due?
 * \param [in] rebuild  An epoch ends anyway.
 * \param [in] strayed  The largest of all ranks [Å]. */
bool tsi_period_is_over(const ts_step *step, bool rebuild, double strayed);

/** Record both programs of the epoch.  Not collective. */
int tsi_step_record(ts_step *step);

/** The line of the log about atoms with more senders than max_neighbors. */
void tsi_step_log_bound(const ts_stage_desc *stage, int64_t bounded, int64_t atoms);

void tsi_epoch_destroy(ts_step *step);

#endif
