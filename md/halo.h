/* SPDX-License-Identifier: MIT
 *
 * What one stage of a step exchanges with other ranks in an epoch: positions and keys and values of
 * atoms that others need, out; the same of atoms that this rank needs, in; and gradients back along
 * the same ways.  All buffers have the extents of the plan, are carved once an epoch and registered
 * with StarPU, one handle a peer and direction. */
#ifndef TS_HALO_H
#define TS_HALO_H

#include "codelets/codelets.h"
#include "comm/plan.h"
#include "comm/sparse.h"
#include "md/carve.h"
#include "neighbor/level1.h"

/** Per rank that sends to this one. */
typedef struct tsi_source {
  int rank, n;                            /**< rows */
  starpu_data_handle_t x;                 /**< where its positions arrive */
  starpu_data_handle_t kv[TS_MAX_LAYERS]; /**< its keys and values, by layer of the stage */
  starpu_data_handle_t dkv, feel;         /**< what goes back to it */
} tsi_source;

/** Per rank that this one sends to. */
typedef struct tsi_target {
  int rank;
  ts_outbound out;
  starpu_data_handle_t places, block; /**< what goes to it */
  starpu_data_handle_t dkv, feel;     /**< what comes back */
} tsi_target;

typedef struct tsi_halo {
  ts_plan plan;
  ts_lidx own, n;      /**< atoms of this rank and of others */
  double (*x)[3];      /**< [own + n,3] positions; the others' arrive here */
  ts_gidx *gid;        /**< [n] */
  uint8_t *z;          /**< [n] */
  int layers;          /**< of the stage */
  tsi_source *source;  /**< [plan.sources] */
  tsi_target *target;  /**< [plan.targets] */
  ts_inbound *inbound; /**< [tiles] what comes back to a tile, by target */
  int32_t *pool;       /**< index arrays of outbound and inbound */
  bool *sends;         /**< [tiles] some target needs atoms of it */
} tsi_halo;

/** Take what is needed of `remote` (rows with used [remote->n] set, in their order), and make the
 * plan.  Collective on the ranks.
 * \param [in] own   Atoms of this rank.
 * \param [in] rows  Atoms of a tile. */
int tsi_halo_create(const ts_ranks *ranks, const ts_remote *remote, const bool *used, ts_lidx own,
                    int rows, int layers, tsi_halo **out);

/** Carve and register the buffers; count with carver->arena NULL, then again with it. */
void tsi_halo_carve(tsi_halo *halo, tsi_carver *carver, const ts_shape *shape, size_t real_size,
                    bool fixed);

/** Accepts NULL, sets *halo to NULL. */
void tsi_halo_destroy(tsi_halo **halo);

#endif
