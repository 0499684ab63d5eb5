/* SPDX-License-Identifier: MIT
 *
 * Forces on atoms of other ranks: added up here, sent home, added there. */
#include <math.h>
#include <string.h>

#include "codelets/glue.h"

struct halo_args {
  ts_task_header header;
  const ts_tile *halo;
  bool fixed;
};

/* data: feel, then the receivers' pulls (zero where an edge is not active) */
static void halo_force_cpu(void *buffers[], void *cl_arg)
{
  const struct halo_args *a = cl_arg;
  const ts_tile *halo = a->halo;
  double(*f)[3] = tsi_buffer(buffers, 0);
  int64_t(*fixed)[3] = tsi_buffer(buffers, 0);
  bool in_range = true;
  memset(f, 0, (size_t)halo->n * sizeof *f);
  for (int row = 0; row < halo->n; row++)
    for (int i = halo->column[row]; i < halo->column[row + 1]; i++) {
      const double *pulls = tsi_buffer(buffers, 1 + halo->to_tile[i]);
      in_range = tsi_add_force(pulls + 3 * (size_t)halo->to_edge[i], 1, f[row],
                               a->fixed ? fixed[row] : NULL) &&
                 in_range;
    }
  if (!in_range) tsi_force_out_of_range(&a->header);
}

static struct starpu_perfmodel halo_force_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                   .symbol = "ts_halo_force"};

static const struct starpu_codelet halo_force_codelet = {.cpu_funcs = {halo_force_cpu},
                                                         .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                         .model = &halo_force_model,
                                                         .name = "ts_halo_force"};

int ts_submit_halo_force(const ts_recorder *r, const ts_tile *halo, bool fixed,
                         const starpu_data_handle_t *pull_to, starpu_data_handle_t feel)
{
  const struct halo_args args = {.halo = halo, .fixed = fixed};
  const ts_access access[] = {{feel, STARPU_W}};
  return tsi_record_lists(r, &halo_force_codelet, TS_PHASE_FORCE, &args, sizeof args, 1, access, 1,
                          halo->nto, &pull_to);
}

struct return_args {
  ts_task_header header;
  int n;
  const ts_inbound *in;
  ts_force_sums sums;
};

/* data: motion, then what came back */
static void return_force_cpu(void *buffers[], void *cl_arg)
{
  const struct return_args *a = cl_arg;
  const ts_force_sums *to = &a->sums;
  bool in_range = true;
  for (int i = 0; i < a->in->n; i++) {
    const void *block = tsi_buffer(buffers, 1 + (a->in->slot[i] >> TS_SLOT_BITS));
    const size_t from = (size_t)(a->in->slot[i] & (TS_SLOT_ROWS - 1)), row = (size_t)a->in->row[i];
    for (size_t k = 0; k < 3; k++) {
      if (!to->fixed)
        to->f[row][k] += ((const double *)block)[3 * from + k];
      else if (__builtin_add_overflow(to->fixed[row][k], ((const int64_t *)block)[3 * from + k],
                                      &to->fixed[row][k]))
        in_range = false;
    }
  }
  for (int i = 0; to->fixed && i < a->n; i++)
    for (int k = 0; k < 3; k++)
      to->f[i][k] = ldexp((double)to->fixed[i][k], -TS_FORCE_BITS);
  if (!in_range) tsi_force_out_of_range(&a->header);
}

static struct starpu_perfmodel return_force_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                     .symbol = "ts_return_force"};

static const struct starpu_codelet return_force_codelet = {.cpu_funcs = {return_force_cpu},
                                                           .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                           .model = &return_force_model,
                                                           .name = "ts_return_force"};

int ts_submit_return_force(const ts_recorder *r, int n, const ts_inbound *in,
                           const ts_force_sums *sums, const starpu_data_handle_t *feel,
                           starpu_data_handle_t motion)
{
  const struct return_args args = {.n = n, .in = in, .sums = *sums};
  const ts_access access[] = {{motion, STARPU_RW}};
  return tsi_record_lists(r, &return_force_codelet, TS_PHASE_FORCE, &args, sizeof args, 1, access,
                          1, in->npeers, &feel);
}
