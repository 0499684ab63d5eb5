/* SPDX-License-Identifier: MIT
 *
 * Energies of a tile and the gradient that starts backward: glue of models/head_cpu.c. */
#include "codelets/glue.h"

struct head_args {
  tsi_layer_args model;
  int n;
  const double *reference;
};

/* data: scratch, hlast, energy, dlast; and for the cluster merge hshort, dshort */
static void head_cpu(void *buffers[], void *cl_arg)
{
  const struct head_args *a = cl_arg;
  const ts_model *m = a->model.model;
  const bool cluster = m->head.merge == TS_MERGE_CLUSTER;
  double *energy = tsi_buffer(buffers, 2);
  m->kernels->head(a->model.shape, &m->head, a->n, cluster ? tsi_buffer(buffers, 4) : NULL,
                   tsi_buffer(buffers, 1), energy, cluster ? tsi_buffer(buffers, 5) : NULL,
                   tsi_buffer(buffers, 3), tsi_buffer(buffers, 0));
  for (int i = 0; i < a->n; i++)
    energy[i] += a->reference[i];
}

static struct starpu_perfmodel head_model = {.type = STARPU_HISTORY_BASED, .symbol = "ts_head"};

static const struct starpu_codelet head_codelet = {.cpu_funcs = {head_cpu},
                                                   .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                   .model = &head_model,
                                                   .name = "ts_head"};

int ts_submit_head(const ts_recorder *r, int n, const double *reference,
                   starpu_data_handle_t hshort, starpu_data_handle_t hlast,
                   starpu_data_handle_t energy, starpu_data_handle_t dshort,
                   starpu_data_handle_t dlast)
{
  const struct head_args args = {tsi_layer_arguments(r, 0, -1, NULL, false), n, reference};
  const ts_access access[] = {{r->scratch, STARPU_SCRATCH}, {hlast, STARPU_R},
                              {energy, STARPU_W},           {dlast, STARPU_W},
                              {hshort, STARPU_R},           {dshort, STARPU_W}};
  const int count = r->model->head.merge == TS_MERGE_CLUSTER ? 6 : 4;
  return tsi_record(r, &head_codelet, TS_PHASE_HEAD, &args, sizeof args, count, access);
}
