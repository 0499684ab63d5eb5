/* SPDX-License-Identifier: MIT
 *
 * Queries, keys and values of a tile: glue of models/project_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, h, q, kv, saved */
static void project_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 4), &saved);
  a->model->kernels->project(a->shape, a->layer, tsi_buffer(buffers, 1), tsi_buffer(buffers, 2),
                             tsi_buffer(buffers, 3), &saved, tsi_buffer(buffers, 0));
}

static struct starpu_perfmodel project_model = {.type = STARPU_HISTORY_BASED,
                                                .symbol = "ts_project"};

static const struct starpu_codelet project_codelet = {
    .cpu_funcs = {project_cpu},
    .nbuffers = 5,
    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_W, STARPU_W, STARPU_W},
    .model = &project_model,
    .name = "ts_project"};

int ts_submit_project(const ts_recorder *r, int stage, int layer, bool keep, starpu_data_handle_t h,
                      starpu_data_handle_t q, starpu_data_handle_t kv, starpu_data_handle_t saved)
{
  const tsi_layer_args args = tsi_layer_arguments(r, stage, layer, NULL, keep);
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH},
                              {h, STARPU_R},
                              {q, STARPU_W},
                              {kv, STARPU_W},
                              {saved, STARPU_W}};
  return tsi_record(r, &project_codelet, TS_PHASE_PROJECT, &args, sizeof args, 5, access);
}
