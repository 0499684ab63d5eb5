/* SPDX-License-Identifier: MIT
 *
 * Forces of a tile from the pulls on its edges, and each atom's share of the strain derivative.
 *
 * With g the derivative of the energy by an edge vector d = x_i - x_j - S: the receiver feels -g,
 * the sender +g, and dE/d(strain) is the sum of g (x) d, which is booked on the receiver.  Sums run
 * in the order of the edge lists, so that they are the same bits for every tile size. */
#include <math.h>
#include <string.h>

#include "codelets/glue.h"
#include "runtime/error.h"

struct force_args {
  tsi_layer_args model;
  bool first;
  ts_force_sums sums;
};

bool tsi_add_force(const double g[3], double sign, double f[3], int64_t fixed[3])
{
  const double unit = (double)((int64_t)1 << TS_FORCE_BITS), limit = 4e18 / unit;
  bool in_range = true;
  for (int k = 0; k < 3; k++) {
    if (!fixed) {
      f[k] += sign * g[k];
      continue;
    }
    const bool fits = g[k] > -limit && g[k] < limit;
    const int64_t term = fits ? llrint(sign * g[k] * unit) : 0;
    in_range = !__builtin_add_overflow(fixed[k], term, &fixed[k]) && fits && in_range;
  }
  return in_range;
}

void tsi_force_out_of_range(const ts_task_header *header)
{
  tsi_program_fail(header, tsi_fail(TS_ERR_SIMULATION,
                                    "a force is beyond what reproducible sums can hold (%g eV/Å): "
                                    "do atoms overlap?",
                                    4e18 / (double)((int64_t)1 << TS_FORCE_BITS)));
}

/* Of one atom, as receiver. */
static bool receive(const ts_tile *tile, const ts_edge_arrays *at, const double *pull, int a,
                    double f[3], int64_t *fixed, double virial[9])
{
  bool in_range = true;
  for (int e = tile->row[a]; e < tile->row[a + 1]; e++) {
    if (!at->active[e]) continue;
    const double *g = pull + 3 * (size_t)e, *u = at->geometry + 4 * (size_t)e;
    in_range = tsi_add_force(g, -1, f, fixed) && in_range;
    for (int k = 0; k < 3; k++)
      for (int l = 0; l < 3; l++)
        virial[3 * k + l] += g[k] * u[l] * u[3];
  }
  return in_range;
}

/* data: motion, edges, pull, then the receivers' pulls (zero where an edge is not active) */
static void force_cpu(void *buffers[], void *cl_arg)
{
  const struct force_args *args = cl_arg;
  const ts_tile *tile = args->model.tile;
  const ts_force_sums *to = &args->sums;
  ts_edge_arrays at;
  bool in_range = true;
  ts_edge_layout(args->model.model, tile->edges, tsi_buffer(buffers, 1), &at);
  for (int a = 0; a < tile->n; a++) {
    double f[3] = {0}, virial[9] = {0};
    int64_t *fixed = to->fixed ? to->fixed[a] : NULL;
    if (fixed && args->first) memset(fixed, 0, 3 * sizeof *fixed);
    in_range = receive(tile, &at, tsi_buffer(buffers, 2), a, f, fixed, virial) && in_range;
    for (int i = tile->column[a]; i < tile->column[a + 1]; i++) {
      const double *pulls = tsi_buffer(buffers, 3 + tile->to_tile[i]);
      in_range = tsi_add_force(pulls + 3 * (size_t)tile->to_edge[i], 1, f, fixed) && in_range;
    }
    for (int k = 0; k < 3; k++)
      to->f[a][k] = (args->first ? 0 : to->f[a][k]) + f[k];
    for (int k = 0; k < 9; k++)
      to->virial[a][k] = (args->first ? 0 : to->virial[a][k]) + virial[k];
  }
  if (!in_range) tsi_force_out_of_range(&args->model.header);
}

static struct starpu_perfmodel force_model = {.type = STARPU_NL_REGRESSION_BASED,
                                              .symbol = "ts_force"};

static const struct starpu_codelet force_codelet = {.cpu_funcs = {force_cpu},
                                                    .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                    .model = &force_model,
                                                    .name = "ts_force"};

int ts_submit_force(const ts_recorder *r, const ts_tile *tile, bool first,
                    starpu_data_handle_t edges, starpu_data_handle_t pull,
                    const starpu_data_handle_t *pull_to, const ts_force_sums *sums,
                    starpu_data_handle_t motion)
{
  const struct force_args args = {tsi_layer_arguments(r, 0, -1, tile, false), first, *sums};
  const ts_access access[] = {{motion, STARPU_RW}, {edges, STARPU_R}, {pull, STARPU_R}};
  return tsi_record_lists(r, &force_codelet, TS_PHASE_FORCE, &args, sizeof args, 3, access, 1,
                          tile->nto, &pull_to);
}
