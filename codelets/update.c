/* SPDX-License-Identifier: MIT
 *
 * Output map and feed-forward of a tile: glue of models/update_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, h, sum, saved, h_out */
static void update_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 3), &saved);
  a->model->kernels->update(a->shape, a->layer, tsi_buffer(buffers, 1), tsi_buffer(buffers, 2),
                            &saved, tsi_buffer(buffers, 4), tsi_buffer(buffers, 0));
}

static struct starpu_perfmodel update_model = {.type = STARPU_HISTORY_BASED, .symbol = "ts_update"};

static const struct starpu_codelet update_codelet = {
    .cpu_funcs = {update_cpu},
    .nbuffers = 5,
    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_R, STARPU_RW, STARPU_W},
    .model = &update_model,
    .name = "ts_update"};

int ts_submit_update(const ts_recorder *r, int stage, int layer, bool keep, starpu_data_handle_t h,
                     starpu_data_handle_t sum, starpu_data_handle_t saved,
                     starpu_data_handle_t h_out)
{
  const tsi_layer_args args = tsi_layer_arguments(r, stage, layer, NULL, keep);
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH},
                              {h, STARPU_R},
                              {sum, STARPU_R},
                              {saved, STARPU_RW},
                              {h_out, STARPU_W}};
  return tsi_record(r, &update_codelet, TS_PHASE_UPDATE, &args, sizeof args, 5, access);
}
