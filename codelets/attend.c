/* SPDX-License-Identifier: MIT
 *
 * Attention of a tile over its edges: glue of models/attend_cpu.c. */
#include "codelets/glue.h"

/* data: scratch, edges, q, saved, sum, then the senders' kv */
static void attend_cpu(void *buffers[], void *cl_arg)
{
  const tsi_layer_args *a = cl_arg;
  char *scratch = tsi_buffer(buffers, 0);
  const void **kv = tsi_pointers(&scratch, buffers, 5, a->tile->nfrom);
  const ts_edge_block block = tsi_edge_block(a->model, a->tile, tsi_buffer(buffers, 1));
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 3), &saved);
  a->model->kernels->attend(a->shape, a->layer, &block, tsi_buffer(buffers, 2), kv, &saved,
                            tsi_buffer(buffers, 4), scratch);
}

static struct starpu_perfmodel attend_model = {.type = STARPU_NL_REGRESSION_BASED,
                                               .symbol = "ts_attend"};

static const struct starpu_codelet attend_codelet = {.cpu_funcs = {attend_cpu},
                                                     .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                     .model = &attend_model,
                                                     .name = "ts_attend"};

int ts_submit_attend(const ts_recorder *r, int stage, int layer, bool keep, const ts_tile *tile,
                     starpu_data_handle_t edges, starpu_data_handle_t q,
                     const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                     starpu_data_handle_t sum)
{
  const tsi_layer_args args = tsi_layer_arguments(r, stage, layer, tile, keep);
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH},
                              {edges, STARPU_R},
                              {q, STARPU_R},
                              {saved, STARPU_RW},
                              {sum, STARPU_W}};
  return tsi_record_lists(r, &attend_codelet, TS_PHASE_ATTEND, &args, sizeof args, 5, access, 1,
                          tile->nfrom, &kv_from);
}
