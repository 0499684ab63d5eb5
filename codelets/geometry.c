/* SPDX-License-Identifier: MIT
 *
 * Distances, active flags and radial data of a tile's edges: glue of neighbor/geometry.c and
 * models/edge_cpu.c. */
#include <string.h>

#include "codelets/glue.h"
#include "neighbor/nearest.h"

struct geometry_args {
  tsi_layer_args model;
  int stage;
  const ts_edges *set;
  const double (*x)[3];
  const int32_t *pair;
  ts_closest *closest;
};

/* data: edges, grad, own x, then the senders' x (named for the order of the tasks: the edge set
 * indexes the whole array of this rank) */
static void geometry_cpu(void *buffers[], void *cl_arg)
{
  const struct geometry_args *a = cl_arg;
  const ts_model *m = a->model.model;
  const ts_tile *tile = a->model.tile;
  const ts_edge_params *p = &m->edge[a->stage];
  ts_edge_arrays at;
  ts_edge_layout(m, tile->edges, tsi_buffer(buffers, 0), &at);
  ts_edges_measure(a->set, a->x, tile->first, tile->first + tile->n, p->lower, p->cutoff,
                   at.geometry, at.active, &a->closest->r, &a->closest->edge);
  a->closest->bounded = 0;
  for (int i = 0; i < tile->n && p->most; i++)
    a->closest->bounded +=
        ts_nearest_keep(tile->row[i + 1] - tile->row[i], at.geometry + 4 * (size_t)tile->row[i],
                        p->most, at.active + tile->row[i]);
  m->kernels->edge(p, tile->edges, at.geometry, at.active, a->pair, at.node, at.edge);
  memset(tsi_buffer(buffers, 1), 0, (size_t)tile->edges * 4 * m->real_size);
}

static struct starpu_perfmodel geometry_model = {.type = STARPU_NL_REGRESSION_BASED,
                                                 .symbol = "ts_geometry"};

static const struct starpu_codelet geometry_codelet = {.cpu_funcs = {geometry_cpu},
                                                       .nbuffers = STARPU_VARIABLE_NBUFFERS,
                                                       .model = &geometry_model,
                                                       .name = "ts_geometry"};

int ts_submit_geometry(const ts_recorder *r, int stage, const ts_edges *set, const ts_tile *tile,
                       const double (*x)[3], const int32_t *pair, starpu_data_handle_t x_own,
                       const starpu_data_handle_t *x_from, starpu_data_handle_t edges,
                       starpu_data_handle_t grad, ts_closest *closest)
{
  const struct geometry_args args = {
      tsi_layer_arguments(r, stage, -1, tile, false), stage, set, x, pair, closest};
  const ts_access access[] = {{edges, STARPU_W}, {grad, STARPU_W}, {x_own, STARPU_R}};
  return tsi_record_lists(r, &geometry_codelet, TS_PHASE_GEOMETRY, &args, sizeof args, 3, access, 1,
                          tile->nfrom, &x_from);
}
