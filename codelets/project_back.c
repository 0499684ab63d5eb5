/* SPDX-License-Identifier: MIT
 *
 * Gradients of queries, keys and values to features: glue of models/project_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, h, dq, dkv, saved, dh */
static void project_back_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 4), &saved);
  a->model->kernels->project_back(a->shape, a->layer, tsi_buffer(buffers, 1),
                                  tsi_buffer(buffers, 2), tsi_buffer(buffers, 3), &saved,
                                  tsi_buffer(buffers, 5), tsi_buffer(buffers, 0));
}

static struct starpu_perfmodel project_back_model = {.type = STARPU_HISTORY_BASED,
                                                     .symbol = "ts_project_back"};

static const struct starpu_codelet project_back_codelet = {
    .cpu_funcs = {project_back_cpu},
    .nbuffers = 6,
    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_R, STARPU_R, STARPU_RW, STARPU_RW},
    .model = &project_back_model,
    .name = "ts_project_back"};

int ts_submit_project_back(const ts_recorder *r, int stage, int layer, bool keep,
                           starpu_data_handle_t h, starpu_data_handle_t dq,
                           starpu_data_handle_t dkv, starpu_data_handle_t saved,
                           starpu_data_handle_t dh)
{
  const tsi_layer_args args = tsi_layer_arguments(r, stage, layer, NULL, keep);
  const ts_access access[] = {
      {r->scratch, STARPU_SCRATCH}, {h, STARPU_R},  {dq, STARPU_R}, {dkv, STARPU_R},
      {saved, STARPU_RW},           {dh, STARPU_RW}};
  return tsi_record(r, &project_back_codelet, TS_PHASE_PROJECT_BACK, &args, sizeof args, 6, access);
}
