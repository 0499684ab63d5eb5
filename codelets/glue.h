/* SPDX-License-Identifier: MIT
 *
 * What the codelets share: recording a task with one line per datum, and finding the kernels'
 * arguments in a task's buffers. */
#ifndef TS_GLUE_H
#define TS_GLUE_H

#include "codelets/codelets.h"

/** Arguments of every codelet on a model. */
typedef struct tsi_layer_args {
  ts_task_header header;
  const ts_model *model;
  const ts_shape *shape;
  const ts_layer *layer;
  const ts_tile *tile;
  bool keep;
} tsi_layer_args;

/** The arguments of a task on layer `layer` of `stage`; layer < 0: of no layer. */
tsi_layer_args tsi_layer_arguments(const ts_recorder *r, int stage, int layer, const ts_tile *tile,
                                   bool keep);

/** Record a task.  access [naccess]. */
int tsi_record(const ts_recorder *r, const struct starpu_codelet *codelet, ts_phase_id phase,
               const void *args, size_t args_size, int naccess, const ts_access *access);

/** Record a task with `nfixed` data and then `nlists` lists of `count` data, all read. */
int tsi_record_lists(const ts_recorder *r, const struct starpu_codelet *codelet, ts_phase_id phase,
                     const void *args, size_t args_size, int nfixed, const ts_access *fixed,
                     int nlists, int count, const starpu_data_handle_t *const *lists);

/** Start of a task's i-th datum. */
static inline void *tsi_buffer(void *buffers[], int i)
{
  return (void *)STARPU_VECTOR_GET_PTR(buffers[i]);
}

/** The starts of `count` data from the `first`, as an array at the beginning of *scratch, which
 * moves on behind it. */
const void **tsi_pointers(char **scratch, void *buffers[], int first, int count);

/** Bytes of scratch for `lists` such arrays. */
size_t tsi_pointers_bytes(int lists, int count);

/** The kernels' view of a tile's edges, from its index arrays and its block of step data. */
ts_edge_block tsi_edge_block(const ts_model *model, const ts_tile *tile, void *edges);

/** f += sign g, or, where `fixed` is given, fixed in units of 2^-TS_FORCE_BITS.
 * \return whether it could be. */
bool tsi_add_force(const double g[3], double sign, double f[3], int64_t fixed[3]);
/** Fail a task because the above could not. */
void tsi_force_out_of_range(const ts_task_header *header);

#endif
