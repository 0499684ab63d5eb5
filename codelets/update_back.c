/* SPDX-License-Identifier: MIT
 *
 * Backward of the output map and feed-forward: glue of models/update_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, saved, dh, sum */
static void update_back_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 1), &saved);
  a->model->kernels->update_back(a->shape, a->layer, &saved, tsi_buffer(buffers, 2),
                                 tsi_buffer(buffers, 3), tsi_buffer(buffers, 0));
}

static struct starpu_perfmodel update_back_model = {.type = STARPU_HISTORY_BASED,
                                                    .symbol = "ts_update_back"};

static const struct starpu_codelet update_back_codelet = {
    .cpu_funcs = {update_back_cpu},
    .nbuffers = 4,
    .modes = {STARPU_SCRATCH, STARPU_R, STARPU_RW, STARPU_W},
    .model = &update_back_model,
    .name = "ts_update_back"};

int ts_submit_update_back(const ts_recorder *r, int stage, int layer, bool keep,
                          starpu_data_handle_t saved, starpu_data_handle_t dh,
                          starpu_data_handle_t sum)
{
  const tsi_layer_args args = tsi_layer_arguments(r, stage, layer, NULL, keep);
  const ts_access access[] = {
      {r->scratch, STARPU_SCRATCH}, {saved, STARPU_R}, {dh, STARPU_RW}, {sum, STARPU_W}};
  return tsi_record(r, &update_back_codelet, TS_PHASE_UPDATE_BACK, &args, sizeof args, 4, access);
}
