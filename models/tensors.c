/* SPDX-License-Identifier: MIT
 *
 * The list of tensors, written as the model is built: one function per part, each adding its own
 * under the part's prefix. */
#include "models/tensors.h"

#include "models/clebsch.h"
#include "runtime/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  ATTENTION_ELEMENTS = 256, /* rows of an attention layer's element tables */
  ATTENTION_WIDTH = 128,    /* and their width */
  EMBEDDING_ELEMENTS = 300, /* rows of the embedding's element tables; their width is K */
  CHARGE_ROWS = 30          /* rows of the charge and multiplicity tables */
};

/* A list that grows; the first failure is kept. */
typedef struct list {
  const ts_model_desc *desc;
  ts_tensor_spec *spec;
  int count, room, status;
  bool optional; /* of what is added now */
} list;

typedef char name[TS_TENSOR_NAME];

/* The longest name has about 100 characters; the head's is bounded by its description. */
static void print_name(name out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print_name(name out, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(out, sizeof(name), format, args);
  va_end(args);
  assert(length >= 0 && length < TS_TENSOR_NAME);
  (void)length;
}

static void join(name out, const char *prefix, const char *rest)
{
  print_name(out, "%s.%s", prefix, rest);
}

static ts_tensor_spec *next(list *l)
{
  if (l->count == l->room && !l->status) {
    const int room = l->room ? 2 * l->room : 256;
    ts_tensor_spec *spec = realloc(l->spec, (size_t)room * sizeof *spec);
    if (!spec) {
      l->status = tsi_fail(TS_ERR_MEMORY, "no memory for a list of %d tensors", room);
      return NULL;
    }
    l->spec = spec;
    l->room = room;
  }
  return l->status ? NULL : &l->spec[l->count++];
}

/* Dimensions of 0 end the shape. */
static void add(list *l, const char *prefix, const char *rest, int d0, int d1, int d2)
{
  ts_tensor_spec *spec = next(l);
  if (!spec) return;
  const int dim[3] = {d0, d1, d2};
  *spec = (ts_tensor_spec){.dim = {1, 1, 1, 1}, .optional = l->optional};
  join(spec->name, prefix, rest);
  while (spec->rank < 3 && dim[spec->rank]) {
    spec->dim[spec->rank] = dim[spec->rank];
    ++spec->rank;
  }
}

static void add_linear(list *l, const char *prefix, int out, int in)
{
  add(l, prefix, "weight", out, in, 0);
  add(l, prefix, "bias", out, 0, 0);
}

static void add_layer_norm(list *l, const char *prefix, int width)
{
  add(l, prefix, "weight", width, 0, 0);
  add(l, prefix, "bias", width, 0, 0);
}

static void add_so3_linear(list *l, const char *prefix, int in, int out)
{
  add(l, prefix, "weight", l->desc->lmax + 1, out, in);
  add(l, prefix, "bias", out, 0, 0);
}

static void add_norm(list *l, const char *prefix)
{
  add(l, prefix, "affine_weight", l->desc->lmax + 1, l->desc->channels, 0);
  add(l, prefix, "affine_bias", l->desc->channels, 0, 0);
}

/* Three linear layers with a layer norm after the first two. */
static void add_radial(list *l, const char *prefix, int in, int out)
{
  const int middle = l->desc->bases / 2 < 128 ? l->desc->bases / 2 : 128;
  const int width[4] = {in, middle, middle, out};
  for (int i = 0; i < 3; ++i) {
    name part;
    print_name(part, "%s.net.%d", prefix, 3 * i);
    add_linear(l, part, width[i + 1], width[i]);
    print_name(part, "%s.net.%d", prefix, 3 * i + 1);
    if (i < 2) add_layer_norm(l, part, middle);
  }
}

static void add_element_tables(list *l, const char *prefix, int rows, int width)
{
  add(l, prefix, "source_embedding.weight", rows, width, 0);
  add(l, prefix, "target_embedding.weight", rows, width, 0);
}

/* Query and key: invariants of degree-wise products, then a small network. */
static void add_scalars(list *l, const char *prefix)
{
  const int degrees = l->desc->lmax + 1, channels = l->desc->channels;
  const int width = l->desc->heads * l->desc->head_dim, half = width / 2;
  name part;
  add(l, prefix, "weight", degrees, half, channels);
  add(l, prefix, "weight2", degrees, half, channels);
  add(l, prefix, "bias", 1, 1, half);
  join(part, prefix, "final_linear.0");
  add_linear(l, part, half, half * degrees);
  join(part, prefix, "final_linear.1");
  add_layer_norm(l, part, half);
  join(part, prefix, "final_linear.3");
  add_linear(l, part, width, half);
}

static void add_first_order(list *l, const char *prefix)
{
  const ts_model_desc *desc = l->desc;
  const int wide = desc->heads * desc->head_channels;
  name part;
  for (int l3 = 0; l3 <= desc->lmax; ++l3) {
    int l1[TS_CLEBSCH_PATHS];
    const int npaths = ts_clebsch_paths(l3, desc->lmax, l1);
    print_name(part, "%s.first_order_tp.so2_tp.out_linear.%d", prefix, l3);
    add(l, part, "weight", wide, npaths * desc->channels, 0);
  }
  join(part, prefix, "proj_first");
  add_so3_linear(l, part, wide, desc->channels);
}

/* The gate of the scores that see the receiver's features along the edge. */
static void add_directed(list *l, const char *prefix)
{
  const ts_model_desc *desc = l->desc;
  const int heads = desc->heads, degrees = desc->lmax + 1, wide = desc->bases * degrees;
  name part;
  if (desc->score == TS_SCORE_QK) return;
  join(part, prefix, "dot_linear");
  if (desc->score == TS_SCORE_QKDOT) {
    add_so3_linear(l, part, desc->channels, desc->bases);
    join(part, prefix, "rad_func_m0");
    add_radial(l, part, desc->bases + 2 * ATTENTION_WIDTH, wide);
    join(part, prefix, "fc_m0");
    add_linear(l, part, heads, wide);
    return;
  }
  add_so3_linear(l, part, desc->channels, heads / degrees + 1);
  join(part, prefix, "direction_linear.0");
  add_linear(l, part, heads, heads);
  join(part, prefix, "direction_linear.1");
  add_layer_norm(l, part, heads);
  join(part, prefix, "direction_linear.3");
  add_linear(l, part, heads, heads);
}

static void add_attention(list *l, const char *prefix, ts_order order)
{
  const ts_model_desc *desc = l->desc;
  name part;
  add_element_tables(l, prefix, ATTENTION_ELEMENTS, ATTENTION_WIDTH);
  join(part, prefix, "fc_easy");
  add_radial(l, part, desc->bases + 2 * ATTENTION_WIDTH,
             desc->score == TS_SCORE_QKDOT ? desc->heads : 2 * desc->heads);
  add_directed(l, prefix);
  join(part, prefix, "query_linear");
  add_scalars(l, part);
  join(part, prefix, "key_linear");
  add_scalars(l, part);
  join(part, prefix, "proj_value");
  add_so3_linear(l, part, desc->channels, desc->channels);
  if (order == TS_ORDER_FIRST) {
    add_first_order(l, prefix);
  } else {
    join(part, prefix, "proj_zero");
    add_so3_linear(l, part, desc->channels, desc->channels);
  }
}

static void add_feed_forward(list *l, const char *prefix)
{
  const int channels = l->desc->channels;
  name part;
  join(part, prefix, "slinear_1");
  add_so3_linear(l, part, channels, channels);
  join(part, prefix, "gate.gates");
  add_linear(l, part, channels * (l->desc->lmax + 1), channels);
  join(part, prefix, "slinear_2");
  add_so3_linear(l, part, channels, channels);
}

static void add_stage(list *l, const char *blocks, const ts_stage_desc *stage)
{
  for (int i = 0; i < stage->nlayers; ++i) {
    name prefix, part;
    print_name(prefix, "decoder.decoder.%s.%d", blocks, i);
    join(part, prefix, "norm_1");
    add_norm(l, part);
    join(part, prefix, "ga");
    add_attention(l, part, stage->order[i]);
    join(part, prefix, "norm_ffn");
    add_norm(l, part);
    join(part, prefix, "ffn");
    add_feed_forward(l, part);
  }
}

static void add_charge(list *l, bool required)
{
  const int channels = l->desc->channels;
  l->optional = !required;
  add(l, "decoder", "embedding_charge.weight", CHARGE_ROWS, channels, 0);
  add(l, "decoder", "embedding_multiplicity.weight", CHARGE_ROWS, channels, 0);
  add_linear(l, "decoder.mix_cm.0", channels, 2 * channels);
  l->optional = false;
}

static void add_embedding(list *l)
{
  static const char prefix[] = "decoder.decoder.edge_deg_embed_dense";
  add_element_tables(l, prefix, EMBEDDING_ELEMENTS, l->desc->bases);
  for (int degree = 0; degree <= l->desc->lmax; ++degree) {
    name part;
    print_name(part, "%s.gbf_projs.%d", prefix, degree);
    add_radial(l, part, 3 * l->desc->bases, l->desc->channels);
  }
}

/* The sphere head's network acts on the features in fixed directions, which the file carries. */
static void add_sphere_head(list *l)
{
  const int channels = l->desc->channels, rows = (l->desc->lmax + 1) * (l->desc->lmax + 1);
  name prefix, part;
  print_name(prefix, "head.energy_heads.%s", l->desc->head);
  add(l, prefix, "sphharm_weights", TS_SPHERE_POINTS, rows, 0);
  join(part, prefix, "fc1");
  add_linear(l, part, channels, channels);
  join(part, prefix, "fc2");
  add_linear(l, part, channels, channels);
  add(l, prefix, "fc3.weight", 1, channels, 0);
}

static void add_head(list *l)
{
  const int channels = l->desc->channels;
  if (l->desc->head_kind == TS_HEAD_SPHERE) {
    add_sphere_head(l);
    return;
  }
  static const char *const layer[] = {"mlp.0", "mlp.2", "mlp.4"};
  for (int i = 0; i < 3; ++i) {
    name part;
    print_name(part, "head.energy_heads.%s.%s", l->desc->head, layer[i]);
    add_linear(l, part, i < 2 ? channels : 1, channels);
  }
}

int ts_model_tensors(const ts_model_desc *desc, bool with_charge, ts_tensor_spec **out, int *count)
{
  list l = {.desc = desc};
  add_charge(&l, with_charge);
  add_embedding(&l);
  add_stage(&l, "blocks", &desc->stage[0]);
  l.optional = desc->merge == TS_MERGE_CLUSTER; /* the join replaces it */
  add_norm(&l, "decoder.decoder.norm_final");
  l.optional = false;
  if (desc->nstages > 1) add_stage(&l, "long_blocks", &desc->stage[1]);
  if (desc->merge == TS_MERGE_CLUSTER) {
    add_norm(&l, "decoder.decoder.pre_norm_node");
    add_norm(&l, "decoder.decoder.norm_cluster");
    add_so3_linear(&l, "decoder.decoder.final_linear", 2 * desc->channels, desc->channels);
  }
  add_head(&l);
  if (l.status) free(l.spec);
  *out = l.status ? NULL : l.spec;
  *count = l.status ? 0 : l.count;
  return l.status;
}

/* ---- checking a file ------------------------------------------------------------------------- */

static const char *show_shape(int rank, const int64_t *dim, char out[96])
{
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < rank && used < 80; ++i)
    used += (size_t)snprintf(out + used, 96 - used, "%s%lld", i ? ", " : "", (long long)dim[i]);
  return out;
}

static int check_one(const ts_weights *w, const ts_tensor_spec *spec, const char *origin)
{
  ts_tensor_view view;
  char has[96], needs[96];
  if (!ts_weights_find(w, spec->name, &view)) {
    if (spec->optional) return 0;
    return tsi_fail(TS_ERR_INPUT, "%s: tensor \"%s\" is missing; expected shape [%s]", origin,
                    spec->name, show_shape(spec->rank, spec->dim, needs));
  }
  if (view.rank == spec->rank && !memcmp(view.dim, spec->dim, sizeof view.dim)) return 0;
  return tsi_fail(TS_ERR_INPUT, "%s: tensor \"%s\" has shape [%s]; its description says [%s]",
                  origin, spec->name, show_shape(view.rank, view.dim, has),
                  show_shape(spec->rank, spec->dim, needs));
}

static int compare_specs(const void *left, const void *right)
{
  return strcmp(((const ts_tensor_spec *)left)->name, ((const ts_tensor_spec *)right)->name);
}

/* Both sides in order of name: whatever is not in the list is extra. */
static int check_extra(const ts_weights *w, ts_tensor_spec *spec, int count, const char *origin)
{
  qsort(spec, (size_t)count, sizeof *spec, compare_specs);
  for (int i = 0, k = 0; i < ts_weights_count(w); ++i) {
    const char *tensor = ts_weights_at(w, i).name;
    while (k < count && strcmp(spec[k].name, tensor) < 0)
      ++k;
    if (k == count || strcmp(spec[k].name, tensor))
      return tsi_fail(TS_ERR_INPUT, "%s: tensor \"%s\" is not part of the described model", origin,
                      tensor);
  }
  return 0;
}

int ts_weights_check(const ts_weights *w, const ts_model_desc *desc, bool with_charge,
                     const char *origin)
{
  ts_tensor_spec *spec;
  int count;
  TS_TRY(ts_model_tensors(desc, with_charge, &spec, &count));
  int status = 0;
  for (int i = 0; i < count && !status; ++i)
    status = check_one(w, &spec[i], origin);
  if (!status) status = check_extra(w, spec, count, origin);
  free(spec);
  return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* water.safetensors -> water.json */
static int path_beside(const char *path, char **out)
{
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
  *out = malloc(stem + sizeof ".json");
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for a path", path);
  memcpy(*out, path, stem);
  memcpy(*out + stem, ".json", sizeof ".json");
  return 0;
}

static int describe_from_file(const char *path, ts_model_desc *desc)
{
  char *beside;
  ts_json *doc = NULL;
  TS_TRY(path_beside(path, &beside));
  int status;
  if (access(beside, F_OK))
    status = tsi_fail(TS_ERR_INPUT,
                      "%s: no model description: neither metadata \"tessera\" nor a"
                      " file %s",
                      path, beside);
  else
    status = ts_json_read(beside, &doc);
  if (!status) status = ts_model_desc_parse(ts_json_root(doc), beside, desc);
  ts_json_destroy(&doc);
  free(beside);
  return status;
}

static int describe(const char *path, const ts_weights *w, ts_model_desc *desc)
{
  const char *text = ts_weights_metadata(w, "tessera");
  if (!text) return describe_from_file(path, desc);
  char origin[512];
  ts_json *doc = NULL;
  snprintf(origin, sizeof origin, "%s: metadata tessera", path);
  int status = ts_json_parse(text, strlen(text), origin, &doc);
  if (!status) status = ts_model_desc_parse(ts_json_root(doc), origin, desc);
  ts_json_destroy(&doc);
  return status;
}

int ts_model_load(const char *path, bool with_charge, ts_model_desc *desc, ts_weights **out)
{
  TS_TRY(ts_weights_read(path, out));
  int status = describe(path, *out, desc);
  if (!status) status = ts_weights_check(*out, desc, with_charge, path);
  if (status) ts_weights_destroy(out);
  return status;
}
