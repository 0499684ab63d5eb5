/* SPDX-License-Identifier: MIT
 *
 * The order of a step.  `record_forces` is the physics: forward through the layers, backward in
 * reverse, forces, the second kick.  Tasks of different tiles overlap as far as their data allow.
 */
#include "md/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/glue.h"
#include "md/step_impl.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* Two atoms closer than this are a broken structure, not a configuration [Å]. */
static const double OVERLAP = 0.1;
/* An atom that moves further than this in one step is lost [Å]. */
static const double LEAP = 1.0;

void ts_step_params_init(ts_step_params *p)
{
  *p = (ts_step_params){.workers = 1,
                        .skin = 0.5,
                        .rebuild = 10,
                        .period = 100,
                        .curve = TS_CURVE_HILBERT,
                        .backend = TS_SEARCH_CELLS,
                        .chunk = 512,
                        .replay = true};
}

/* Tiles small enough to keep all workers busy through the layers' barriers, large enough for the
 * matrix engine: four a worker, 16 to 128 atoms. */
static int automatic_tile(ts_lidx n, int workers)
{
  const int64_t share = ((int64_t)n + 4 * workers - 1) / (4 * workers);
  const int64_t rounded = (share + 15) / 16 * 16;
  return (int)(rounded < 16 ? 16 : rounded > 128 ? 128 : rounded);
}

void tsi_step_sizes(ts_step *s, const ts_step_params *params, ts_lidx n)
{
  const int rows = params->tile_atoms ? params->tile_atoms : automatic_tile(n, params->workers);
  s->params = *params;
  s->model = params->model;
  s->layers = ts_model_layers(s->model);
  s->shape = ts_model_shape(s->model, rows);
  s->ntiles = (int)(((int64_t)n + rows - 1) / rows);
  s->stats.tiles = s->ntiles;
  s->stats.tile_atoms = rows;
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int l = 0; l < s->model->desc.stage[k].nlayers; l++)
      if (s->model->layer[k][l].order == TS_ORDER_FIRST) s->first_order = true;
}

static int check_elements(const ts_model *model, const ts_system *system)
{
  if (system->n < 1) return tsi_fail(TS_ERR_INPUT, "the structure has no atoms");
  for (ts_lidx i = 0; i < system->n; i++)
    if (model->species_index[system->z[i]] < 0)
      return tsi_fail(TS_ERR_INPUT,
                      "atom %lld has atomic number %d, which the model has no table of",
                      (long long)system->gid[i] + 1, system->z[i]);
  return 0;
}

/* ---- the tasks of a step */

/* One handle of each tile in a list of tiles; `field` is where it is in the tile's data. */
static void collect(const ts_step *s, int count, const int32_t *tiles, size_t field,
                    starpu_data_handle_t *out)
{
  for (int i = 0; i < count; i++)
    memcpy(&out[i], (const char *)&s->tile[tiles[i]] + field, sizeof out[i]);
}

#define FIELD(member) offsetof(tsi_tile_data, member)
#define INDEXED(member, i) \
  (offsetof(tsi_tile_data, member) + (size_t)(i) * sizeof(starpu_data_handle_t))

static int record_geometry(ts_step *s, const ts_recorder *r, starpu_data_handle_t *list)
{
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      tsi_tile_data *d = &s->tile[t];
      const ts_tile *tile = &s->tiles[k]->tile[t];
      collect(s, tile->nfrom, tile->from, FIELD(x), list);
      TS_TRY(ts_submit_geometry(r, k, s->edges[k], tile, (const double(*)[3])s->system->x,
                                s->pair[k] + tile->first_edge, d->x, list, d->edges[k], d->grad[k],
                                &s->closest[k * s->ntiles + t]));
    }
  return 0;
}

/* Input of layer l: the cluster's long stage starts from a normalised copy. */
static starpu_data_handle_t input_of(const ts_step *s, const tsi_tile_data *d, int stage, int layer,
                                     int l)
{
  const bool between = s->model->head.merge == TS_MERGE_CLUSTER && stage == 1 && layer == 0;
  return between ? d->between : d->h[l];
}

static int record_forward(ts_step *s, const ts_recorder *r, starpu_data_handle_t *list)
{
  for (int t = 0; t < s->ntiles; t++)
    TS_TRY(ts_submit_embed(r, &s->tiles[0]->tile[t], s->tile[t].edges[0], s->tile[t].h[0]));
  for (int k = 0, l = 0; k < s->model->desc.nstages; k++) {
    if (k == 1 && s->model->head.merge == TS_MERGE_CLUSTER)
      for (int t = 0; t < s->ntiles; t++)
        TS_TRY(ts_submit_norm(r, s->tile[t].h[l], s->tile[t].between));
    for (int layer = 0; layer < s->model->desc.stage[k].nlayers; layer++, l++) {
      for (int t = 0; t < s->ntiles; t++) {
        const tsi_tile_data *d = &s->tile[t];
        TS_TRY(ts_submit_project(r, k, layer, d->keep, input_of(s, d, k, layer, l), d->q[l],
                                 d->kv[l], d->saved[l]));
      }
      for (int t = 0; t < s->ntiles; t++) {
        const tsi_tile_data *d = &s->tile[t];
        const ts_tile *tile = &s->tiles[k]->tile[t];
        collect(s, tile->nfrom, tile->from, INDEXED(kv, l), list);
        TS_TRY(ts_submit_attend(r, k, layer, d->keep, TS_HALF_BOTH, tile, d->edges[k], d->q[l],
                                list, d->saved[l], d->sum));
        TS_TRY(ts_submit_update(r, k, layer, d->keep, input_of(s, d, k, layer, l), d->sum,
                                d->saved[l], d->h[l + 1]));
      }
    }
  }
  return 0;
}

/* Features that the short stage ends with. */
static int short_layers(const ts_step *s)
{
  return s->model->desc.stage[0].nlayers;
}

static int record_backward_layer(ts_step *s, const ts_recorder *r, starpu_data_handle_t *list,
                                 int k, int layer, int l)
{
  const bool split = s->model->head.merge == TS_MERGE_CLUSTER && k == 0;
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    const ts_tile *tile = &s->tiles[k]->tile[t];
    TS_TRY(ts_submit_update_back(r, k, layer, d->keep, d->saved[l], split ? d->dshort : d->dh,
                                 d->sum));
    collect(s, tile->nfrom, tile->from, INDEXED(kv, l), list);
    TS_TRY(ts_submit_attend_back(r, k, layer, d->keep, tile, d->edges[k], d->q[l], list,
                                 d->saved[l], d->sum, d->dq, d->share, d->grad[k]));
  }
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    const ts_tile *tile = &s->tiles[k]->tile[t];
    starpu_data_handle_t *q = list, *sum = q + tile->nto, *share = sum + tile->nto,
                         *edges = share + tile->nto;
    collect(s, tile->nto, tile->to, INDEXED(q, l), q);
    collect(s, tile->nto, tile->to, FIELD(sum), sum);
    collect(s, tile->nto, tile->to, FIELD(share), share);
    collect(s, tile->nto, tile->to, INDEXED(edges, k), edges);
    TS_TRY(ts_submit_send_back(r, k, layer, false, s->shape.atoms, tile, s->tiles[k]->tile, q, sum,
                               share, edges, d->dkv));
    TS_TRY(ts_submit_project_back(r, k, layer, d->keep, input_of(s, d, k, layer, l), d->dq, d->dkv,
                                  d->saved[l], split ? d->dshort : d->dh));
  }
  return 0;
}

static int record_backward(ts_step *s, const ts_recorder *r, starpu_data_handle_t *list)
{
  const bool cluster = s->model->head.merge == TS_MERGE_CLUSTER;
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_head(r, s->slice[t].n, s->reference + s->slice[t].first, d->h[short_layers(s)],
                          d->h[s->layers], d->energy, cluster ? d->dshort : d->dh, d->dh));
  }
  for (int k = s->model->desc.nstages - 1, l = s->layers - 1; k >= 0; k--) {
    for (int layer = s->model->desc.stage[k].nlayers - 1; layer >= 0; layer--, l--)
      TS_TRY(record_backward_layer(s, r, list, k, layer, l));
    if (k == 1 && cluster)
      for (int t = 0; t < s->ntiles; t++)
        TS_TRY(ts_submit_norm_back(r, s->tile[t].h[l + 1], s->tile[t].dh, s->tile[t].dshort));
  }
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_embed_back(r, &s->tiles[0]->tile[t], d->edges[0], cluster ? d->dshort : d->dh,
                                d->grad[0]));
  }
  return 0;
}

static int record_forces(ts_step *s, const ts_recorder *r, starpu_data_handle_t *list)
{
  TS_TRY(record_geometry(s, r, list));
  TS_TRY(record_forward(s, r, list));
  TS_TRY(record_backward(s, r, list));
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      const tsi_tile_data *d = &s->tile[t];
      TS_TRY(ts_submit_edge_force(r, &s->tiles[k]->tile[t], d->edges[k], d->grad[k], d->pull[k]));
    }
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      const tsi_tile_data *d = &s->tile[t];
      const ts_tile *tile = &s->tiles[k]->tile[t];
      collect(s, tile->nto, tile->to, INDEXED(pull, k), list);
      TS_TRY(ts_submit_force(
          r, tile, k == 0, d->edges[k], d->pull[k], list,
          &(ts_force_sums){.f = s->f + tile->first, .virial = s->virial + tile->first}, d->motion));
    }
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_kick(r, &s->slice[t], d->x, d->energy, d->motion));
  }
  return 0;
}

/* Record both programs of the epoch. */
static int record(ts_step *s)
{
  starpu_data_handle_t *list = NULL;
  int status;
  ts_recorder r = {.model = s->model, .shape = &s->shape, .scratch = s->scratch};
  TS_TRY_GOTO(status, TSI_NEW(list, 4 * s->ntiles), done);
  TS_TRY_GOTO(status, ts_program_create(&s->move), done);
  r.program = s->move;
  for (int t = 0; t < s->ntiles; t++)
    TS_TRY_GOTO(status, ts_submit_move(&r, &s->slice[t], s->tile[t].x, s->tile[t].motion), done);
  TS_TRY_GOTO(status, ts_program_create(&s->force), done);
  r.program = s->force;
  TS_TRY_GOTO(status, record_forces(s, &r, list), done);
  s->stats.records++;
  s->stats.tasks = ts_program_size(s->move) + ts_program_size(s->force);
done:
  free(list);
  return status;
}

static int run(ts_step *s, bool forces)
{
  if (!s->params.replay) { /* for comparison: pay for recording on every step */
    ts_program_destroy(&s->move);
    ts_program_destroy(&s->force);
  }
  if (!s->force) TS_TRY(record(s));
  ts_program *program = forces ? s->force : s->move;
  TS_TRY(ts_program_run(program, (long)s->now.number));
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    s->stats.phase_seconds[p] += ts_program_phase_seconds(program, p);
  s->stats.run_seconds += ts_program_seconds(program);
  return 0;
}

/* ---- checks that name atoms */

static int check_overlap(const ts_step *s)
{
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      const ts_closest *c = &s->closest[k * s->ntiles + t];
      if (!(c->r < OVERLAP)) continue;
      const ts_system *sys = s->system;
      const ts_lidx i = s->edges[k]->receiver[c->edge], j = s->edges[k]->sender[c->edge];
      return tsi_fail(TS_ERR_SIMULATION,
                      "step %lld: atoms %lld at (%.6f, %.6f, %.6f) and %lld at (%.6f, %.6f, %.6f) "
                      "overlap: %.3g A apart, expected at least %g A",
                      (long long)s->now.number, (long long)sys->gid[i] + 1, sys->x[i][0],
                      sys->x[i][1], sys->x[i][2], (long long)sys->gid[j] + 1, sys->x[j][0],
                      sys->x[j][1], sys->x[j][2], c->r, OVERLAP);
    }
  return 0;
}

/* The atom of a tile that is furthest from where it was at the build, for a message. */
static int lost_atom(const ts_step *s, int t)
{
  const ts_system *sys = s->system;
  ts_lidx worst = s->slice[t].first;
  double most = -1;
  for (ts_lidx i = worst; i < s->slice[t].first + s->slice[t].n; i++) {
    double d2 = 0;
    for (int k = 0; k < 3; k++)
      d2 += pow(sys->x[i][k] - s->x_build[i][k], 2);
    if (!(d2 <= most)) {
      most = d2;
      worst = i;
    }
    if (!isfinite(d2)) break;
  }
  return tsi_fail(
      TS_ERR_SIMULATION,
      "step %lld: atom %lld is lost: it moved %.3g A from (%.6f, %.6f, %.6f) to (%.6f, %.6f, %.6f) "
      "in at most %lld steps, with velocity (%.3g, %.3g, %.3g) A/fs; is the timestep too long?",
      (long long)s->now.number, (long long)sys->gid[worst] + 1, sqrt(most), s->x_build[worst][0],
      s->x_build[worst][1], s->x_build[worst][2], sys->x[worst][0], sys->x[worst][1],
      sys->x[worst][2], (long long)s->age + 1, sys->v[worst][0], sys->v[worst][1],
      sys->v[worst][2]);
}

/* Largest squared displacement since the build, or the failure of a lost atom. */
static int largest_move(const ts_step *s, double *displacement2)
{
  const double limit = s->params.skin / 2 + LEAP;
  *displacement2 = 0;
  for (int t = 0; t < s->ntiles; t++) {
    const double d2 = s->report[t].displacement2;
    if (!(d2 <= limit * limit)) return lost_atom(s, t);
    *displacement2 = d2 > *displacement2 ? d2 : *displacement2;
  }
  return 0;
}

/* ---- the public calls */

static int begin(ts_step *s, ts_rebuild cause)
{
  const double start = starpu_timing_now();
  s->stats.rebuilds[cause]++;
  TS_TRY(tsi_epoch_begin(s, cause == TS_REBUILD_START || cause == TS_REBUILD_PARTITION));
  s->stats.rebuild_seconds += (starpu_timing_now() - start) * 1e-6;
  return 0;
}

int ts_step_create(const ts_step_params *params, ts_system *system, ts_step **out)
{
  *out = NULL;
  ts_step *s = NULL;
  int status;
  TS_TRY(check_elements(params->model, system));
  TS_TRY(TSI_NEW(s, 1));
  s->system = system;
  tsi_step_sizes(s, params, system->n);
  TS_TRY_GOTO(status, tsi_epoch_atoms_create(s), fail);
  TS_TRY_GOTO(status, begin(s, TS_REBUILD_START), fail);
  *out = s;
  return 0;
fail:
  ts_step_destroy(&s);
  return status;
}

void ts_step_destroy(ts_step **step)
{
  if (!*step) return;
  tsi_epoch_destroy(*step);
  free(*step);
  *step = NULL;
}

void tsi_step_log_bound(const ts_stage_desc *stage, int64_t bounded, int64_t atoms)
{
  ts_log(TS_LOG_WARNING,
         "%lld of %lld atoms have more than max_neighbors = %d senders within %g Å: only the "
         "nearest count, and the energy is discontinuous where they change",
         (long long)bounded, (long long)atoms, stage->max_neighbors, stage->cutoff);
}

/* Once a run, at the first step that it concerns. */
static void log_bound(ts_step *s)
{
  for (int k = 0; k < s->model->desc.nstages && !s->bound_said; k++) {
    int64_t bounded = 0;
    for (int t = 0; t < s->ntiles; t++)
      bounded += s->closest[k * s->ntiles + t].bounded;
    if (!bounded) continue;
    tsi_step_log_bound(&s->model->desc.stage[k], bounded, s->system->n);
    s->bound_said = true;
  }
}

static int forces(ts_step *s, ts_partial *total)
{
  TS_TRY(run(s, true));
  log_bound(s);
  s->stats.evaluations++;
  ts_partial_clear(total);
  for (int t = 0; t < s->ntiles; t++)
    ts_partial_merge(total, &s->partial[t]);
  return check_overlap(s);
}

int ts_step_evaluate(ts_step *s, int64_t number, ts_partial *total)
{
  const ts_system *sys = s->system;
  ts_lidx atom;
  const double moved = ts_displacement_max(sys->n, (const double(*)[3])sys->x,
                                           (const double(*)[3])s->x_build, &atom);
  s->now = (ts_step_now){.motion = NULL, .number = number};
  if (!isfinite(moved))
    return tsi_fail(TS_ERR_SIMULATION,
                    "step %lld: atom %lld is at (%g, %g, %g) A, expected finite positions",
                    (long long)number, (long long)sys->gid[atom] + 1, sys->x[atom][0],
                    sys->x[atom][1], sys->x[atom][2]);
  if (!(moved <= s->params.skin / 2)) TS_TRY(begin(s, TS_REBUILD_DISPLACEMENT));
  return forces(s, total);
}

int ts_step_advance(ts_step *s, const ts_motion *motion, int64_t number, ts_partial *total)
{
  double displacement2;
  s->now = (ts_step_now){.motion = motion, .number = number};
  TS_TRY(run(s, false));
  TS_TRY(largest_move(s, &displacement2));
  s->age++;
  s->partition_age++;
  if (s->partition_age >= s->params.period)
    TS_TRY(begin(s, TS_REBUILD_PARTITION));
  else if (s->age >= s->params.rebuild)
    TS_TRY(begin(s, TS_REBUILD_SCHEDULE));
  else if (displacement2 > s->params.skin * s->params.skin / 4)
    TS_TRY(begin(s, TS_REBUILD_DISPLACEMENT));
  return forces(s, total);
}

const double (*ts_step_forces(const ts_step *step))[3]
{
  return (const double(*)[3])step->f;
}

const double (*ts_step_virials(const ts_step *step))[9]
{
  return (const double(*)[9])step->virial;
}

double ts_step_energy(const ts_step *step, ts_lidx atom)
{
  return step->energy[atom / step->shape.atoms][atom % step->shape.atoms];
}

int ts_step_topology(const ts_step *s, int stage, uint64_t *hash, int64_t *active)
{
  const ts_edges *e = s->edges[stage];
  uint8_t *all = NULL;
  TS_TRY(TSI_NEW(all, e->count));
  for (int t = 0; t < s->ntiles; t++) {
    const ts_tile *tile = &s->tiles[stage]->tile[t];
    if (tile->edges > 0)
      memcpy(all + tile->first_edge, s->active[stage * s->ntiles + t], (size_t)tile->edges);
  }
  *hash = ts_edges_hash(e, all, s->system->gid, (const int32_t(*)[3])s->system->image);
  *active = 0;
  for (int64_t i = 0; i < e->count; i++)
    *active += all[i];
  free(all);
  return 0;
}

ts_step_ages ts_step_ages_get(const ts_step *step)
{
  return (ts_step_ages){step->age, step->partition_age};
}

void ts_step_ages_set(ts_step *step, ts_step_ages ages)
{
  step->age = ages.build;
  step->partition_age = ages.partition;
}

const double (*ts_step_build_positions(const ts_step *step))[3]
{
  return (const double(*)[3])step->x_build;
}

ts_step_stats ts_step_statistics(const ts_step *step)
{
  return step->stats;
}
