/* SPDX-License-Identifier: MIT
 *
 * The sender's half of attention's gradient, of a tile or of the halo from one peer: glue of
 * models/attend_back_cpu.c and, in fixed point, of models/exchange_cpu.c. */
#include <string.h>

#include "codelets/glue.h"
#include "runtime/error.h"

struct send_args {
  tsi_layer_args layer;
  const ts_tile *tiles;
  int rows; /* of dkv */
  bool fixed;
};

/* data: scratch, dkv, then of the receivers' tiles: q, sum, share, edges */
static void send_back_cpu(void *buffers[], void *cl_arg)
{
  const struct send_args *a = cl_arg;
  const ts_tile *tile = a->layer.tile;
  const int count = tile->nto;
  char *scratch = tsi_buffer(buffers, 0);
  const void **q = tsi_pointers(&scratch, buffers, 2, count);
  const void **sum = tsi_pointers(&scratch, buffers, 2 + count, count);
  const void **share = tsi_pointers(&scratch, buffers, 2 + 2 * count, count);
  const void **edge = tsi_pointers(&scratch, buffers, 2 + 3 * count, count);
  const void **active = tsi_pointers(&scratch, buffers, 2 + 3 * count, count);
  for (int i = 0; i < count; i++) {
    ts_edge_arrays at;
    ts_edge_layout(a->layer.model, a->tiles[tile->to[i]].edges,
                   tsi_buffer(buffers, 2 + 3 * count + i), &at);
    edge[i] = at.edge;
    active[i] = at.active;
  }
  const ts_kernels *kernels = a->layer.model->kernels;
  const ts_sender_block block = {.n = tile->n,
                                 .rows = a->rows,
                                 .column = tile->column,
                                 .tile = tile->to_tile,
                                 .receiver = tile->to_row,
                                 .edge = tile->to_edge};
  if (!a->fixed) {
    kernels->attend_send_back(a->layer.shape, a->layer.layer, &block, q, sum, share, active, edge,
                              tsi_buffer(buffers, 1), scratch);
    return;
  }
  int64_t *fixed = tsi_buffer(buffers, 1);
  memset(fixed, 0, (size_t)tile->n * ts_kv_width(a->layer.shape) * sizeof *fixed);
  if (!kernels->attend_send_fixed(a->layer.shape, a->layer.layer, &block, q, sum, share, active,
                                  edge, fixed, scratch))
    tsi_program_fail(&a->layer.header,
                     tsi_fail(TS_ERR_SIMULATION,
                              "a gradient is beyond what reproducible sums can hold (%g): the "
                              "structure is far from any that the model knows",
                              4e18 / (double)((int64_t)1 << TS_FIXED_BITS)));
}

static struct starpu_perfmodel send_back_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                  .symbol = "ts_send_back"};

static const struct starpu_codelet send_back_codelet = {.cpu_funcs = {send_back_cpu},
                                                        .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                        .model = &send_back_model,
                                                        .name = "ts_send_back"};

int ts_submit_send_back(const ts_recorder *r, int stage, int layer, bool fixed, int rows,
                        const ts_tile *tile, const ts_tile *tiles, const starpu_data_handle_t *q,
                        const starpu_data_handle_t *sum, const starpu_data_handle_t *share,
                        const starpu_data_handle_t *edges, starpu_data_handle_t dkv)
{
  const struct send_args args = {tsi_layer_arguments(r, stage, layer, tile, false), tiles, rows,
                                 fixed};
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH}, {dkv, STARPU_W}};
  const starpu_data_handle_t *const lists[] = {q, sum, share, edges};
  return tsi_record_lists(r, &send_back_codelet, TS_PHASE_SEND_BACK, &args, sizeof args, 2, access,
                          4, tile->nto, lists);
}
