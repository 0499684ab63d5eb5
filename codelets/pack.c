/* SPDX-License-Identifier: MIT
 *
 * What leaves for a peer: positions, and keys and values (models/exchange_cpu.c). */
#include <string.h>

#include "codelets/glue.h"

struct places_args {
  ts_task_header header;
  const ts_outbound *out;
  const double (*x)[3];
};

/* data: places, then the tiles' x (named for the order of the tasks) */
static void places_cpu(void *buffers[], void *cl_arg)
{
  const struct places_args *a = cl_arg;
  double(*to)[3] = tsi_buffer(buffers, 0);
  for (int i = 0; i < a->out->n; i++)
    memcpy(to[i], a->x[a->out->atom[i]], sizeof to[i]);
}

static struct starpu_perfmodel places_model = {.type = STARPU_NL_REGRESSION_BASED,
                                               .symbol = "ts_pack_places"};

static const struct starpu_codelet places_codelet = {.cpu_funcs = {places_cpu},
                                                     .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                     .model = &places_model,
                                                     .name = "ts_pack_places"};

int ts_submit_pack_places(const ts_recorder *r, const ts_outbound *out, const double (*x)[3],
                          const starpu_data_handle_t *x_from, starpu_data_handle_t places)
{
  const struct places_args args = {.out = out, .x = x};
  const ts_access access[] = {{places, STARPU_W}};
  return tsi_record_lists(r, &places_codelet, TS_PHASE_PACK, &args, sizeof args, 1, access, 1,
                          out->ntiles, &x_from);
}

struct pack_args {
  tsi_layer_args layer;
  const ts_outbound *out;
};

/* data: scratch, block, then the tiles' kv */
static void pack_cpu(void *buffers[], void *cl_arg)
{
  const struct pack_args *a = cl_arg;
  char *scratch = tsi_buffer(buffers, 0);
  const void **kv = tsi_pointers(&scratch, buffers, 2, a->out->ntiles);
  a->layer.model->kernels->pack(a->layer.shape, a->out->n, a->out->slot, kv,
                                tsi_buffer(buffers, 1));
}

static struct starpu_perfmodel pack_model = {.type = STARPU_NL_REGRESSION_BASED,
                                             .symbol = "ts_pack"};

static const struct starpu_codelet pack_codelet = {.cpu_funcs = {pack_cpu},
                                                   .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                   .model = &pack_model,
                                                   .name = "ts_pack"};

int ts_submit_pack(const ts_recorder *r, const ts_outbound *out,
                   const starpu_data_handle_t *kv_from, starpu_data_handle_t block)
{
  const struct pack_args args = {tsi_layer_arguments(r, 0, -1, NULL, false), out};
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH}, {block, STARPU_W}};
  return tsi_record_lists(r, &pack_codelet, TS_PHASE_PACK, &args, sizeof args, 2, access, 1,
                          out->ntiles, &kv_from);
}
