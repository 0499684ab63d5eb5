/* SPDX-License-Identifier: MIT
 *
 * An epoch's data: the atoms' order, the edge sets, and every array of a step, carved from two
 * arenas (one for what atoms need, made once; one for what edges need, reused at each rebuild and
 * grown only when it must) and registered with StarPU tile by tile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/glue.h"
#include "md/migrate.h"
#include "md/step_impl.h"
#include "neighbor/nearest.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* ---- what atoms need */

static void carve_layers(ts_step *s, tsi_carver *c, int t)
{
  const ts_shape *p = &s->shape;
  const size_t real = s->model->real_size, A = (size_t)p->atoms;
  const size_t feature = (size_t)p->rows * A * (size_t)p->channels * real;
  const size_t heads = A * (size_t)(p->heads * p->head_dim) * real;
  tsi_tile_data *d = &s->tile[t];
  const bool cluster = s->model->head.merge == TS_MERGE_CLUSTER;
  for (int l = 0; l <= s->layers; l++)
    tsi_carve(c, feature, &d->h[l]);
  if (cluster) tsi_carve(c, feature, &d->between);
  for (int l = 0; l < s->layers; l++) {
    tsi_carve(c, ts_query_bytes(s->model, p), &d->q[l]);
    tsi_carve(c, heads + feature, &d->kv[l]);
    tsi_carve(c, ts_saved_layout(s->model, p, d->keep, NULL, NULL), &d->saved[l]);
  }
  tsi_carve(c, s->first_order ? 3 * feature : feature, &d->sum);
  tsi_carve(c, ts_query_bytes(s->model, p), &d->dq);
  tsi_carve(c, heads + feature, &d->dkv);
  tsi_carve(c, feature, &d->dh);
  if (cluster) tsi_carve(c, feature, &d->dshort);
  if (s->params.reproducible) tsi_carve(c, A * ts_kv_width(p) * sizeof(int64_t), &d->fixed);
  s->energy[t] = tsi_carve(c, A * sizeof(double), &d->energy);
}

static int atoms_arrays(ts_step *s)
{
  const ts_lidx n = s->system->n;
  TS_TRY(TSI_NEW(s->f, n));
  if (s->params.reproducible) TS_TRY(TSI_NEW(s->f_fixed, n));
  TS_TRY(TSI_NEW(s->virial, n));
  TS_TRY(TSI_NEW(s->x_build, n));
  if (!s->params.period) TS_TRY(TSI_NEW(s->x_partition, n));
  TS_TRY(TSI_NEW(s->reference, n));
  TS_TRY(TSI_NEW(s->closest, TS_MAX_STAGES * s->ntiles));
  TS_TRY(TSI_NEW(s->report, s->ntiles));
  TS_TRY(TSI_NEW(s->partial, s->ntiles));
  TS_TRY(TSI_NEW(s->slice, s->ntiles));
  TS_TRY(TSI_NEW(s->energy, s->ntiles));
  TS_TRY(TSI_NEW(s->active, TS_MAX_STAGES * s->ntiles));
  return TSI_NEW(s->tile, s->ntiles);
}

static int atoms_create(ts_step *s)
{
  const ts_lidx n = s->system->n;
  tsi_step_sizes(s, &s->params, n);
  TS_TRY(atoms_arrays(s));
  const int light = (int)lround(s->params.recompute * s->ntiles);
  for (int t = 0; t < s->ntiles; t++)
    s->tile[t].keep = t >= light;
  tsi_carver c = {0};
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
  s->atoms = n;
  s->atoms_x = s->system->x;
  return 0;
}

static void atoms_destroy(ts_step *s)
{
  for (int t = 0; t < s->ntiles && s->tile; t++) {
    tsi_tile_data *d = &s->tile[t];
    tsi_drop(&d->x);
    tsi_drop(&d->motion);
    tsi_drop(&d->energy);
    for (int l = 0; l <= s->layers; l++)
      tsi_drop(&d->h[l]);
    tsi_drop(&d->between);
    for (int l = 0; l < s->layers; l++) {
      tsi_drop(&d->q[l]);
      tsi_drop(&d->kv[l]);
      tsi_drop(&d->saved[l]);
    }
    tsi_drop(&d->sum);
    tsi_drop(&d->dq);
    tsi_drop(&d->dkv);
    tsi_drop(&d->dh);
    tsi_drop(&d->dshort);
    tsi_drop(&d->fixed);
  }
  ts_arena_destroy(&s->atoms_arena);
  void **array[] = {(void **)&s->f,       (void **)&s->f_fixed,     (void **)&s->virial,
                    (void **)&s->x_build, (void **)&s->x_partition, (void **)&s->reference,
                    (void **)&s->closest, (void **)&s->report,      (void **)&s->partial,
                    (void **)&s->slice,   (void **)&s->energy,      (void **)&s->active,
                    (void **)&s->tile};
  for (size_t i = 0; i < sizeof array / sizeof *array; i++) {
    free(*array[i]);
    *array[i] = NULL;
  }
}

/* ---- what edges need */

static void carve_edges(ts_step *s, tsi_carver *c, int t)
{
  tsi_tile_data *d = &s->tile[t];
  const size_t real = s->model->real_size;
  size_t most = 0;
  for (int k = 0; k < s->model->desc.nstages; k++) {
    const size_t E = (size_t)s->tiles[k]->tile[t].edges;
    void *block = tsi_carve(c, ts_edge_layout(s->model, (int)E, NULL, NULL), &d->edges[k]);
    ts_edge_arrays at;
    ts_edge_layout(s->model, (int)E, block, &at);
    s->active[k * s->ntiles + t] = at.active;
    tsi_carve(c, E * 4 * real, &d->grad[k]);
    tsi_carve(c, E * 3 * sizeof(double), &d->pull[k]);
    most = E > most ? E : most;
  }
  tsi_carve(c, most * 2 * (size_t)s->shape.heads * real, &d->share);
}

/* All but the edge sets, whose memory the next ones reuse. */
static void drop_edges(ts_step *s)
{
  s->ready = false;
  ts_program_destroy(&s->move);
  ts_program_destroy(&s->force);
  for (int t = 0; t < s->ntiles && s->tile; t++) {
    tsi_tile_data *d = &s->tile[t];
    for (int k = 0; k < TS_MAX_STAGES; k++) {
      tsi_drop(&d->edges[k]);
      tsi_drop(&d->grad[k]);
      tsi_drop(&d->pull[k]);
    }
    tsi_drop(&d->share);
  }
  tsi_drop(&s->scratch);
  for (int k = 0; k < TS_MAX_STAGES; k++) {
    ts_tiles_destroy(&s->tiles[k]);
    free(s->pair[k]);
    s->pair[k] = NULL;
    tsi_halo_destroy(&s->halo[k]);
  }
}

/* An arena of at least so many bytes, empty: the one there is, if it is large enough. */
static int reuse_arena(size_t bytes, ts_arena **arena)
{
  if (!*arena || bytes > ts_arena_size(*arena)) {
    ts_arena_destroy(arena);
    TS_TRY(ts_arena_create(bytes + bytes / 8, arena));
  }
  ts_arena_reset(*arena);
  return 0;
}

static int halo_arrays(ts_step *s)
{
  tsi_carver c = {0};
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) TS_TRY(reuse_arena(c.bytes, &s->halo_arena));
    c.arena = s->halo_arena;
    if (pass == 0) c.arena = NULL;
    for (int k = 0; k < s->model->desc.nstages; k++)
      if (s->halo[k])
        tsi_halo_carve(s->halo[k], &c, &s->shape, s->model->real_size, s->params.reproducible);
  }
  return 0;
}

static int edges_arrays(ts_step *s)
{
  tsi_carver c = {0};
  for (int t = 0; t < s->ntiles; t++)
    carve_edges(s, &c, t);
  TS_TRY(reuse_arena(c.bytes, &s->edges_arena));
  c.arena = s->edges_arena;
  for (int t = 0; t < s->ntiles; t++)
    carve_edges(s, &c, t);
  TS_TRY(halo_arrays(s));

  int degree = 0, partners = 0;
  for (int k = 0; k < s->model->desc.nstages; k++) {
    const tsi_halo *halo = s->halo[k];
    degree = s->tiles[k]->largest_degree > degree ? s->tiles[k]->largest_degree : degree;
    for (int t = 0; t < s->ntiles + s->tiles[k]->halos; t++) {
      const ts_tile *tile = &s->tiles[k]->tile[t];
      partners = tile->nfrom > partners ? tile->nfrom : partners;
      partners = tile->nto > partners ? tile->nto : partners;
    }
    for (int t = 0; halo && t < halo->plan.targets; t++)
      partners = halo->target[t].out.ntiles > partners ? halo->target[t].out.ntiles : partners;
    for (int t = 0; halo && t < s->ntiles; t++)
      partners = halo->inbound[t].npeers > partners ? halo->inbound[t].npeers : partners;
  }
  s->partners = partners;
  s->scratch_bytes = ts_arena_round(s->model->kernels->scratch_bytes(&s->shape, degree) +
                                    tsi_pointers_bytes(5, partners));
  starpu_vector_data_register(&s->scratch, -1, 0, (uint32_t)(s->scratch_bytes / TS_ALIGN),
                              TS_ALIGN);
  return 0;
}

/* The atoms of this rank and, behind them, those of others that may matter. */
typedef struct surroundings {
  ts_lidx n, nhalo;
  double (*x)[3];
  ts_gidx *gid;
  uint8_t *z;
  bool *flag; /* [n+nhalo] scratch */
} surroundings;

static void surroundings_free(surroundings *a)
{
  free(a->x);
  free(a->gid);
  free(a->z);
  free(a->flag);
}

static int surroundings_make(const ts_system *sys, const ts_remote *remote, surroundings *out)
{
  const ts_lidx n = sys->n, all = n + remote->n;
  *out = (surroundings){.n = n, .nhalo = remote->n};
  TS_TRY(TSI_NEW(out->x, all));
  TS_TRY(TSI_NEW(out->gid, all));
  TS_TRY(TSI_NEW(out->z, all));
  TS_TRY(TSI_NEW(out->flag, all));
  memcpy(out->x, sys->x, (size_t)n * sizeof *out->x);
  memcpy(out->gid, sys->gid, (size_t)n * sizeof *out->gid);
  memcpy(out->z, sys->z, (size_t)n);
  if (remote->n > 0) {
    memcpy(out->x + n, remote->x, (size_t)remote->n * sizeof *out->x);
    memcpy(out->gid + n, remote->gid, (size_t)remote->n * sizeof *out->gid);
    memcpy(out->z + n, remote->tag, (size_t)remote->n);
  }
  return 0;
}

static int search(const ts_step_params *params, const ts_cell *cell, const surroundings *around,
                  int stage, ts_edges **out)
{
  const ts_stage_desc *d = &params->model->desc.stage[stage];
  ts_search_params search;
  ts_search_params_init(&search);
  search.recycle = *out;
  *out = NULL;
  search.cutoff = d->cutoff;
  search.lower = d->lower;
  search.skin = params->skin;
  search.backend = params->backend;
  search.chunk = params->chunk;
  for (ts_lidx i = 0; i < around->n + around->nhalo; i++)
    around->flag[i] = d->excluded[around->z[i]];
  search.excluded_sender = around->flag;
  return ts_edges_build(cell, around->n, around->nhalo, (const double(*)[3])around->x, around->gid,
                        &search, out);
}

int ts_step_edges(const ts_step_params *params, const ts_system *system, int stage, ts_edges **out)
{
  const ts_remote nobody = {0};
  surroundings around;
  int status = surroundings_make(system, &nobody, &around);
  if (status)
    ts_edges_destroy(out);
  else
    status = search(params, &system->cell, &around, stage, out);
  surroundings_free(&around);
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

static int species_pairs(ts_step *s, int k)
{
  const ts_system *sys = s->system;
  const ts_edges *e = s->edges[k];
  const int *species = s->model->species_index;
  TS_TRY(TSI_NEW(s->pair[k], e->count));
  for (int64_t i = 0; i < e->count; i++) {
    const ts_lidx j = e->sender[i];
    const int z = j < sys->n ? sys->z[j] : s->halo[k]->z[j - sys->n];
    s->pair[k][i] = species[sys->z[e->receiver[i]]] * s->model->nspecies + species[z];
  }
  s->stats.candidates[k] = e->count;
  s->stats.halo[k] = s->halo[k] ? s->halo[k]->n : 0;
  return 0;
}

/* Keep of the surroundings what edges name, and plan its exchange. */
static int stage_halo(ts_step *s, int k, const ts_remote *remote, const surroundings *around)
{
  const ts_lidx n = around->n, all = n + around->nhalo;
  ts_lidx *to = NULL;
  int status = TSI_NEW(to, all);
  if (!status) {
    ts_lidx kept = n;
    memset(around->flag, 0, (size_t)all * sizeof *around->flag);
    ts_edges_used(s->edges[k], around->flag);
    for (ts_lidx i = 0; i < all; i++)
      to[i] = i < n ? i : around->flag[i] ? kept++ : -1;
    status = ts_edges_renumber(s->edges[k], to, kept);
  }
  free(to);
  TS_TRY(tsi_ranks_agree(&s->ranks, status));
  return tsi_halo_create(&s->ranks, remote, around->flag + n, n, s->shape.atoms,
                         s->model->desc.stage[k].nlayers, &s->halo[k]);
}

static int stage_edges(ts_step *s, int k, const ts_remote *remote, const surroundings *around)
{
  int status = search(&s->params, &s->system->cell, around, k, &s->edges[k]);
  TS_TRY(tsi_ranks_agree(&s->ranks, status));
  if (s->ranks.size > 1) TS_TRY(stage_halo(s, k, remote, around));
  const ts_plan *plan = s->halo[k] ? &s->halo[k]->plan : NULL;
  status = ts_tiles_build(s->edges[k], s->shape.atoms, plan ? plan->sources : 0,
                          plan ? plan->first : NULL, &s->tiles[k]);
  if (!status) status = species_pairs(s, k);
  return tsi_ranks_agree(&s->ranks, status);
}

static int all_edges(ts_step *s)
{
  const ts_system *sys = s->system;
  const ts_shard shard = {
      .n = sys->n, .x = (const double(*)[3])sys->x, .gid = sys->gid, .tag = sys->z};
  ts_remote remote = {0};
  surroundings around = {0};
  double reach = 0;
  int status = 0;
  for (int k = 0; k < s->model->desc.nstages; k++)
    reach = fmax(reach, s->model->desc.stage[k].cutoff + s->params.skin);
  if (s->ranks.size > 1)
    TS_TRY(ts_level1_find(&s->ranks, &s->params.level1, &sys->cell, reach, &shard, &remote, NULL));
  status = tsi_ranks_agree(&s->ranks, surroundings_make(sys, &remote, &around));
  for (int k = 0; k < s->model->desc.nstages && !status; k++)
    status = stage_edges(s, k, &remote, &around);
  s->stats.peers = remote.peers;
  surroundings_free(&around);
  ts_remote_free(&remote);
  return status;
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
    tsi_carver c = {0};
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

/* On one rank: the atoms along the curve. */
static int sort_atoms(ts_step *s)
{
  ts_system *sys = s->system;
  ts_lidx *order = NULL;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(order, sys->n), done);
  TS_TRY_GOTO(status,
              ts_curve_order(s->params.partition.curve, s->params.partition.normalization,
                             &sys->cell, sys->n, (const double(*)[3])sys->x, sys->gid, order),
              done);
  status = ts_system_permute(sys, order);
done:
  free(order);
  return status;
}

/* Edges of every atom in the present epoch, for a cut that weighs them; NULL before the first. */
static int edge_weights(const ts_step *s, double **out)
{
  const ts_lidx n = s->system->n;
  *out = NULL;
  if (!s->params.weighted || !s->edges[0] || s->edges[0]->n != n) return 0;
  TS_TRY(TSI_NEW(*out, n));
  for (ts_lidx i = 0; i < n; i++) {
    (*out)[i] = 1; /* what an atom costs without edges, in edges: see docs/ranks.md */
    for (int k = 0; k < s->model->desc.nstages; k++)
      (*out)[i] +=
          (double)(s->edges[k]->row[i + 1] - s->edges[k]->row[i]) * s->model->desc.stage[k].nlayers;
  }
  return 0;
}

/* On several: every atom to its owner. */
static int partition(ts_step *s)
{
  ts_system *sys = s->system;
  const ts_shard shard = {.n = sys->n, .x = (const double(*)[3])sys->x, .gid = sys->gid};
  double *weight = NULL;
  int32_t *owner = NULL;
  int status;
  free(s->key);
  s->key = NULL;
  status = TSI_NEW(s->key, sys->n);
  if (!status) status = TSI_NEW(owner, sys->n);
  if (!status) status = edge_weights(s, &weight);
  status = tsi_ranks_agree(&s->ranks, status);
  if (!status && s->params.keys)
    memcpy(s->key, s->params.keys, (size_t)sys->n * sizeof *s->key);
  else if (!status)
    status = ts_partition_keys(&s->ranks, &s->params.partition, &sys->cell, &shard, &s->key);
  if (!status && s->params.owners) {
    memcpy(owner, s->params.owners, (size_t)sys->n * sizeof *owner);
  } else if (!status) {
    const bool weighed = s->params.weighted && s->edges[0];
    const double *const weights[] = {weight};
    const uint64_t *const keys[] = {s->key};
    status = ts_partition_cut(&s->ranks, &s->params.partition, &shard, keys,
                              weighed ? weights : NULL, &owner);
  }
  if (!status) status = ts_system_migrate(sys, &s->ranks, &s->key, owner);
  free(weight);
  free(owner);
  return status;
}

/* New owners, and everything whose extents depend on the number of atoms. */
static int begin_period(ts_step *s)
{
  if (s->ranks.size > 1)
    TS_TRY(partition(s));
  else
    TS_TRY(sort_atoms(s));
  int status = 0;
  if (s->atoms != s->system->n || s->atoms_x != s->system->x) {
    atoms_destroy(s);
    status = atoms_create(s);
  }
  TS_TRY(tsi_ranks_agree(&s->ranks, status));
  for (ts_lidx i = 0; i < s->system->n; i++)
    s->reference[i] = s->model->desc.reference_energy[s->system->z[i]];
  s->partition_age = 0;
  return 0;
}

int tsi_epoch_begin(ts_step *s, bool sort)
{
  /* where this fails the present epoch stays whole */
  TS_TRY(tsi_ranks_agree(&s->ranks, ts_system_wrap(s->system)));
  drop_edges(s);
  if (sort) TS_TRY(begin_period(s));
  memcpy(s->x_build, s->system->x, (size_t)s->system->n * sizeof *s->x_build);
  if (sort)
    tsi_period_begin(s);
  else
    tsi_period_measure(s);
  TS_TRY(all_edges(s));
  TS_TRY(tsi_ranks_agree(&s->ranks, edges_arrays(s)));
  s->age = 0;
  s->stats.bytes = ts_arena_size(s->atoms_arena) + ts_arena_size(s->edges_arena) +
                   (s->halo_arena ? ts_arena_size(s->halo_arena) : 0);
  s->ready = true;
  return 0;
}

void tsi_epoch_destroy(ts_step *s)
{
  drop_edges(s);
  for (int k = 0; k < TS_MAX_STAGES; k++)
    ts_edges_destroy(&s->edges[k]);
  atoms_destroy(s);
  ts_arena_destroy(&s->edges_arena);
  ts_arena_destroy(&s->halo_arena);
  free(s->key);
}
