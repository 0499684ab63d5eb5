/* SPDX-License-Identifier: MIT
 *
 * The norm between the stages of a cluster merge, and its gradient: glue of models/norm_cpu.c. */
#include "codelets/glue.h"

/* data: h, g */
static void norm_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  a->model->kernels->norm(a->shape, &a->model->pre_norm, tsi_buffer(buffers, 0),
                          tsi_buffer(buffers, 1));
}

/* data: h, dg, dh */
static void norm_back_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  a->model->kernels->norm_back(a->shape, &a->model->pre_norm, tsi_buffer(buffers, 0),
                               tsi_buffer(buffers, 1), tsi_buffer(buffers, 2));
}

static struct starpu_perfmodel norm_model = {.type = STARPU_HISTORY_BASED, .symbol = "ts_norm"};

static const struct starpu_codelet norm_codelet = {.cpu_funcs = {norm_cpu},
                                                   .nbuffers = 2,
                                                   .modes = {STARPU_R, STARPU_W},
                                                   .model = &norm_model,
                                                   .name = "ts_norm"};

static struct starpu_perfmodel norm_back_model = {.type = STARPU_HISTORY_BASED,
                                                  .symbol = "ts_norm_back"};

static const struct starpu_codelet norm_back_codelet = {.cpu_funcs = {norm_back_cpu},
                                                        .nbuffers = 3,
                                                        .modes = {STARPU_R, STARPU_R, STARPU_RW},
                                                        .model = &norm_back_model,
                                                        .name = "ts_norm_back"};

int ts_submit_norm(const ts_recorder *r, starpu_data_handle_t h, starpu_data_handle_t g)
{
  const tsi_layer_args args = tsi_layer_arguments(r, 0, -1, NULL, false);
  const ts_access access[] = {{h, STARPU_R}, {g, STARPU_W}};
  return tsi_record(r, &norm_codelet, TS_PHASE_UPDATE, &args, sizeof args, 2, access);
}

int ts_submit_norm_back(const ts_recorder *r, starpu_data_handle_t h, starpu_data_handle_t dg,
                        starpu_data_handle_t dh)
{
  const tsi_layer_args args = tsi_layer_arguments(r, 0, -1, NULL, false);
  const ts_access access[] = {{h, STARPU_R}, {dg, STARPU_R}, {dh, STARPU_RW}};
  return tsi_record(r, &norm_back_codelet, TS_PHASE_UPDATE_BACK, &args, sizeof args, 3, access);
}
