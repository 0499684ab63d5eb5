/* SPDX-License-Identifier: MIT
 *
 * What a gradient of (u, r) pulls on the edge vector: glue of models/edge_cpu.c. */
#include "codelets/glue.h"

/* data: edges, grad, pull */
static void edge_force_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  ts_edge_arrays at;
  ts_edge_layout(a->model, a->tile->edges, tsi_buffer(buffers, 0), &at);
  a->model->kernels->edge_force(a->tile->edges, at.geometry, at.active, tsi_buffer(buffers, 1),
                                tsi_buffer(buffers, 2));
}

static struct starpu_perfmodel edge_force_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                   .symbol = "ts_edge_force"};

static const struct starpu_codelet edge_force_codelet = {.cpu_funcs = {edge_force_cpu},
                                                         .nbuffers = 3,
                                                         .modes = {STARPU_R, STARPU_R, STARPU_W},
                                                         .model = &edge_force_model,
                                                         .name = "ts_edge_force"};

int ts_submit_edge_force(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                         starpu_data_handle_t grad, starpu_data_handle_t pull)
{
  const tsi_layer_args args = tsi_layer_arguments(r, 0, -1, tile, false);
  const ts_access access[] = {{edges, STARPU_R}, {grad, STARPU_R}, {pull, STARPU_W}};
  return tsi_record(r, &edge_force_codelet, TS_PHASE_FORCE, &args, sizeof args, 3, access);
}
