/* SPDX-License-Identifier: MIT
 *
 * Packing: from named tensors in double to what the kernels read.  Linear maps are stored [out,in]
 * in files and [in,out] here; the four maps of queries and keys become one matrix; constant factors
 * (1/sqrt(d) of the score, 1/sqrt(paths) of the first-order product) are folded into weights. */
#include "models/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/clebsch.h"
#include "models/radial_net.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* What packing needs at hand.  The first failure sticks, so that the packing below reads as a list
 * of names. */
typedef struct packer {
  ts_model *model;
  const ts_weights *weights;
  int status;
} packer;

static const double *tensor(packer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const double *tensor(packer *p, const char *format, ...)
{
  char name[TS_TENSOR_NAME];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  const double *data = ts_weights_data(p->weights, name);
  if (!data && !p->status) p->status = tsi_fail(TS_ERR_INPUT, "tensor \"%s\" is missing", name);
  return data;
}

/* A real array owned by the model: count numbers, or zeros where data is NULL. */
static void *reals(packer *p, size_t count, const double *data)
{
  ts_model *m = p->model;
  if (p->status) return NULL;
  void **pool = realloc(m->pool, (size_t)(m->npool + 1) * sizeof *pool);
  if (!pool) {
    p->status = tsi_fail(TS_ERR_MEMORY, "no memory for the model's weights");
    return NULL;
  }
  m->pool = pool;
  void *array = NULL;
  p->status = tsi_alloc(count, m->real_size, &array);
  m->pool[m->npool++] = array;
  m->bytes += count * m->real_size;
  for (size_t i = 0; array && data && i < count; i++) {
    if (m->is_double)
      ((double *)array)[i] = data[i];
    else
      ((float *)array)[i] = (float)data[i];
  }
  return array;
}

/* A matrix from w [out,in] (rows `stride` apart): transposed and scaled. */
static void matrix(packer *p, int in, int out, const double *w, int stride, double scale,
                   ts_matrix *m)
{
  double *t = NULL;
  if (p->status) return;
  p->status = TSI_NEW(t, in * out);
  if (p->status) return;
  for (int o = 0; o < out; o++)
    for (int i = 0; i < in; i++)
      t[i * out + o] = scale * w[(size_t)o * (size_t)stride + (size_t)i];
  p->status = ts_matrix_create(p->model->matrix, p->model->is_double, in, out, t, m);
  p->model->bytes += m->bytes;
  free(t);
}

/* One matrix per degree from w [L+1,out,in]; bias [out]. */
static void so3(packer *p, int in, int out, const double *w, const double *bias, ts_so3 *map)
{
  if (p->status) return;
  for (int l = 0; l <= p->model->desc.lmax; l++)
    matrix(p, in, out, w + (size_t)l * (size_t)in * (size_t)out, in, 1.0, &map->degree[l]);
  map->bias = reals(p, (size_t)out, bias);
}

static void so3_named(packer *p, int in, int out, const char *name, ts_so3 *map)
{
  so3(p, in, out, tensor(p, "%s.weight", name), tensor(p, "%s.bias", name), map);
}

static void norm(packer *p, const char *name, ts_norm *n)
{
  const ts_model_desc *d = &p->model->desc;
  n->weight = reals(p, (size_t)((d->lmax + 1) * d->channels), tensor(p, "%s.affine_weight", name));
  n->bias = reals(p, (size_t)d->channels, tensor(p, "%s.affine_bias", name));
}

/* The four maps of query and key side by side: rows query.weight, query.weight2, key.weight,
 * key.weight2 of each degree; only the first of each pair has a bias. */
static void pair_maps(packer *p, const char *ga, ts_so3 *map)
{
  const ts_model_desc *d = &p->model->desc;
  const size_t F = (size_t)(d->heads * d->head_dim / 2), C = (size_t)d->channels;
  static const char *const name[4] = {"query_linear.weight", "query_linear.weight2",
                                      "key_linear.weight", "key_linear.weight2"};
  double *w = NULL, *bias = NULL;
  if (!p->status) p->status = TSI_NEW(w, (size_t)(d->lmax + 1) * 4 * F * C);
  if (!p->status) p->status = TSI_NEW(bias, 4 * F);
  for (int k = 0; k < 4 && !p->status; k++) {
    const double *from = tensor(p, "%s.%s", ga, name[k]);
    for (size_t l = 0; from && l <= (size_t)d->lmax; l++)
      memcpy(w + (l * 4 + (size_t)k) * F * C, from + l * F * C, F * C * sizeof *w);
  }
  for (int k = 0; k < 2 && !p->status; k++) {
    const double *from = tensor(p, "%s.%s.bias", ga, k ? "key_linear" : "query_linear");
    if (from) memcpy(bias + (size_t)(2 * k) * F, from, F * sizeof *bias);
  }
  so3(p, (int)C, (int)(4 * F), w, bias, map);
  free(w);
  free(bias);
}

/* The small network behind an invariant; its last layer's outputs go from [H,d] to [d,H]. */
static void invariant(packer *p, const char *name, double scale, ts_invariant *map)
{
  const ts_model_desc *d = &p->model->desc;
  const int H = d->heads, D = d->head_dim, F = H * D / 2, in = F * (d->lmax + 1);
  const double *w = tensor(p, "%s.final_linear.0.weight", name);
  matrix(p, in, F, w, in, 1.0, &map->first);
  map->first_bias = reals(p, (size_t)F, tensor(p, "%s.final_linear.0.bias", name));
  map->norm_weight = reals(p, (size_t)F, tensor(p, "%s.final_linear.1.weight", name));
  map->norm_bias = reals(p, (size_t)F, tensor(p, "%s.final_linear.1.bias", name));
  const double *last = tensor(p, "%s.final_linear.3.weight", name);
  const double *bias = tensor(p, "%s.final_linear.3.bias", name);
  double *t = NULL, *b = NULL;
  if (!p->status) p->status = TSI_NEW(t, H * D * F);
  if (!p->status) p->status = TSI_NEW(b, H * D);
  for (int h = 0; h < H && !p->status; h++)
    for (int x = 0; x < D; x++) {
      b[x * H + h] = scale * bias[h * D + x];
      memcpy(t + (size_t)(x * H + h) * (size_t)F, last + (size_t)(h * D + x) * (size_t)F,
             (size_t)F * sizeof *t);
    }
  matrix(p, F, H * D, t, F, scale, &map->last);
  map->last_bias = reals(p, (size_t)(H * D), b);
  free(t);
  free(b);
}

static void output_map(packer *p, const char *ga, ts_layer *layer)
{
  const ts_model_desc *d = &p->model->desc;
  const int C = d->channels, W = d->heads * d->head_channels;
  char name[TS_TENSOR_NAME];
  snprintf(name, sizeof name, "%s.%s", ga,
           layer->order == TS_ORDER_ZERO ? "proj_zero" : "proj_first");
  so3_named(p, layer->order == TS_ORDER_ZERO ? C : W, C, name, &layer->out);
  if (layer->order == TS_ORDER_ZERO) return;
  for (int l = 0; l <= d->lmax; l++) {
    int degree[TS_CLEBSCH_PATHS];
    const int count = ts_clebsch_paths(l, d->lmax, degree);
    const double *w = tensor(p, "%s.first_order_tp.so2_tp.out_linear.%d.weight", ga, l);
    matrix(p, count * C, W, w, count * C, 1 / sqrt(count), &layer->path[l]);
  }
}

/* Width of the features that a score sees along the edge. */
static int directed_width(const ts_model_desc *d)
{
  return d->score == TS_SCORE_QKDOT    ? d->bases
         : d->score == TS_SCORE_QKDOTS ? d->heads / (d->lmax + 1) + 1
                                       : 0;
}

/* What the gate of such a score needs. */
static void direction_maps(packer *p, const char *ga, ts_layer *l)
{
  const ts_model_desc *d = &p->model->desc;
  const int H = d->heads, M = directed_width(d) * (d->lmax + 1);
  char name[TS_TENSOR_NAME];
  if (d->score == TS_SCORE_QK) return;
  snprintf(name, sizeof name, "%s.dot_linear", ga);
  so3_named(p, d->channels, directed_width(d), name, &l->directed);
  ts_invariant *map = &l->gate_map;
  if (d->score == TS_SCORE_QKDOT) {
    matrix(p, M, H, tensor(p, "%s.fc_m0.weight", ga), M, 1.0, &map->first);
    map->first_bias = reals(p, (size_t)H, tensor(p, "%s.fc_m0.bias", ga));
    return;
  }
  snprintf(name, sizeof name, "%s.direction_linear", ga);
  matrix(p, H, H, tensor(p, "%s.0.weight", name), H, 1.0, &map->first);
  map->first_bias = reals(p, (size_t)H, tensor(p, "%s.0.bias", name));
  map->norm_weight = reals(p, (size_t)H, tensor(p, "%s.1.weight", name));
  map->norm_bias = reals(p, (size_t)H, tensor(p, "%s.1.bias", name));
  matrix(p, H, H, tensor(p, "%s.3.weight", name), H, 1.0, &map->last);
  map->last_bias = reals(p, (size_t)H, tensor(p, "%s.3.bias", name));
}

static void layer(packer *p, const char *block, ts_layer *l)
{
  const ts_model_desc *d = &p->model->desc;
  const int C = d->channels, gates = (d->lmax + 1) * C;
  char ga[TS_TENSOR_NAME - 64], name[TS_TENSOR_NAME];
  snprintf(ga, sizeof ga, "%s.ga", block);
  l->floor = d->floor;
  l->score = d->score;
  l->weighting = d->weighting;
  l->silu_scale = d->silu_scale;
  l->sigmoid_scale = d->sigmoid_scale;
#define NAMED(format, ...) (snprintf(name, sizeof name, format, __VA_ARGS__), name)
  norm(p, NAMED("%s.norm_1", block), &l->norm_1);
  norm(p, NAMED("%s.norm_ffn", block), &l->norm_ffn);
  pair_maps(p, ga, &l->pairs);
  invariant(p, NAMED("%s.query_linear", ga), 1 / sqrt(d->head_dim), &l->map[0]);
  invariant(p, NAMED("%s.key_linear", ga), 1.0, &l->map[1]);
  so3_named(p, C, C, NAMED("%s.proj_value", ga), &l->value);
  direction_maps(p, ga, l);
  output_map(p, ga, l);
  so3_named(p, C, C, NAMED("%s.ffn.slinear_1", block), &l->ffn_1);
  so3_named(p, C, C, NAMED("%s.ffn.slinear_2", block), &l->ffn_2);
  matrix(p, C, gates, tensor(p, "%s.ffn.gate.gates.weight", block), C, 1.0, &l->gate);
  l->gate_bias = reals(p, (size_t)gates, tensor(p, "%s.ffn.gate.gates.bias", block));
#undef NAMED
}

static void head(packer *p)
{
  ts_model *m = p->model;
  const ts_model_desc *d = &m->desc;
  const int C = d->channels;
  ts_head *h = &m->head;
  h->merge = d->merge;
  h->energy_scale = d->energy_unit;
  if (d->merge == TS_MERGE_CLUSTER) {
    norm(p, "decoder.decoder.pre_norm_node", &m->pre_norm);
    norm(p, "decoder.decoder.norm_cluster", &h->norm);
    const double *w = tensor(p, "decoder.decoder.final_linear.weight");
    for (int l = 0; w && l <= (d->head_kind == TS_HEAD_SPHERE ? d->lmax : 0); l++)
      for (int k = 0; k < 2; k++)
        matrix(p, C, C, w + (2 * l * C + k) * C, 2 * C, 1.0, &h->join[k].degree[l]);
    h->join[0].bias = reals(p, (size_t)C, tensor(p, "decoder.decoder.final_linear.bias"));
  } else {
    norm(p, "decoder.decoder.norm_final", &h->norm);
  }
  h->kind = d->head_kind;
  const bool sphere = h->kind == TS_HEAD_SPHERE;
  static const char *const linear[2][3] = {{"mlp.0", "mlp.2", "mlp.4"}, {"fc1", "fc2", "fc3"}};
  for (int k = 0; k < 2; k++) {
    char name[TS_TENSOR_NAME];
    snprintf(name, sizeof name, "head.energy_heads.%s.%s", d->head, linear[sphere][k]);
    matrix(p, C, C, tensor(p, "%s.weight", name), C, 1.0, &h->mlp[k]);
    h->mlp_bias[k] = reals(p, (size_t)C, tensor(p, "%s.bias", name));
  }
  h->last =
      reals(p, (size_t)C, tensor(p, "head.energy_heads.%s.%s.weight", d->head, linear[sphere][2]));
  if (sphere) {
    h->directions = reals(p, (size_t)(TS_SPHERE_POINTS * (d->lmax + 1) * (d->lmax + 1)),
                          tensor(p, "head.energy_heads.%s.sphharm_weights", d->head));
    return;
  }
  const double *bias = tensor(p, "head.energy_heads.%s.mlp.4.bias", d->head);
  if (bias) h->last_bias = bias[0];
}

/* Charge and multiplicity of the whole system as one vector [C]: SiLU(W [charge | spin] + b). */
static const void *system_vector(packer *p, int charge, int multiplicity)
{
  const int C = p->model->desc.channels;
  const double *q = tensor(p, "decoder.embedding_charge.weight");
  const double *s = tensor(p, "decoder.embedding_multiplicity.weight");
  const double *w = tensor(p, "decoder.mix_cm.0.weight");
  const double *b = tensor(p, "decoder.mix_cm.0.bias");
  double *v = NULL;
  if (!p->status) p->status = TSI_NEW(v, C);
  for (int o = 0; o < C && !p->status; o++) {
    double sum = b[o];
    for (int c = 0; c < C; c++)
      sum += w[o * 2 * C + c] * q[(charge + 10) * C + c] +
             w[o * 2 * C + C + c] * s[multiplicity * C + c];
    v[o] = sum / (1 + exp(-sum));
  }
  void *out = reals(p, (size_t)C, v);
  free(v);
  return out;
}

/* What remains of a radial network behind its split first layer. */
static void radial_rest(packer *p, const tsi_radial_net *net, const tsi_radial_mlp *mlp,
                        ts_radial_rest *out)
{
  const int m = net->middle;
  for (int k = 0; k < 2; k++) {
    out->scale[k] = reals(p, (size_t)m, mlp->scale[k]);
    out->shift[k] = reals(p, (size_t)m, mlp->shift[k]);
  }
  matrix(p, m, m, mlp->weight[1], m, 1.0, &out->second);
  matrix(p, m, mlp->out, mlp->weight[2], m, 1.0, &out->third);
  out->second_bias = reals(p, (size_t)m, mlp->bias[1]);
  out->third_bias = reals(p, (size_t)mlp->out, mlp->bias[2]);
}

static void radial_split(packer *p, int stage, int layer_, const int *species, ts_radial *f)
{
  tsi_radial_net net;
  double *part[2] = {NULL, NULL};
  if (!p->status) p->status = tsi_radial_net_init(&p->model->desc, p->weights, stage, layer_, &net);
  if (p->status) return;
  const size_t count = (size_t)f->species * (size_t)(net.nmlp * net.middle);
  for (int k = 0; k < 2 && !p->status; k++) {
    p->status = TSI_NEW(part[k], count);
    if (!p->status) tsi_radial_net_elements(&net, k == 0, f->species, species, part[k]);
  }
  f->receiver = reals(p, count, part[0]);
  f->sender = reals(p, count, part[1]);
  for (int k = 0; k < net.nmlp; k++)
    radial_rest(p, &net, &net.mlp[k], &f->rest[k]);
  free(part[0]);
  free(part[1]);
}

/* The functions behind one table, whose coefficients are released: both copies of all would be
 * twice the memory. */
static void radial_function(packer *p, const ts_radial_set *set, int stage, int layer_,
                            ts_radial_table *t, ts_radial *f)
{
  ts_model *m = p->model;
  const int nodes = set->stage[stage].nodes;
  *f = (ts_radial){.width = t->width,
                   .split = set->split,
                   .species = set->nspecies,
                   .nodes = nodes,
                   .nets = t->nets,
                   .middle = t->middle};
  const size_t rows = (size_t)nodes * (set->split ? 1 : (size_t)(set->nspecies * set->nspecies));
  const size_t width = (size_t)(set->split ? t->nets * t->middle : t->width);
  f->table = reals(p, rows * width, t->coef);
  free(t->coef);
  t->coef = NULL;
  if (set->split) radial_split(p, stage, layer_, set->species, f);
  m->radial_error = fmax(m->radial_error, t->error);
  m->radial_slope_error = fmax(m->radial_slope_error, t->slope_error);
}

static void radial(packer *p, const ts_model_params *params)
{
  ts_model *m = p->model;
  ts_radial_set *set = NULL;
  const double tolerance = params->radial_tolerance > 0 ? params->radial_tolerance
                           : m->is_double               ? 1e-12
                                                        : 1e-7;
  if (p->status) return;
  m->radial_most = params->radial_most ? params->radial_most : TS_RADIAL_MOST;
  p->status = ts_radial_build(&m->desc, p->weights, m->nspecies, params->species, tolerance,
                              m->radial_most, &set);
  const size_t before = m->bytes;
  for (int s = 0; s < m->desc.nstages && !p->status; s++) {
    ts_radial_stage *stage = &set->stage[s];
    const ts_stage_desc *d = &m->desc.stage[s];
    m->edge[s] = (ts_edge_params){.cutoff = d->cutoff,
                                  .lower = d->lower,
                                  .step = stage->step,
                                  .nodes = stage->nodes,
                                  .envelope = d->envelope,
                                  .most = d->max_neighbors};
    if (s == 0) radial_function(p, set, s, -1, &stage->embed, &m->embed);
    for (int l = 0; l < d->nlayers; l++)
      radial_function(p, set, s, l, &stage->layer[l], &m->layer[s][l].radial);
  }
  m->radial_bytes = m->bytes - before;
  ts_radial_destroy(&set);
}

int ts_model_create(const ts_model_desc *desc, const ts_weights *weights,
                    const ts_model_params *params, ts_model **out)
{
  *out = NULL;
  ts_model *m = NULL;
  TS_TRY(TSI_NEW(m, 1));
  packer p = {.model = m, .weights = weights};
  m->desc = *desc;
  m->is_double = params->is_double;
  m->real_size = m->is_double ? sizeof(double) : sizeof(float);
  m->nspecies = params->nspecies;
  for (int z = 0; z < TS_MAX_ELEMENT; z++)
    m->species_index[z] = -1;
  for (int i = 0; i < m->nspecies; i++)
    m->species_index[params->species[i]] = i;
  m->kernels = ts_kernels_find(m->is_double, params->isa);
  if (!m->kernels)
    p.status = tsi_fail(TS_ERR_UNSUPPORTED,
                        "kernels for \"%s\" cannot run on this CPU; expected auto or a lower level",
                        params->isa);
  if (!p.status)
    p.status = ts_matrix_ops_find(params->matrix, m->is_double, m->kernels->packed, &m->matrix);
  const void *system = NULL;
  if (!p.status && params->has_charge)
    system = system_vector(&p, params->charge, params->multiplicity);
  for (int s = 0; s < desc->nstages; s++)
    for (int l = 0; l < desc->stage[s].nlayers; l++) {
      char block[48];
      snprintf(block, sizeof block, "decoder.decoder.%s.%d", s ? "long_blocks" : "blocks", l);
      m->layer[s][l].order = desc->stage[s].order[l];
      m->layer[s][l].system = system;
      layer(&p, block, &m->layer[s][l]);
    }
  head(&p);
  radial(&p, params);
  if (p.status)
    ts_model_destroy(&m);
  else
    *out = m;
  return p.status;
}

static void so3_release(ts_so3 *map)
{
  for (int l = 0; l <= TS_LMAX; l++)
    ts_matrix_release(&map->degree[l]);
}

static void radial_release(ts_radial *f)
{
  for (int k = 0; k <= TS_LMAX; k++) {
    ts_matrix_release(&f->rest[k].second);
    ts_matrix_release(&f->rest[k].third);
  }
}

void ts_model_destroy(ts_model **model)
{
  ts_model *m = *model;
  if (!m) return;
  for (int s = 0; s < TS_MAX_STAGES; s++)
    for (int l = 0; l < TS_MAX_LAYERS; l++) {
      ts_layer *w = &m->layer[s][l];
      radial_release(&w->radial);
      so3_release(&w->pairs);
      so3_release(&w->value);
      so3_release(&w->directed);
      ts_matrix_release(&w->gate_map.first);
      ts_matrix_release(&w->gate_map.last);
      so3_release(&w->out);
      so3_release(&w->ffn_1);
      so3_release(&w->ffn_2);
      ts_matrix_release(&w->gate);
      for (int k = 0; k < 2; k++) {
        ts_matrix_release(&w->map[k].first);
        ts_matrix_release(&w->map[k].last);
      }
      for (int k = 0; k <= TS_LMAX; k++)
        ts_matrix_release(&w->path[k]);
    }
  radial_release(&m->embed);
  for (int k = 0; k < 2; k++) {
    so3_release(&m->head.join[k]);
    ts_matrix_release(&m->head.mlp[k]);
  }
  for (int i = 0; i < m->npool; i++)
    free(m->pool[i]);
  free(m->pool);
  free(m);
  *model = NULL;
}

ts_shape ts_model_shape(const ts_model *model, int atoms)
{
  const ts_model_desc *d = &model->desc;
  return (ts_shape){.atoms = atoms,
                    .channels = d->channels,
                    .heads = d->heads,
                    .head_dim = d->head_dim,
                    .lmax = d->lmax,
                    .rows = (d->lmax + 1) * (d->lmax + 1),
                    .hidden = d->heads * d->head_dim / 2,
                    .wide = d->heads * d->head_channels,
                    .directed = directed_width(d),
                    .radial = model->embed.split ? model->embed.middle : 0};
}

int ts_model_layers(const ts_model *model)
{
  int count = 0;
  for (int s = 0; s < model->desc.nstages; s++)
    count += model->desc.stage[s].nlayers;
  return count;
}

size_t ts_query_bytes(const ts_model *model, const ts_shape *s)
{
  return (size_t)(s->heads * s->head_dim + s->rows * s->directed) * (size_t)s->atoms *
         model->real_size;
}

size_t ts_saved_layout(const ts_model *model, const ts_shape *s, bool keep_pairs, void *base,
                       ts_saved *out)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, R = (size_t)s->rows;
  const size_t F = (size_t)s->hidden;
  const size_t count[] = {2 * A * F, 2 * A * (size_t)s->heads,      R * A * C,
                          R * A * C, A * (size_t)(s->lmax + 1) * C, keep_pairs ? R * A * 4 * F : 0};
  ts_saved at = {0};
  void **part[] = {&at.hidden, &at.stats, &at.middle, &at.ffn, &at.gates, &at.pairs};
  size_t bytes = 0;
  for (int i = 0; i < 6; i++) {
    *part[i] = base && count[i] ? (char *)base + bytes : NULL;
    bytes += ts_arena_round(count[i] * model->real_size);
  }
  if (out) *out = at;
  return bytes;
}

double ts_model_dense_work(const ts_model *model, int stage, int layer_)
{
  const ts_shape s = ts_model_shape(model, 1);
  const double C = s.channels, R = s.rows, F = s.hidden, L1 = s.lmax + 1, W = s.wide;
  const double Hd = (double)s.heads * s.head_dim;
  double work = R * C * 4 * F + 2 * (L1 * F * F + F * Hd); /* queries and keys */
  work += R * C * C + R * C * s.directed;                  /* values */
  work += 2 * R * C * C + C * L1 * C;                      /* feed-forward */
  if (model->layer[stage][layer_].order == TS_ORDER_ZERO) return work + R * C * C;
  for (int l = 0; l <= s.lmax; l++)
    work += (2 * l + 1) * (double)model->layer[stage][layer_].path[l].in * W;
  return work + R * W * C;
}
