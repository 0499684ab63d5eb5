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
                        .partition = {.curve = TS_CURVE_HILBERT},
                        .overlap = true,
                        .backend = TS_SEARCH_CELLS,
                        .chunk = 512,
                        .replay = true};
  ts_level1_params_init(&p->level1);
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

/* Tags of what is under way between two ranks; layers count over all stages. */
enum { TAG_PLACES = 0, TAG_FEEL = TS_MAX_STAGES, TAG_KV = 2 * TS_MAX_STAGES };

static int64_t tag_back(int layer)
{
  return TAG_KV + TSI_LAYERS + layer;
}

/* What recording passes around. */
typedef struct recording {
  ts_step *s;
  ts_recorder r;
  starpu_data_handle_t *list; /* [4 partners] */
} recording;

#define FIELD(member) offsetof(tsi_tile_data, member)
#define INDEXED(member, i) \
  (offsetof(tsi_tile_data, member) + (size_t)(i) * sizeof(starpu_data_handle_t))
#define SOURCE(member) offsetof(tsi_source, member)

/* One handle of each tile in a list: `field` is where it is in a tile's data. */
static void collect(const ts_step *s, int count, const int32_t *tiles, size_t field,
                    starpu_data_handle_t *out)
{
  for (int i = 0; i < count; i++)
    memcpy(&out[i], (const char *)&s->tile[tiles[i]] + field, sizeof out[i]);
}

/* The same of a tile's senders in stage k; of ranks whose atoms are a halo block, `source` is where
 * it is in their data. */
static void collect_from(const ts_step *s, int k, const ts_tile *tile, size_t field, size_t source,
                         starpu_data_handle_t *out)
{
  collect(s, tile->nlocal, tile->from, field, out);
  for (int i = tile->nlocal; i < tile->nfrom; i++)
    memcpy(&out[i], (const char *)&s->halo[k]->source[tile->from[i] - s->ntiles] + source,
           sizeof out[i]);
}

static size_t kv_of_source(int layer)
{
  return SOURCE(kv) + (size_t)layer * sizeof(starpu_data_handle_t);
}

/* Has a tile senders of other ranks? */
static bool on_boundary(const ts_step *s, int k, int t)
{
  return s->tiles[k]->tile[t].nlocal < s->tiles[k]->tile[t].nfrom;
}

/* Do other ranks need atoms of it? */
static bool sends(const ts_step *s, int k, int t)
{
  return s->halo[k] && s->halo[k]->sends[t];
}

static int transfer(const recording *c, starpu_data_handle_t handle, int rank, int64_t tag,
                    bool send)
{
  const ts_transfer t = {
      .handle = handle, .comm = c->s->params.transfers, .rank = rank, .tag = tag, .send = send};
  return ts_program_add_transfer(c->r.program, &t);
}

/* Without overlap everything waits here for what is under way. */
static int after_exchange(const recording *c, int k)
{
  if (c->s->params.overlap || !c->s->halo[k]) return 0;
  return ts_program_add_barrier(c->r.program);
}

/* Tasks that others wait for come first. */
enum { ORDINARY = 0, URGENT = 1 };

static int record_places(recording *c, int k)
{
  ts_step *s = c->s;
  const tsi_halo *h = s->halo[k];
  if (!h) return 0;
  c->r.priority = URGENT;
  for (int t = 0; t < h->plan.targets; t++) {
    const tsi_target *to = &h->target[t];
    collect(s, to->out.ntiles, to->out.tile, FIELD(x), c->list);
    TS_TRY(ts_submit_pack_places(&c->r, &to->out, (const double(*)[3])s->system->x, c->list,
                                 to->places));
    TS_TRY(transfer(c, to->places, to->rank, TAG_PLACES + k, true));
  }
  for (int i = 0; i < h->plan.sources; i++)
    TS_TRY(transfer(c, h->source[i].x, h->source[i].rank, TAG_PLACES + k, false));
  c->r.priority = ORDINARY;
  return 0;
}

static int record_geometry(recording *c)
{
  ts_step *s = c->s;
  for (int k = 0; k < s->model->desc.nstages; k++)
    TS_TRY(record_places(c, k));
  for (int k = 0; k < s->model->desc.nstages; k++) {
    double(*x)[3] = s->halo[k] ? s->halo[k]->x : s->system->x;
    TS_TRY(after_exchange(c, k));
    for (int t = 0; t < s->ntiles; t++) {
      tsi_tile_data *d = &s->tile[t];
      const ts_tile *tile = &s->tiles[k]->tile[t];
      collect_from(s, k, tile, FIELD(x), SOURCE(x), c->list);
      TS_TRY(ts_submit_geometry(&c->r, k, s->edges[k], tile, (const double(*)[3])x,
                                s->pair[k] + tile->first_edge, d->x, c->list, d->edges[k],
                                d->grad[k], &s->closest[k * s->ntiles + t]));
    }
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

/* Queries, keys and values; those that other ranks wait for first, and on their way at once. */
static int record_project(recording *c, int k, int layer, int l)
{
  ts_step *s = c->s;
  const tsi_halo *h = s->halo[k];
  for (int urgent = 1; urgent >= 0; urgent--) {
    c->r.priority = urgent ? URGENT : ORDINARY;
    for (int t = 0; t < s->ntiles; t++) {
      const tsi_tile_data *d = &s->tile[t];
      if (sends(s, k, t) != urgent) continue;
      TS_TRY(ts_submit_project(&c->r, k, layer, d->keep, input_of(s, d, k, layer, l), d->q[l],
                               d->kv[l], d->saved[l]));
    }
    for (int t = 0; h && urgent && t < h->plan.targets; t++) {
      const tsi_target *to = &h->target[t];
      collect(s, to->out.ntiles, to->out.tile, INDEXED(kv, l), c->list);
      TS_TRY(ts_submit_pack(&c->r, &to->out, c->list, to->block));
      TS_TRY(transfer(c, to->block, to->rank, TAG_KV + l, true));
    }
    for (int i = 0; h && urgent && i < h->plan.sources; i++)
      TS_TRY(transfer(c, h->source[i].kv[layer], h->source[i].rank, TAG_KV + l, false));
  }
  return after_exchange(c, k);
}

static int record_attend(recording *c, int k, int layer, int l, int t, ts_half half)
{
  ts_step *s = c->s;
  const tsi_tile_data *d = &s->tile[t];
  const ts_tile *tile = &s->tiles[k]->tile[t];
  collect_from(s, k, tile, INDEXED(kv, l), kv_of_source(layer), c->list);
  TS_TRY(ts_submit_attend(&c->r, k, layer, d->keep, half, tile, d->edges[k], d->q[l], c->list,
                          d->saved[l], d->sum));
  if (half == TS_HALF_LOCAL) return 0;
  return ts_submit_update(&c->r, k, layer, d->keep, input_of(s, d, k, layer, l), d->sum,
                          d->saved[l], d->h[l + 1]);
}

/* What needs nothing from other ranks, then what waits for them.  Sums of two halves depend on
 * which atoms are here, so reproducible ones are not split; nor are the forms that have no halves.
 */
static int record_layer(recording *c, int k, int layer, int l)
{
  ts_step *s = c->s;
  const bool halves = !s->params.reproducible && ts_layer_is_plain(&s->model->layer[k][layer]);
  TS_TRY(record_project(c, k, layer, l));
  for (int t = 0; t < s->ntiles; t++) {
    if (!on_boundary(s, k, t))
      TS_TRY(record_attend(c, k, layer, l, t, TS_HALF_BOTH));
    else if (halves)
      TS_TRY(record_attend(c, k, layer, l, t, TS_HALF_LOCAL));
  }
  for (int t = 0; t < s->ntiles; t++)
    if (on_boundary(s, k, t))
      TS_TRY(record_attend(c, k, layer, l, t, halves ? TS_HALF_REMOTE : TS_HALF_BOTH));
  return 0;
}

static int record_forward(recording *c)
{
  ts_step *s = c->s;
  for (int t = 0; t < s->ntiles; t++)
    TS_TRY(ts_submit_embed(&c->r, &s->tiles[0]->tile[t], s->tile[t].edges[0], s->tile[t].h[0]));
  for (int k = 0, l = 0; k < s->model->desc.nstages; k++) {
    if (k == 1 && s->model->head.merge == TS_MERGE_CLUSTER)
      for (int t = 0; t < s->ntiles; t++)
        TS_TRY(ts_submit_norm(&c->r, s->tile[t].h[l], s->tile[t].between));
    for (int layer = 0; layer < s->model->desc.stage[k].nlayers; layer++, l++)
      TS_TRY(record_layer(c, k, layer, l));
  }
  return 0;
}

/* Features that the short stage ends with. */
static int short_layers(const ts_step *s)
{
  return s->model->desc.stage[0].nlayers;
}

/* The gradient of a tile's features in stage k. */
static starpu_data_handle_t gradient_of(const ts_step *s, const tsi_tile_data *d, int k)
{
  return s->model->head.merge == TS_MERGE_CLUSTER && k == 0 ? d->dshort : d->dh;
}

static int record_attend_back(recording *c, int k, int layer, int l, int t)
{
  ts_step *s = c->s;
  const tsi_tile_data *d = &s->tile[t];
  const ts_tile *tile = &s->tiles[k]->tile[t];
  TS_TRY(
      ts_submit_update_back(&c->r, k, layer, d->keep, d->saved[l], gradient_of(s, d, k), d->sum));
  collect_from(s, k, tile, INDEXED(kv, l), kv_of_source(layer), c->list);
  return ts_submit_attend_back(&c->r, k, layer, d->keep, tile, d->edges[k], d->q[l], c->list,
                               d->saved[l], d->sum, d->dq, d->share, d->grad[k]);
}

/* Gradients of the keys and values of one block. */
static int record_send_back(recording *c, int k, int layer, int l, int block, int rows,
                            starpu_data_handle_t dkv)
{
  ts_step *s = c->s;
  const ts_tile *tile = &s->tiles[k]->tile[block];
  starpu_data_handle_t *q = c->list, *sum = q + tile->nto, *share = sum + tile->nto,
                       *edges = share + tile->nto;
  collect(s, tile->nto, tile->to, INDEXED(q, l), q);
  collect(s, tile->nto, tile->to, FIELD(sum), sum);
  collect(s, tile->nto, tile->to, FIELD(share), share);
  collect(s, tile->nto, tile->to, INDEXED(edges, k), edges);
  return ts_submit_send_back(&c->r, k, layer, s->params.reproducible, rows, tile, s->tiles[k]->tile,
                             q, sum, share, edges, dkv);
}

/* Gradients on their way home as early as can be: of the tiles with senders elsewhere first. */
static int record_returns(recording *c, int k, int layer, int l)
{
  ts_step *s = c->s;
  const tsi_halo *h = s->halo[k];
  if (!h) return 0;
  c->r.priority = URGENT;
  for (int t = 0; t < s->ntiles; t++)
    if (on_boundary(s, k, t)) TS_TRY(record_attend_back(c, k, layer, l, t));
  for (int i = 0; i < h->plan.sources; i++) {
    const tsi_source *from = &h->source[i];
    TS_TRY(record_send_back(c, k, layer, l, s->ntiles + i, from->n, from->dkv));
    TS_TRY(transfer(c, from->dkv, from->rank, tag_back(l), true));
  }
  for (int t = 0; t < h->plan.targets; t++)
    TS_TRY(transfer(c, h->target[t].dkv, h->target[t].rank, tag_back(l), false));
  c->r.priority = ORDINARY;
  return after_exchange(c, k);
}

/* What peers return to a tile. */
static const ts_inbound *inbound_of(const ts_step *s, int k, int t)
{
  static const ts_inbound nothing;
  return s->halo[k] ? &s->halo[k]->inbound[t] : &nothing;
}

/* dkv of a tile: own edges', and what came back. */
static int record_gradients(recording *c, int k, int layer, int l, int t)
{
  ts_step *s = c->s;
  const tsi_tile_data *d = &s->tile[t];
  const bool fixed = s->params.reproducible;
  const ts_inbound *in = inbound_of(s, k, t);
  TS_TRY(record_send_back(c, k, layer, l, t, s->shape.atoms, fixed ? d->fixed : d->dkv));
  for (int i = 0; i < in->npeers; i++)
    c->list[i] = s->halo[k]->target[in->peer[i]].dkv;
  if (fixed) return ts_submit_settle(&c->r, s->slice[t].n, in, d->fixed, c->list, d->dkv);
  return in->n > 0 ? ts_submit_add_returned(&c->r, in, c->list, d->dkv) : 0;
}

static int record_backward_layer(recording *c, int k, int layer, int l)
{
  ts_step *s = c->s;
  TS_TRY(record_returns(c, k, layer, l));
  for (int t = 0; t < s->ntiles; t++)
    if (!on_boundary(s, k, t)) TS_TRY(record_attend_back(c, k, layer, l, t));
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(record_gradients(c, k, layer, l, t));
    TS_TRY(ts_submit_project_back(&c->r, k, layer, d->keep, input_of(s, d, k, layer, l), d->dq,
                                  d->dkv, d->saved[l], gradient_of(s, d, k)));
  }
  return 0;
}

static int record_backward(recording *c)
{
  ts_step *s = c->s;
  const bool cluster = s->model->head.merge == TS_MERGE_CLUSTER;
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_head(&c->r, s->slice[t].n, s->reference + s->slice[t].first,
                          d->h[short_layers(s)], d->h[s->layers], d->energy,
                          cluster ? d->dshort : d->dh, d->dh));
  }
  for (int k = s->model->desc.nstages - 1, l = s->layers - 1; k >= 0; k--) {
    for (int layer = s->model->desc.stage[k].nlayers - 1; layer >= 0; layer--, l--)
      TS_TRY(record_backward_layer(c, k, layer, l));
    if (k == 1 && cluster)
      for (int t = 0; t < s->ntiles; t++)
        TS_TRY(ts_submit_norm_back(&c->r, s->tile[t].h[l + 1], s->tile[t].dh, s->tile[t].dshort));
  }
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_embed_back(&c->r, &s->tiles[0]->tile[t], d->edges[0], gradient_of(s, d, 0),
                                d->grad[0]));
  }
  return 0;
}

/* Where the forces of a tile go. */
static ts_force_sums force_sums(const ts_step *s, int t)
{
  const ts_lidx first = s->slice[t].first;
  return (ts_force_sums){.f = s->f + first,
                         .fixed = s->f_fixed ? s->f_fixed + first : NULL,
                         .virial = s->virial + first};
}

/* Pulls on edges, and the forces on atoms of other ranks on their way home. */
static int record_pulls(recording *c, int k)
{
  ts_step *s = c->s;
  const tsi_halo *h = s->halo[k];
  for (int urgent = 1; urgent >= 0; urgent--) {
    c->r.priority = urgent ? URGENT : ORDINARY;
    for (int t = 0; t < s->ntiles; t++) {
      const tsi_tile_data *d = &s->tile[t];
      if (on_boundary(s, k, t) == urgent)
        TS_TRY(ts_submit_edge_force(&c->r, &s->tiles[k]->tile[t], d->edges[k], d->grad[k],
                                    d->pull[k]));
    }
    for (int i = 0; h && urgent && i < h->plan.sources; i++) {
      const tsi_source *from = &h->source[i];
      const ts_tile *block = &s->tiles[k]->tile[s->ntiles + i];
      collect(s, block->nto, block->to, INDEXED(pull, k), c->list);
      TS_TRY(ts_submit_halo_force(&c->r, block, s->params.reproducible, c->list, from->feel));
      TS_TRY(transfer(c, from->feel, from->rank, TAG_FEEL + k, true));
    }
    for (int t = 0; h && urgent && t < h->plan.targets; t++)
      TS_TRY(transfer(c, h->target[t].feel, h->target[t].rank, TAG_FEEL + k, false));
  }
  return after_exchange(c, k);
}

static int record_returned_forces(recording *c, int k)
{
  ts_step *s = c->s;
  const bool last = k == s->model->desc.nstages - 1;
  for (int t = 0; t < s->ntiles; t++) {
    const ts_inbound *in = inbound_of(s, k, t);
    const ts_force_sums sums = force_sums(s, t);
    if (in->n == 0 && !(last && sums.fixed)) continue;
    for (int i = 0; i < in->npeers; i++)
      c->list[i] = s->halo[k]->target[in->peer[i]].feel;
    TS_TRY(ts_submit_return_force(&c->r, last ? s->slice[t].n : 0, in, &sums, c->list,
                                  s->tile[t].motion));
  }
  return 0;
}

static int record_forces(recording *c)
{
  ts_step *s = c->s;
  const int stages = s->model->desc.nstages;
  TS_TRY(record_geometry(c));
  TS_TRY(record_forward(c));
  TS_TRY(record_backward(c));
  for (int k = 0; k < stages; k++)
    TS_TRY(record_pulls(c, k));
  for (int k = 0; k < stages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      const tsi_tile_data *d = &s->tile[t];
      const ts_tile *tile = &s->tiles[k]->tile[t];
      const ts_force_sums sums = force_sums(s, t);
      collect(s, tile->nto, tile->to, INDEXED(pull, k), c->list);
      TS_TRY(
          ts_submit_force(&c->r, tile, k == 0, d->edges[k], d->pull[k], c->list, &sums, d->motion));
    }
  for (int k = 0; k < stages; k++)
    TS_TRY(record_returned_forces(c, k));
  for (int t = 0; t < s->ntiles; t++) {
    const tsi_tile_data *d = &s->tile[t];
    TS_TRY(ts_submit_kick(&c->r, &s->slice[t], d->x, d->energy, d->motion));
  }
  return 0;
}

/* Record both programs of the epoch. */
static int record(ts_step *s)
{
  int status;
  recording c = {.s = s, .r = {.model = s->model, .shape = &s->shape, .scratch = s->scratch}};
  TS_TRY_GOTO(status, TSI_NEW(c.list, 4 * s->partners), done);
  TS_TRY_GOTO(status, ts_program_create(&s->move), done);
  c.r.program = s->move;
  for (int t = 0; t < s->ntiles; t++)
    TS_TRY_GOTO(status, ts_submit_move(&c.r, &s->slice[t], s->tile[t].x, s->tile[t].motion), done);
  TS_TRY_GOTO(status, ts_program_create(&s->force), done);
  c.r.program = s->force;
  TS_TRY_GOTO(status, record_forces(&c), done);
  s->stats.records++;
  s->stats.tasks = ts_program_size(s->move) + ts_program_size(s->force);
  s->stats.sent_bytes = ts_program_sent_bytes(s->force);
  s->stats.sent_messages = ts_program_sent_messages(s->force);
done:
  free(c.list);
  return status;
}

/* Record where there is nothing to replay; no rank runs what another could not record. */
static int prepare(ts_step *s)
{
  if (!s->ready) return tsi_fail(TS_ERR_ARG, "an earlier rebuild has failed");
  if (!s->params.replay) { /* for comparison: pay for recording on every step */
    ts_program_destroy(&s->move);
    ts_program_destroy(&s->force);
  }
  if (s->force) return 0;
  return tsi_ranks_agree(&s->ranks, record(s));
}

static int run(ts_step *s, bool forces)
{
  TS_TRY(prepare(s));
  ts_program *program = forces ? s->force : s->move;
  for (int k = 0; k < s->model->desc.nstages && forces; k++)
    if (s->halo[k])
      memcpy(s->halo[k]->x, s->system->x, (size_t)s->system->n * sizeof *s->system->x);
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
      const tsi_halo *halo = s->halo[k];
      const ts_lidx i = s->edges[k]->receiver[c->edge], j = s->edges[k]->sender[c->edge];
      const double *xi = sys->x[i], *xj = halo ? halo->x[j] : sys->x[j];
      const ts_gidx other = j < sys->n ? sys->gid[j] : halo->gid[j - sys->n];
      return tsi_fail(TS_ERR_SIMULATION,
                      "step %lld: atoms %lld at (%.6f, %.6f, %.6f) and %lld at (%.6f, %.6f, %.6f) "
                      "overlap: %.3g Å apart, expected at least %g Å",
                      (long long)s->now.number, (long long)sys->gid[i] + 1, xi[0], xi[1], xi[2],
                      (long long)other + 1, xj[0], xj[1], xj[2], c->r, OVERLAP);
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

/* ---- what the ranks agree on */

/* Nobody goes on where one rank has failed; `largest` becomes that of all ranks. */
static int agree_largest(const ts_step *s, int status, double *largest)
{
  double x[2] = {status != 0, *largest};
  if (s->ranks.size == 1) return status;
  TS_TRY(ts_collective_allreduce(s->params.collective, TS_CTYPE_DOUBLE, TS_COP_MAX, x, x, 2));
  if (x[0] > 0) return tsi_ranks_agree(&s->ranks, status);
  *largest = x[1];
  return 0;
}

/* Sums over all ranks: the observables, and for each stage how many atoms its cap concerns. */
static int agree_sums(const ts_step *s, int status, ts_partial *total, int64_t *bounded)
{
  enum { FAILED = TS_PARTIAL_WORDS, BOUNDED, WORDS = BOUNDED + TS_MAX_STAGES };
  int64_t word[WORDS];
  if (s->ranks.size == 1) return status;
  ts_partial_pack(total, word);
  word[FAILED] = status != 0;
  memcpy(word + BOUNDED, bounded, TS_MAX_STAGES * sizeof *bounded);
  TS_TRY(
      ts_collective_allreduce(s->params.collective, TS_CTYPE_INT64, TS_COP_SUM, word, word, WORDS));
  if (word[FAILED]) return tsi_ranks_agree(&s->ranks, status);
  ts_partial_unpack(word, total);
  memcpy(bounded, word + BOUNDED, TS_MAX_STAGES * sizeof *bounded);
  return 0;
}

/* ---- the public calls */

static int begin(ts_step *s, ts_rebuild cause, const uint64_t *given)
{
  const double start = starpu_timing_now();
  s->stats.rebuilds[cause]++;
  TS_TRY(tsi_epoch_begin(s, cause == TS_REBUILD_START || cause == TS_REBUILD_PARTITION, given));
  s->stats.rebuild_seconds += (starpu_timing_now() - start) * 1e-6;
  return 0;
}

int ts_step_create(const ts_step_params *params, ts_system *system, ts_step **out)
{
  ts_step *s = NULL;
  *out = NULL;
  const ts_ranks alone = {.comm = MPI_COMM_NULL, .size = 1, .hosted = 1};
  const ts_ranks *ranks = params->ranks ? params->ranks : &alone;
  int status = check_elements(params->model, system);
  if (!status) status = TSI_NEW(s, 1);
  status = tsi_ranks_agree(ranks, status);
  if (!status) {
    s->ranks = *ranks;
    s->system = system;
    tsi_step_sizes(s, params, system->n);
    s->params.keys = NULL;
    status = begin(s, TS_REBUILD_START, params->keys);
  }
  if (status) ts_step_destroy(&s);
  *out = s;
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
static void log_bound(ts_step *s, const int64_t *bounded)
{
  for (int k = 0; k < s->model->desc.nstages && !s->bound_said; k++) {
    if (!bounded[k]) continue;
    tsi_step_log_bound(&s->model->desc.stage[k], bounded[k], s->system->natoms);
    s->bound_said = true;
  }
}

static int forces(ts_step *s, ts_partial *total)
{
  int64_t bounded[TS_MAX_STAGES] = {0};
  int status = run(s, true);
  ts_partial_clear(total);
  if (!status) {
    for (int t = 0; t < s->ntiles; t++)
      ts_partial_merge(total, &s->partial[t]);
    for (int k = 0; k < s->model->desc.nstages; k++)
      for (int t = 0; t < s->ntiles; t++)
        bounded[k] += s->closest[k * s->ntiles + t].bounded;
    status = check_overlap(s);
  }
  TS_TRY(agree_sums(s, status, total, bounded));
  log_bound(s, bounded);
  s->stats.evaluations++;
  return 0;
}

int ts_step_evaluate(ts_step *s, int64_t number, ts_partial *total)
{
  const ts_system *sys = s->system;
  ts_lidx atom;
  double moved = ts_displacement_max(sys->n, (const double(*)[3])sys->x,
                                     (const double(*)[3])s->x_build, &atom);
  int status = 0;
  s->now = (ts_step_now){.motion = NULL, .number = number};
  if (!isfinite(moved))
    status = tsi_fail(TS_ERR_SIMULATION,
                      "step %lld: atom %lld is at (%g, %g, %g) Å, expected finite positions",
                      (long long)number, (long long)sys->gid[atom] + 1, sys->x[atom][0],
                      sys->x[atom][1], sys->x[atom][2]);
  TS_TRY(agree_largest(s, status, &moved));
  if (!(moved <= s->params.skin / 2)) TS_TRY(begin(s, TS_REBUILD_DISPLACEMENT, NULL));
  return forces(s, total);
}

/* Why an epoch has to begin, the own and the largest squared displacement given; COUNT: it need
 * not. */
static ts_rebuild cause_of(const ts_step *s, double own, double largest)
{
  const double limit = s->params.skin * s->params.skin / 4;
  if (s->partition_age >= s->params.period) return TS_REBUILD_PARTITION;
  if (s->age >= s->params.rebuild) return TS_REBUILD_SCHEDULE;
  if (own > limit) return TS_REBUILD_DISPLACEMENT;
  return largest > limit ? TS_REBUILD_PASSIVE : TS_REBUILD_COUNT;
}

int ts_step_advance(ts_step *s, const ts_motion *motion, int64_t number, ts_partial *total)
{
  double own = 0;
  s->now = (ts_step_now){.motion = motion, .number = number};
  int status = run(s, false);
  if (!status) status = largest_move(s, &own);
  double largest = own;
  TS_TRY(agree_largest(s, status, &largest));
  s->age++;
  s->partition_age++;
  const ts_rebuild cause = cause_of(s, own, largest);
  if (cause != TS_REBUILD_COUNT) TS_TRY(begin(s, cause, NULL));
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

/* Ids and images of all senders of a stage. */
static int name_senders(const ts_step *s, int stage, ts_gidx *gid, int32_t (*image)[3])
{
  const ts_system *sys = s->system;
  const tsi_halo *halo = s->halo[stage];
  const void *own[] = {sys->image};
  void *others[] = {image + sys->n};
  memcpy(gid, sys->gid, (size_t)sys->n * sizeof *gid);
  memcpy(image, sys->image, (size_t)sys->n * sizeof *image);
  if (!halo) return 0;
  if (halo->n > 0) memcpy(gid + sys->n, halo->gid, (size_t)halo->n * sizeof *gid);
  return ts_plan_fetch(&s->ranks, &halo->plan, sizeof *image, own, others);
}

int ts_step_topology(const ts_step *s, int stage, uint64_t *hash, int64_t *active)
{
  const ts_edges *e = s->edges[stage];
  uint8_t *all = NULL;
  ts_gidx *gid = NULL;
  int32_t(*image)[3] = NULL;
  int64_t sums[2] = {0};
  int status = TSI_NEW(all, e->count);
  if (!status) status = TSI_NEW(gid, e->nsenders);
  if (!status) status = TSI_NEW(image, e->nsenders);
  status = tsi_ranks_agree(&s->ranks, status);
  if (!status) status = name_senders(s, stage, gid, image);
  for (int t = 0; t < s->ntiles && !status; t++) {
    const ts_tile *tile = &s->tiles[stage]->tile[t];
    if (tile->edges > 0)
      memcpy(all + tile->first_edge, s->active[stage * s->ntiles + t], (size_t)tile->edges);
  }
  if (!status) {
    sums[0] = (int64_t)ts_edges_hash(e, all, gid, (const int32_t(*)[3])image);
    for (int64_t i = 0; i < e->count; i++)
      sums[1] += all[i];
    status = ts_ranks_sum_i64(&s->ranks, 2, sums);
  }
  free(all);
  free(gid);
  free(image);
  *hash = (uint64_t)sums[0];
  *active = sums[1];
  return status;
}

const uint64_t *ts_step_keys(const ts_step *step)
{
  return step->key;
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
