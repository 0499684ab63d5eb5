/* SPDX-License-Identifier: MIT
 *
 * Attention of a tile over its edges, or over the half of them whose senders are of this rank or of
 * others: glue of models/attend_cpu.c. */
#include "codelets/glue.h"

struct attend_args {
  tsi_layer_args layer;
  ts_half half;
};

/* The blocks of senders that a half reads: first .. last-1 of the tile's list. */
static int first_block(const ts_tile *tile, ts_half half)
{
  return half == TS_HALF_REMOTE ? tile->nlocal : 0;
}

static int last_block(const ts_tile *tile, ts_half half)
{
  return half == TS_HALF_LOCAL ? tile->nlocal : tile->nfrom;
}

/* data: scratch, edges, q, saved, sum, then the senders' kv */
static void attend_cpu(void *buffers[], void *cl_arg)
{
  const struct attend_args *args = cl_arg;
  const tsi_layer_args *a = &args->layer;
  const int first = first_block(a->tile, args->half), last = last_block(a->tile, args->half);
  char *scratch = tsi_buffer(buffers, 0);
  const void **kv = (const void **)(void *)scratch; /* by block; what is not read is left out */
  scratch += tsi_pointers_bytes(1, a->tile->nfrom);
  for (int i = first; i < last; i++)
    kv[i] = tsi_buffer(buffers, 5 + i - first);
  const ts_edge_block block = tsi_edge_block(a->model, a->tile, tsi_buffer(buffers, 1));
  ts_saved saved;
  ts_saved_layout(a->model, a->shape, a->keep, tsi_buffer(buffers, 3), &saved);
  a->model->kernels->attend(a->shape, a->layer, &block, args->half, tsi_buffer(buffers, 2), kv,
                            &saved, tsi_buffer(buffers, 4), scratch);
}

static struct starpu_perfmodel attend_model = {.type = STARPU_NL_REGRESSION_BASED,
                                               .symbol = "ts_attend"};

static const struct starpu_codelet attend_codelet = {.cpu_funcs = {attend_cpu},
                                                     .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                     .model = &attend_model,
                                                     .name = "ts_attend"};

static struct starpu_perfmodel remote_model = {.type = STARPU_NL_REGRESSION_BASED,
                                               .symbol = "ts_attend_remote"};

static const struct starpu_codelet remote_codelet = {.cpu_funcs = {attend_cpu},
                                                     .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                     .model = &remote_model,
                                                     .name = "ts_attend_remote"};

int ts_submit_attend(const ts_recorder *r, int stage, int layer, bool keep, ts_half half,
                     const ts_tile *tile, starpu_data_handle_t edges, starpu_data_handle_t q,
                     const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                     starpu_data_handle_t sum)
{
  const struct attend_args args = {tsi_layer_arguments(r, stage, layer, tile, keep), half};
  const bool remote = half == TS_HALF_REMOTE;
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH},
                              {edges, STARPU_R},
                              {q, STARPU_R},
                              {saved, STARPU_RW},
                              {sum, remote ? STARPU_RW : STARPU_W}};
  const int first = first_block(tile, half), last = last_block(tile, half);
  const starpu_data_handle_t *const list = kv_from + first;
  return tsi_record_lists(r, remote ? &remote_codelet : &attend_codelet,
                          remote ? TS_PHASE_ATTEND_REMOTE : TS_PHASE_ATTEND, &args, sizeof args, 5,
                          access, 1, last - first, &list);
}
