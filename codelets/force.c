/* SPDX-License-Identifier: MIT
 *
 * Forces of a tile from the pulls on its edges, and each atom's share of the strain derivative.
 *
 * With g the derivative of the energy by an edge vector d = x_i - x_j - S: the receiver feels -g,
 * the sender +g, and dE/d(strain) is the sum of g (x) d, which is booked on the receiver.  Sums run
 * in the order of the edge lists, so that they are the same bits for every tile size. */
#include "codelets/glue.h"

struct force_args {
  tsi_layer_args model;
  bool first;
  double (*f)[3];
  double (*virial)[9];
};

static void receive(const ts_tile *tile, const ts_edge_arrays *at, const double *pull, int a,
                    double f[3], double virial[9])
{
  for (int e = tile->row[a]; e < tile->row[a + 1]; e++) {
    if (!at->active[e]) continue;
    const double *g = pull + 3 * (size_t)e, *u = at->geometry + 4 * (size_t)e;
    for (int k = 0; k < 3; k++) {
      f[k] -= g[k];
      for (int l = 0; l < 3; l++)
        virial[3 * k + l] += g[k] * u[l] * u[3];
    }
  }
}

/* data: motion, edges, pull, then the receivers' pulls (zero where an edge is not active) */
static void force_cpu(void *buffers[], void *cl_arg)
{
  const struct force_args *args = cl_arg;
  const ts_tile *tile = args->model.tile;
  ts_edge_arrays at;
  ts_edge_layout(args->model.model, tile->edges, tsi_buffer(buffers, 1), &at);
  for (int a = 0; a < tile->n; a++) {
    double f[3] = {0}, virial[9] = {0};
    receive(tile, &at, tsi_buffer(buffers, 2), a, f, virial);
    for (int i = tile->column[a]; i < tile->column[a + 1]; i++) {
      const double *pulls = tsi_buffer(buffers, 3 + tile->to_tile[i]);
      for (int k = 0; k < 3; k++)
        f[k] += pulls[3 * (size_t)tile->to_edge[i] + (size_t)k];
    }
    for (int k = 0; k < 3; k++)
      args->f[a][k] = (args->first ? 0 : args->f[a][k]) + f[k];
    for (int k = 0; k < 9; k++)
      args->virial[a][k] = (args->first ? 0 : args->virial[a][k]) + virial[k];
  }
}

static struct starpu_perfmodel force_model = {.type = STARPU_NL_REGRESSION_BASED,
                                              .symbol = "ts_force"};

static const struct starpu_codelet force_codelet = {.cpu_funcs = {force_cpu},
                                                    .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                    .model = &force_model,
                                                    .name = "ts_force"};

int ts_submit_force(const ts_recorder *r, const ts_tile *tile, bool first,
                    starpu_data_handle_t edges, starpu_data_handle_t pull,
                    const starpu_data_handle_t *pull_to, double (*f)[3], double (*virial)[9],
                    starpu_data_handle_t motion)
{
  const struct force_args args = {tsi_layer_arguments(r, 0, -1, tile, false), first, f, virial};
  const ts_access access[] = {{motion, STARPU_RW}, {edges, STARPU_R}, {pull, STARPU_R}};
  return tsi_record_lists(r, &force_codelet, TS_PHASE_FORCE, &args, sizeof args, 3, access, 1,
                          tile->nto, &pull_to);
}
