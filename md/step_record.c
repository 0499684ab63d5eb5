/* SPDX-License-Identifier: MIT
 *
 * The order of a step.  `record_forces` is the physics: forward through the layers, backward in
 * reverse, forces, the second kick.  Tasks of different tiles overlap as far as their data allow.
 */
#include <stdlib.h>
#include <string.h>

#include "md/step_impl.h"
#include "runtime/error.h"

/* Tags of what is under way between two ranks; layers count over all stages. */
enum { TAG_PLACES = 0, TAG_FEEL = TS_MAX_STAGES, TAG_KV = 2 * TS_MAX_STAGES };

static int tag_back(int layer)
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

static int transfer(const recording *c, starpu_data_handle_t handle, int rank, int tag, bool send)
{
  const ts_transfer t = {.handle = handle, .rank = rank, .tag = tag, .send = send};
  return ts_program_add_transfer(c->r.program, c->s->params.transfers, &t);
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

int tsi_step_record(ts_step *s)
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
