/* SPDX-License-Identifier: MIT
 *
 * The edge-degree embedding and its gradient: glue of models/edge_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, edges, h */
static void embed_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  const ts_edge_block block = tsi_edge_block(a->model, a->tile, tsi_buffer(buffers, 1));
  a->model->kernels->embed(a->shape, a->model->desc.average_degree, &a->model->embed, &block,
                           tsi_buffer(buffers, 2), tsi_buffer(buffers, 0));
}

/* data: scratch, edges, dh, grad */
static void embed_back_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  const ts_edge_block block = tsi_edge_block(a->model, a->tile, tsi_buffer(buffers, 1));
  a->model->kernels->embed_back(a->shape, a->model->desc.average_degree, &a->model->embed, &block,
                                tsi_buffer(buffers, 2), tsi_buffer(buffers, 3),
                                tsi_buffer(buffers, 0));
}

static struct starpu_perfmodel embed_model = {.type = STARPU_NL_REGRESSION_BASED,
                                              .symbol = "ts_embed"};

static const struct starpu_codelet embed_codelet = {.cpu_funcs = {embed_cpu},
                                                    .nbuffers = 3,
                                                    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_W},
                                                    .model = &embed_model,
                                                    .name = "ts_embed"};

static struct starpu_perfmodel embed_back_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                   .symbol = "ts_embed_back"};

static const struct starpu_codelet embed_back_codelet = {
    .cpu_funcs = {embed_back_cpu},
    .nbuffers = 4,
    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_R, STARPU_RW},
    .model = &embed_back_model,
    .name = "ts_embed_back"};

int ts_submit_embed(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                    starpu_data_handle_t h)
{
  const tsi_layer_args args = tsi_layer_arguments(r, 0, -1, tile, false);
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH}, {edges, STARPU_R}, {h, STARPU_W}};
  return tsi_record(r, &embed_codelet, TS_PHASE_EMBED, &args, sizeof args, 3, access);
}

int ts_submit_embed_back(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                         starpu_data_handle_t dh, starpu_data_handle_t grad)
{
  const tsi_layer_args args = tsi_layer_arguments(r, 0, -1, tile, false);
  const ts_access access[] = {
      {r->scratch, STARPU_SCRATCH}, {edges, STARPU_R}, {dh, STARPU_R}, {grad, STARPU_RW}};
  return tsi_record(r, &embed_back_codelet, TS_PHASE_EMBED_BACK, &args, sizeof args, 4, access);
}
