/* SPDX-License-Identifier: MIT
 *
 * Gradients of keys and values that peers return, added to where they came from in a fixed order:
 * glue of models/exchange_cpu.c. */
#include "codelets/glue.h"
#include "runtime/error.h"

struct returned_args {
  tsi_layer_args layer;
  const ts_inbound *in;
  int n;
};

/* data: scratch, dkv, then the blocks */
static void add_returned_cpu(void *buffers[], void *cl_arg)
{
  const struct returned_args *a = cl_arg;
  char *scratch = tsi_buffer(buffers, 0);
  const void **blocks = tsi_pointers(&scratch, buffers, 2, a->in->npeers);
  a->layer.model->kernels->add_returned(a->layer.shape, a->in->n, a->in->slot, a->in->row,
                                        a->in->rows, blocks, tsi_buffer(buffers, 1));
}

static struct starpu_perfmodel add_returned_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                     .symbol = "ts_add_returned"};

static const struct starpu_codelet add_returned_codelet = {.cpu_funcs = {add_returned_cpu},
                                                           .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                           .model = &add_returned_model,
                                                           .name = "ts_add_returned"};

int ts_submit_add_returned(const ts_recorder *r, const ts_inbound *in,
                           const starpu_data_handle_t *blocks, starpu_data_handle_t dkv)
{
  const struct returned_args args = {tsi_layer_arguments(r, 0, -1, NULL, false), in, 0};
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH}, {dkv, STARPU_RW}};
  return tsi_record_lists(r, &add_returned_codelet, TS_PHASE_RETURN, &args, sizeof args, 2, access,
                          1, in->npeers, &blocks);
}

/* data: fixed, dkv, then the blocks */
static void settle_cpu(void *buffers[], void *cl_arg)
{
  const struct returned_args *a = cl_arg;
  const size_t width = ts_kv_width(a->layer.shape);
  int64_t *fixed = tsi_buffer(buffers, 0);
  bool in_range = true;
  for (int i = 0; i < a->in->n; i++) {
    const int64_t *block = tsi_buffer(buffers, 2 + (a->in->slot[i] >> TS_SLOT_BITS));
    const int64_t *from = block + (size_t)(a->in->slot[i] & (TS_SLOT_ROWS - 1)) * width;
    int64_t *to = fixed + (size_t)a->in->row[i] * width;
    for (size_t k = 0; k < width; k++)
      in_range = !__builtin_add_overflow(to[k], from[k], &to[k]) && in_range;
  }
  a->layer.model->kernels->settle(a->layer.shape, a->n, a->layer.shape->atoms, fixed,
                                  tsi_buffer(buffers, 1));
  if (!in_range)
    tsi_program_fail(&a->layer.header, tsi_fail(TS_ERR_SIMULATION,
                                                "a sum of gradients is beyond what reproducible "
                                                "sums can hold"));
}

static struct starpu_perfmodel settle_model = {.type = STARPU_NL_REGRESSION_BASED,
                                               .symbol = "ts_settle"};

static const struct starpu_codelet settle_codelet = {.cpu_funcs = {settle_cpu},
                                                     .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                     .model = &settle_model,
                                                     .name = "ts_settle"};

int ts_submit_settle(const ts_recorder *r, int n, const ts_inbound *in, starpu_data_handle_t fixed,
                     const starpu_data_handle_t *blocks, starpu_data_handle_t dkv)
{
  const struct returned_args args = {tsi_layer_arguments(r, 0, -1, NULL, false), in, n};
  const ts_access access[] = {{fixed, STARPU_RW}, {dkv, STARPU_W}};
  return tsi_record_lists(r, &settle_codelet, TS_PHASE_RETURN, &args, sizeof args, 2, access, 1,
                          in->npeers, &blocks);
}
