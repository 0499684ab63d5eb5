/* SPDX-License-Identifier: MIT
 *
 * An epoch's data: the atoms' order, the edge sets, and every array of a step, carved from two
 * arenas (one for what atoms need, made once; one for what edges need, reused at each rebuild and
 * grown only when it must) and registered with StarPU tile by tile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/glue.h"
#include "md/step_impl.h"
#include "neighbor/nearest.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* ---- blocks: counted in a first pass, carved and registered in a second */

typedef struct carver {
  ts_arena *arena; /* NULL: count only */
  size_t bytes;
} carver;

static void *carve(carver *c, size_t bytes, starpu_data_handle_t *handle)
{
  bytes = ts_arena_round(bytes ? bytes : 1);
  c->bytes += bytes;
  if (!c->arena) return NULL;
  void *at = ts_arena_take(c->arena, bytes);
  /* in units of 64 bytes: a vector's length is 32 bits */
  if (handle)
    starpu_vector_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)at,
                                (uint32_t)(bytes / TS_ALIGN), TS_ALIGN);
  return at;
}

static void drop(starpu_data_handle_t *handle)
{
  if (*handle) starpu_data_unregister_no_coherency(*handle);
  *handle = NULL;
}

/* ---- what atoms need */

static void carve_layers(ts_step *s, carver *c, int t)
{
  const ts_shape *p = &s->shape;
  const size_t real = s->model->real_size, A = (size_t)p->atoms;
  const size_t feature = (size_t)p->rows * A * (size_t)p->channels * real;
  const size_t heads = A * (size_t)(p->heads * p->head_dim) * real;
  tsi_tile_data *d = &s->tile[t];
  const bool cluster = s->model->head.merge == TS_MERGE_CLUSTER;
  for (int l = 0; l <= s->layers; l++)
    carve(c, feature, &d->h[l]);
  if (cluster) carve(c, feature, &d->between);
  for (int l = 0; l < s->layers; l++) {
    carve(c, ts_query_bytes(s->model, p), &d->q[l]);
    carve(c, heads + feature, &d->kv[l]);
    carve(c, ts_saved_layout(s->model, p, d->keep, NULL, NULL), &d->saved[l]);
  }
  carve(c, s->first_order ? 3 * feature : feature, &d->sum);
  carve(c, ts_query_bytes(s->model, p), &d->dq);
  carve(c, heads + feature, &d->dkv);
  carve(c, feature, &d->dh);
  if (cluster) carve(c, feature, &d->dshort);
  s->energy[t] = carve(c, A * sizeof(double), &d->energy);
}

int tsi_epoch_atoms_create(ts_step *s)
{
  const ts_lidx n = s->system->n;
  TS_TRY(TSI_NEW(s->f, n));
  TS_TRY(TSI_NEW(s->virial, n));
  TS_TRY(TSI_NEW(s->x_build, n));
  TS_TRY(TSI_NEW(s->reference, n));
  TS_TRY(TSI_NEW(s->closest, TS_MAX_STAGES * s->ntiles));
  TS_TRY(TSI_NEW(s->report, s->ntiles));
  TS_TRY(TSI_NEW(s->partial, s->ntiles));
  TS_TRY(TSI_NEW(s->slice, s->ntiles));
  TS_TRY(TSI_NEW(s->energy, s->ntiles));
  TS_TRY(TSI_NEW(s->active, TS_MAX_STAGES * s->ntiles));
  TS_TRY(TSI_NEW(s->tile, s->ntiles));
  const int light = (int)lround(s->params.recompute * s->ntiles);
  for (int t = 0; t < s->ntiles; t++)
    s->tile[t].keep = t >= light;
  carver c = {0};
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) TS_TRY(ts_arena_create(c.bytes, &c.arena));
    s->atoms_arena = c.arena;
    for (int t = 0; t < s->ntiles; t++)
      carve_layers(s, &c, t);
  }
  for (int t = 0; t < s->ntiles; t++) {
    const ts_lidx first = t * s->shape.atoms;
    const int count = n - first < s->shape.atoms ? n - first : s->shape.atoms;
    tsi_tile_data *d = &s->tile[t];
    starpu_vector_data_register(&d->x, STARPU_MAIN_RAM, (uintptr_t)s->system->x[first],
                                (uint32_t)count, 3 * sizeof(double));
    starpu_vector_data_register(&d->motion, STARPU_MAIN_RAM, (uintptr_t)s->f[first],
                                (uint32_t)count, 3 * sizeof(double));
    s->slice[t] = (ts_slice){.now = &s->now,
                             .first = first,
                             .n = count,
                             .system = s->system,
                             .f = s->f,
                             .virial = s->virial,
                             .x_build = s->x_build,
                             .report = &s->report[t],
                             .partial = &s->partial[t]};
  }
  return 0;
}

/* ---- what edges need */

static void carve_edges(ts_step *s, carver *c, int t)
{
  tsi_tile_data *d = &s->tile[t];
  const size_t real = s->model->real_size;
  size_t most = 0;
  for (int k = 0; k < s->model->desc.nstages; k++) {
    const size_t E = (size_t)s->tiles[k]->tile[t].edges;
    void *block = carve(c, ts_edge_layout(s->model, (int)E, NULL, NULL), &d->edges[k]);
    ts_edge_arrays at;
    ts_edge_layout(s->model, (int)E, block, &at);
    s->active[k * s->ntiles + t] = at.active;
    carve(c, E * 4 * real, &d->grad[k]);
    carve(c, E * 3 * sizeof(double), &d->pull[k]);
    most = E > most ? E : most;
  }
  carve(c, most * 2 * (size_t)s->shape.heads * real, &d->share);
}

/* All but the edge sets, whose memory the next ones reuse. */
static void drop_edges(ts_step *s)
{
  ts_program_destroy(&s->move);
  ts_program_destroy(&s->force);
  for (int t = 0; t < s->ntiles && s->tile; t++) {
    tsi_tile_data *d = &s->tile[t];
    for (int k = 0; k < TS_MAX_STAGES; k++) {
      drop(&d->edges[k]);
      drop(&d->grad[k]);
      drop(&d->pull[k]);
    }
    drop(&d->share);
  }
  drop(&s->scratch);
  for (int k = 0; k < TS_MAX_STAGES; k++) {
    ts_tiles_destroy(&s->tiles[k]);
    free(s->pair[k]);
    s->pair[k] = NULL;
  }
}

static int edges_arrays(ts_step *s)
{
  carver c = {0};
  for (int t = 0; t < s->ntiles; t++)
    carve_edges(s, &c, t);
  if (!s->edges_arena || c.bytes > ts_arena_size(s->edges_arena)) {
    ts_arena_destroy(&s->edges_arena);
    TS_TRY(ts_arena_create(c.bytes + c.bytes / 8, &s->edges_arena));
  }
  ts_arena_reset(s->edges_arena);
  c.arena = s->edges_arena;
  for (int t = 0; t < s->ntiles; t++)
    carve_edges(s, &c, t);

  int degree = 0, partners = 0;
  for (int k = 0; k < s->model->desc.nstages; k++) {
    degree = s->tiles[k]->largest_degree > degree ? s->tiles[k]->largest_degree : degree;
    for (int t = 0; t < s->ntiles; t++) {
      const ts_tile *tile = &s->tiles[k]->tile[t];
      partners = tile->nfrom > partners ? tile->nfrom : partners;
      partners = tile->nto > partners ? tile->nto : partners;
    }
  }
  s->scratch_bytes = ts_arena_round(s->model->kernels->scratch_bytes(&s->shape, degree) +
                                    tsi_pointers_bytes(5, partners));
  starpu_vector_data_register(&s->scratch, -1, 0, (uint32_t)(s->scratch_bytes / TS_ALIGN),
                              TS_ALIGN);
  return 0;
}

int ts_step_edges(const ts_step_params *params, const ts_system *system, int stage, ts_edges **out)
{
  const ts_stage_desc *d = &params->model->desc.stage[stage];
  ts_search_params search;
  bool *excluded = NULL;
  ts_search_params_init(&search);
  search.recycle = *out;
  *out = NULL;
  search.cutoff = d->cutoff;
  search.lower = d->lower;
  search.skin = params->skin;
  search.backend = params->backend;
  search.chunk = params->chunk;
  const int failed = TSI_NEW(excluded, system->n);
  if (failed) {
    ts_edges_destroy(&search.recycle);
    return failed;
  }
  for (ts_lidx i = 0; i < system->n; i++)
    excluded[i] = d->excluded[system->z[i]];
  search.excluded_sender = excluded;
  const int status = ts_edges_build(&system->cell, system->n, 0, (const double(*)[3])system->x,
                                    system->gid, &search, out);
  free(excluded);
  return status;
}

int ts_step_check_bound(const ts_step_params *params, const ts_system *system, int stage,
                        const ts_edges *edges)
{
  const ts_stage_desc *d = &params->model->desc.stage[stage];
  double *geometry = NULL;
  uint8_t *active = NULL;
  int64_t bounded = 0;
  int status;
  if (!d->max_neighbors) return 0;
  TS_TRY_GOTO(status, TSI_NEW(geometry, 4 * edges->count), done);
  TS_TRY_GOTO(status, TSI_NEW(active, edges->count), done);
  ts_edges_measure(edges, (const double(*)[3])system->x, 0, edges->n, d->lower, d->cutoff, geometry,
                   active, NULL, NULL);
  for (ts_lidx i = 0; i < edges->n; i++)
    bounded +=
        ts_nearest_keep((int)(edges->row[i + 1] - edges->row[i]), geometry + 4 * edges->row[i],
                        d->max_neighbors, active + edges->row[i]);
  if (bounded) tsi_step_log_bound(d, bounded, edges->n);
done:
  free(geometry);
  free(active);
  return status;
}

static int stage_edges(ts_step *s, int k)
{
  const ts_system *sys = s->system;
  TS_TRY(ts_step_edges(&s->params, sys, k, &s->edges[k]));
  TS_TRY(ts_tiles_build(s->edges[k], s->shape.atoms, 0, NULL, &s->tiles[k]));
  const ts_edges *e = s->edges[k];
  TS_TRY(TSI_NEW(s->pair[k], e->count));
  for (int64_t i = 0; i < e->count; i++)
    s->pair[k][i] = s->model->species_index[sys->z[e->receiver[i]]] * s->model->nspecies +
                    s->model->species_index[sys->z[e->sender[i]]];
  s->stats.candidates[k] = e->count;
  return 0;
}

/* Index arrays of an edge: rows, columns, tiles and species pair. */
enum { INDEX_BYTES = 52 };

size_t ts_step_memory(const ts_step_params *params, ts_lidx n, const double *edges)
{
  tsi_tile_data tile = {0};
  double *energy;
  ts_step s = {.tile = &tile, .energy = &energy};
  tsi_step_sizes(&s, params, n);
  size_t bytes = 0, most = 0;
  const size_t real = s.model->real_size;
  const int light = (int)lround(params->recompute * s.ntiles);
  for (int keep = 0; keep < 2; keep++) {
    carver c = {0};
    tile.keep = keep;
    carve_layers(&s, &c, 0);
    bytes += c.bytes * (size_t)(keep ? s.ntiles - light : light);
  }
  for (int k = 0; k < s.model->desc.nstages; k++) {
    const size_t E = (size_t)(edges[k] * n);
    bytes += ts_edge_layout(s.model, (int)(E / (size_t)s.ntiles), NULL, NULL) * (size_t)s.ntiles;
    bytes += E * (4 * real + 3 * sizeof(double) + INDEX_BYTES);
    most = E > most ? E : most;
  }
  return bytes + most * 2 * (size_t)s.shape.heads * real;
}

/* Reorder the atoms and the forces along the curve. */
static int sort_atoms(ts_step *s)
{
  ts_system *sys = s->system;
  ts_lidx *order = NULL;
  double(*f)[3] = NULL;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(order, sys->n), done);
  TS_TRY_GOTO(status, TSI_NEW(f, sys->n), done);
  TS_TRY_GOTO(status,
              ts_curve_order(s->params.curve, &sys->cell, sys->n, (const double(*)[3])sys->x,
                             sys->gid, order),
              done);
  TS_TRY_GOTO(status, ts_system_permute(sys, order), done);
  for (ts_lidx i = 0; i < sys->n; i++)
    memcpy(f[i], s->f[order[i]], sizeof f[i]);
  memcpy(s->f, f, (size_t)sys->n * sizeof *f);
  for (ts_lidx i = 0; i < sys->n; i++)
    s->reference[i] = s->model->desc.reference_energy[sys->z[i]];
done:
  free(order);
  free(f);
  return status;
}

int tsi_epoch_begin(ts_step *s, bool sort)
{
  TS_TRY(ts_system_wrap(s->system)); /* where this fails the present epoch stays whole */
  drop_edges(s);
  if (sort) TS_TRY(sort_atoms(s));
  memcpy(s->x_build, s->system->x, (size_t)s->system->n * sizeof *s->x_build);
  for (int k = 0; k < s->model->desc.nstages; k++)
    TS_TRY(stage_edges(s, k));
  TS_TRY(edges_arrays(s));
  s->age = 0;
  if (sort) s->partition_age = 0;
  s->stats.bytes = ts_arena_size(s->atoms_arena) + ts_arena_size(s->edges_arena);
  return 0;
}

void tsi_epoch_destroy(ts_step *s)
{
  drop_edges(s);
  for (int k = 0; k < TS_MAX_STAGES; k++)
    ts_edges_destroy(&s->edges[k]);
  for (int t = 0; t < s->ntiles && s->tile; t++) {
    tsi_tile_data *d = &s->tile[t];
    drop(&d->x);
    drop(&d->motion);
    drop(&d->energy);
    for (int l = 0; l <= s->layers; l++)
      drop(&d->h[l]);
    drop(&d->between);
    for (int l = 0; l < s->layers; l++) {
      drop(&d->q[l]);
      drop(&d->kv[l]);
      drop(&d->saved[l]);
    }
    drop(&d->sum);
    drop(&d->dq);
    drop(&d->dkv);
    drop(&d->dh);
    drop(&d->dshort);
  }
  ts_arena_destroy(&s->atoms_arena);
  ts_arena_destroy(&s->edges_arena);
  free(s->f);
  free(s->virial);
  free(s->x_build);
  free(s->reference);
  free(s->closest);
  free(s->report);
  free(s->partial);
  free(s->slice);
  free(s->energy);
  free(s->active);
  free(s->tile);
}
