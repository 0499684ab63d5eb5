/* SPDX-License-Identifier: MIT
 *
 * Parsing and printing descriptions.  The limits below are far beyond any published model; they
 * keep every product of widths within 32 bits.  Where a file carries the Clebsch-Gordan blocks
 * (`cg_first_order`) they are not used but compared with ours: a file made under another convention
 * is refused instead of giving wrong forces. */
#include "models/description.h"

#include "models/clebsch.h"
#include "runtime/error.h"
#include "runtime/json_write.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 16384, MAX_BASES = 8192, MAX_HEAD_WIDTH = 1024 };

static const double kcal_per_mol = 0.0433641153087705; /* [eV] */

/* An object being read and where it stands: `origin`, then `place` ("" or "stages[0]."). */
typedef struct scope {
  const ts_json_node *object;
  const char *origin;
  char place[32];
} scope;

static int refuse(const scope *s, const char *key, const ts_json_node *value, int status,
                  const char *expected, ...) __attribute__((format(printf, 5, 6)));

static int refuse(const scope *s, const char *key, const ts_json_node *value, int status,
                  const char *expected, ...)
{
  char text[256], shown[96];
  va_list args;
  va_start(args, expected);
  vsnprintf(text, sizeof text, expected, args);
  va_end(args);
  return tsi_fail(status, "%s: %s%s is %s; %s", s->origin, s->place, key,
                  ts_json_show(value, shown, sizeof shown), text);
}

/* ---- values by key --------------------------------------------------------------------------- */

static int find(const scope *s, const char *key, ts_json_kind kind, const ts_json_node **out)
{
  *out = ts_json_member(s->object, key);
  if (!*out) return tsi_fail(TS_ERR_INPUT, "%s: %s%s is missing", s->origin, s->place, key);
  if (ts_json_node_kind(*out) != kind)
    return refuse(s, key, *out, TS_ERR_INPUT, "expected %s", ts_json_kind_name(kind));
  return 0;
}

static int read_int(const scope *s, const char *key, int least, int most, int *out)
{
  const ts_json_node *node;
  int64_t value;
  TS_TRY(find(s, key, TS_JSON_NUMBER, &node));
  if (ts_json_int64(node, &value) || value < least || value > most)
    return refuse(s, key, node, TS_ERR_INPUT, "expected an integer from %d to %d", least, most);
  *out = (int)value;
  return 0;
}

static int read_number(const scope *s, const char *key, double least, double most, double *out)
{
  const ts_json_node *node;
  TS_TRY(find(s, key, TS_JSON_NUMBER, &node));
  *out = ts_json_number(node);
  if (*out < least || *out > most)
    return refuse(s, key, node, TS_ERR_INPUT, "expected a number from %g to %g", least, most);
  return 0;
}

/* One of `names` (NULL-terminated); its index, or `missing` where the key is absent or null and
 * `missing` is not negative. */
static int read_choice(const scope *s, const char *key, const char *const *names, int missing,
                       int *out)
{
  const ts_json_node *node = ts_json_member(s->object, key);
  *out = missing;
  if (missing >= 0 && (!node || ts_json_node_kind(node) == TS_JSON_NULL)) return 0;
  TS_TRY(find(s, key, TS_JSON_STRING, &node));
  for (*out = 0; names[*out]; ++*out)
    if (!strcmp(ts_json_string(node), names[*out])) return 0;
  char list[128] = "";
  for (int i = 0; names[i]; ++i)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"", i ? " or " : "",
             names[i]);
  return refuse(s, key, node, TS_ERR_INPUT, "expected %s", list);
}

static int check_keys(const scope *s, const char *const *known)
{
  for (int i = 0; i < ts_json_size(s->object); ++i) {
    const char *key = ts_json_key(ts_json_at(s->object, i));
    int k = 0;
    while (known[k] && strcmp(known[k], key))
      ++k;
    if (!known[k])
      return tsi_fail(TS_ERR_INPUT, "%s: %s%.64s is not a key of a model description", s->origin,
                      s->place, key);
  }
  return 0;
}

/* ---- stages ---------------------------------------------------------------------------------- */

static const char *const order_names[] = {"zero", "first", NULL};
static const char *const envelope_names[] = {"poly", "bell", NULL};
static const char *const merge_names[] = {"cluster", "chain", NULL};
static const char *const floor_names[] = {"max", "absolute", NULL};
static const char *const unit_names[] = {"eV", "kcal/mol", NULL};
static const char *const score_names[] = {"qk", "qkdot", "qkdots", NULL};
static const char *const weighting_names[] = {"softmax", "softplus", "sigmoid", NULL};
static const char *const head_names[] = {"mlp", "sphere", NULL};

static int read_orders(const scope *s, ts_stage_desc *stage)
{
  const ts_json_node *list;
  TS_TRY(find(s, "orders", TS_JSON_ARRAY, &list));
  stage->nlayers = ts_json_size(list);
  if (stage->nlayers < 1 || stage->nlayers > TS_MAX_LAYERS)
    return refuse(s, "orders", list, TS_ERR_INPUT, "expected 1 to %d layers", TS_MAX_LAYERS);
  for (int i = 0; i < stage->nlayers; ++i) {
    const ts_json_node *item = ts_json_at(list, i);
    const char *name = ts_json_node_kind(item) == TS_JSON_STRING ? ts_json_string(item) : "";
    if (strcmp(name, "zero") && strcmp(name, "first"))
      return refuse(s, "orders", item, TS_ERR_INPUT, "expected \"zero\" or \"first\"");
    stage->order[i] = strcmp(name, "zero") ? TS_ORDER_FIRST : TS_ORDER_ZERO;
  }
  return 0;
}

/* A list of atomic numbers; none where the key is absent. */
static int read_elements(const scope *s, const char *key, bool has[TS_MAX_ELEMENT])
{
  const ts_json_node *list;
  if (!ts_json_member(s->object, key)) return 0;
  TS_TRY(find(s, key, TS_JSON_ARRAY, &list));
  for (int i = 0; i < ts_json_size(list); ++i) {
    const ts_json_node *item = ts_json_at(list, i);
    int64_t z = -1;
    if (ts_json_node_kind(item) != TS_JSON_NUMBER || ts_json_int64(item, &z) || z < 0 ||
        z >= TS_MAX_ELEMENT)
      return refuse(s, key, item, TS_ERR_INPUT, "expected atomic numbers below %d (0 is padding)",
                    TS_MAX_ELEMENT);
    has[z] = true;
  }
  return 0;
}

/* Absent or null: no bound. */
static int read_most(const scope *s, ts_stage_desc *stage)
{
  const ts_json_node *node = ts_json_member(s->object, "max_neighbors");
  if (!node || ts_json_node_kind(node) == TS_JSON_NULL) return 0;
  return read_int(s, "max_neighbors", 1, TS_MAX_NEIGHBORS, &stage->max_neighbors);
}

static int read_stage(scope *s, ts_stage_desc *stage)
{
  static const char *const known[] = {"cutoff",          "lower",         "envelope", "orders",
                                      "exclude_senders", "max_neighbors", NULL};
  int envelope;
  if (ts_json_node_kind(s->object) != TS_JSON_OBJECT)
    return tsi_fail(TS_ERR_INPUT, "%s: %s expected an object", s->origin, s->place);
  TS_TRY(check_keys(s, known));
  TS_TRY(read_number(s, "cutoff", 0.1, 100.0, &stage->cutoff));
  TS_TRY(read_number(s, "lower", 0.0, 100.0, &stage->lower));
  if (stage->lower >= stage->cutoff)
    return refuse(s, "lower", ts_json_member(s->object, "lower"), TS_ERR_INPUT,
                  "expected less than the cutoff, %g", stage->cutoff);
  TS_TRY(read_choice(s, "envelope", envelope_names, -1, &envelope));
  stage->envelope = (ts_envelope)envelope;
  TS_TRY(read_orders(s, stage));
  TS_TRY(read_most(s, stage));
  return read_elements(s, "exclude_senders", stage->excluded);
}

static int read_stages(const scope *s, ts_model_desc *desc)
{
  const ts_json_node *list;
  int merge;
  TS_TRY(find(s, "stages", TS_JSON_ARRAY, &list));
  desc->nstages = ts_json_size(list);
  if (desc->nstages < 1 || desc->nstages > TS_MAX_STAGES)
    return refuse(s, "stages", list, TS_ERR_INPUT, "expected 1 or %d stages, not %d", TS_MAX_STAGES,
                  desc->nstages);
  for (int i = 0; i < desc->nstages; ++i) {
    scope inner = {.object = ts_json_at(list, i), .origin = s->origin};
    snprintf(inner.place, sizeof inner.place, "stages[%d].", i);
    TS_TRY(read_stage(&inner, &desc->stage[i]));
  }
  TS_TRY(read_choice(s, "merge", merge_names, 2, &merge));
  if (desc->nstages == 1 && merge != 2)
    return refuse(s, "merge", ts_json_member(s->object, "merge"), TS_ERR_INPUT,
                  "expected null, because there is one stage");
  if (desc->nstages == 2 && merge == 2)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: merge is missing or null; expected \"cluster\" or \"chain\""
                    " for two stages",
                    s->origin);
  desc->merge = merge == 2 ? TS_MERGE_NONE : merge ? TS_MERGE_CHAIN : TS_MERGE_CLUSTER;
  return 0;
}

/* ---- the Clebsch-Gordan blocks of a file ----------------------------------------------------- */

static bool is_list(const ts_json_node *node, int size)
{
  return ts_json_node_kind(node) == TS_JSON_ARRAY && ts_json_size(node) == size;
}

static bool same_block(const ts_json_node *list, int l1, int l3)
{
  double G[TS_CLEBSCH_MAX];
  const int na = 2 * l1 + 1, nc = 2 * l3 + 1;
  ts_clebsch_gordan(l1, l3, G);
  if (!is_list(list, na)) return false;
  for (int a = 0; a < na; ++a) {
    if (!is_list(ts_json_at(list, a), 3)) return false;
    for (int b = 0; b < 3; ++b) {
      const ts_json_node *row = ts_json_at(ts_json_at(list, a), b);
      if (!is_list(row, nc)) return false;
      for (int c = 0; c < nc; ++c) {
        const ts_json_node *item = ts_json_at(row, c);
        if (ts_json_node_kind(item) != TS_JSON_NUMBER ||
            fabs(ts_json_number(item) - G[(a * 3 + b) * nc + c]) > 1e-6)
          return false;
      }
    }
  }
  return true;
}

static bool is_degree(const ts_json_node *node, int degree)
{
  return ts_json_node_kind(node) == TS_JSON_NUMBER && ts_json_number(node) == degree;
}

static int check_blocks(const scope *s, const ts_model_desc *desc)
{
  const ts_json_node *list;
  if (!ts_json_member(s->object, "cg_first_order")) return 0;
  TS_TRY(find(s, "cg_first_order", TS_JSON_ARRAY, &list));
  bool same = ts_json_size(list) == desc->lmax + 1;
  for (int l3 = 0; same && l3 <= desc->lmax; ++l3) {
    int l1[TS_CLEBSCH_PATHS];
    const int npaths = ts_clebsch_paths(l3, desc->lmax, l1);
    const ts_json_node *item = ts_json_at(list, l3);
    same = is_list(item, 2) && is_degree(ts_json_at(item, 0), l3) &&
           is_list(ts_json_at(item, 1), npaths);
    for (int p = 0; same && p < npaths; ++p) {
      const ts_json_node *path = ts_json_at(ts_json_at(item, 1), p);
      same = is_list(path, 2) && is_degree(ts_json_at(path, 0), l1[p]) &&
             same_block(ts_json_at(path, 1), l1[p], l3);
    }
  }
  if (!same)
    return tsi_fail(TS_ERR_UNSUPPORTED,
                    "%s: cg_first_order differs from the Clebsch-Gordan blocks"
                    " of this program: the file follows another convention",
                    s->origin);
  return 0;
}

/* ---- the whole object ------------------------------------------------------------------------ */

static int read_energies(const scope *s, ts_model_desc *desc)
{
  const ts_json_node *map;
  int unit;
  TS_TRY(read_choice(s, "energy_unit", unit_names, 0, &unit));
  desc->energy_unit = unit ? kcal_per_mol : 1.0;
  if (!ts_json_member(s->object, "reference_energies")) return 0;
  TS_TRY(find(s, "reference_energies", TS_JSON_OBJECT, &map));
  for (int i = 0; i < ts_json_size(map); ++i) {
    const ts_json_node *item = ts_json_at(map, i);
    const char *key = ts_json_key(item);
    char *end;
    const long z = isdigit((unsigned char)*key) && *key != '0' ? strtol(key, &end, 10) : 0;
    if (z < 1 || z >= TS_MAX_ELEMENT || *end)
      return tsi_fail(TS_ERR_INPUT,
                      "%s: reference_energies: key \"%.64s\"; expected an atomic"
                      " number from 1 to %d",
                      s->origin, key, TS_MAX_ELEMENT - 1);
    if (ts_json_node_kind(item) != TS_JSON_NUMBER)
      return refuse(s, "reference_energies", item, TS_ERR_INPUT, "expected energies in eV");
    desc->reference_energy[z] = ts_json_number(item);
  }
  return 0;
}

static int read_widths(const scope *s, ts_model_desc *desc)
{
  TS_TRY(read_int(s, "channels", 1, MAX_WIDTH, &desc->channels));
  TS_TRY(read_int(s, "heads", 1, MAX_WIDTH, &desc->heads));
  TS_TRY(read_int(s, "head_dim", 1, MAX_HEAD_WIDTH, &desc->head_dim));
  TS_TRY(read_int(s, "head_channels", 1, MAX_HEAD_WIDTH, &desc->head_channels));
  TS_TRY(read_int(s, "bases", 4, MAX_BASES, &desc->bases));
  TS_TRY(read_int(s, "lmax", 0, 100, &desc->lmax));
  const ts_json_node *heads = ts_json_member(s->object, "heads");
  if (desc->lmax < 1 || desc->lmax > TS_LMAX)
    return refuse(s, "lmax", ts_json_member(s->object, "lmax"), TS_ERR_UNSUPPORTED,
                  "this version supports 1 to %d", TS_LMAX);
  if (desc->channels % desc->heads)
    return refuse(s, "heads", heads, TS_ERR_INPUT, "expected a divisor of channels, %d",
                  desc->channels);
  if (desc->heads * desc->head_dim % 2)
    return refuse(s, "heads", heads, TS_ERR_INPUT, "expected heads times head_dim to be even");
  return 0;
}

static int read_text(const scope *s, ts_model_desc *desc)
{
  const ts_json_node *node;
  TS_TRY(find(s, "head", TS_JSON_STRING, &node));
  const char *name = ts_json_string(node);
  const size_t length = strlen(name);
  if (!length || length >= sizeof desc->head ||
      strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != length)
    return refuse(s, "head", node, TS_ERR_INPUT, "expected 1 to %zu letters, digits, _ or -",
                  sizeof desc->head - 1);
  memcpy(desc->head, name, length + 1);
  if (!ts_json_member(s->object, "note")) return 0;
  TS_TRY(find(s, "note", TS_JSON_STRING, &node));
  if (strlen(ts_json_string(node)) >= sizeof desc->note)
    return refuse(s, "note", node, TS_ERR_INPUT, "expected at most %zu bytes",
                  sizeof desc->note - 1);
  memcpy(desc->note, ts_json_string(node), strlen(ts_json_string(node)) + 1);
  return 0;
}

static int read_model(const scope *s, ts_model_desc *desc)
{
  static const char *const known[] = {"channels",       "heads",
                                      "head_dim",       "head_channels",
                                      "lmax",           "bases",
                                      "average_degree", "head",
                                      "silu_scale",     "sigmoid_scale",
                                      "stages",         "merge",
                                      "cg_first_order", "softmax_floor",
                                      "score",          "weighting",
                                      "head_kind",      "reference_energies",
                                      "energy_unit",    "note",
                                      "elements",       NULL};
  int floor, score, weighting, head;
  TS_TRY(check_keys(s, known));
  TS_TRY(read_widths(s, desc));
  TS_TRY(read_number(s, "average_degree", 1e-3, 1e6, &desc->average_degree));
  TS_TRY(read_number(s, "silu_scale", -1e3, 1e3, &desc->silu_scale));
  TS_TRY(read_number(s, "sigmoid_scale", -1e3, 1e3, &desc->sigmoid_scale));
  TS_TRY(read_text(s, desc));
  TS_TRY(read_stages(s, desc));
  TS_TRY(read_choice(s, "softmax_floor", floor_names, 0, &floor));
  desc->floor = floor ? TS_FLOOR_ABSOLUTE : TS_FLOOR_MAX;
  TS_TRY(read_choice(s, "score", score_names, TS_SCORE_QK, &score));
  TS_TRY(read_choice(s, "weighting", weighting_names, TS_WEIGHTING_SOFTMAX, &weighting));
  TS_TRY(read_choice(s, "head_kind", head_names, TS_HEAD_MLP, &head));
  desc->score = (ts_score)score;
  desc->weighting = (ts_weighting)weighting;
  desc->head_kind = (ts_head_kind)head;
  TS_TRY(read_energies(s, desc));
  desc->lists_elements = ts_json_member(s->object, "elements") != NULL;
  TS_TRY(read_elements(s, "elements", desc->element));
  return check_blocks(s, desc);
}

int ts_model_desc_parse(const ts_json_node *object, const char *origin, ts_model_desc *out)
{
  const scope s = {.object = object, .origin = origin};
  ts_model_desc desc = {0};
  if (ts_json_node_kind(object) != TS_JSON_OBJECT)
    return tsi_fail(TS_ERR_INPUT, "%s: expected a JSON object", origin);
  TS_TRY(read_model(&s, &desc));
  *out = desc;
  return 0;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void put_elements(ts_json_writer *json, const char *key, const bool has[TS_MAX_ELEMENT])
{
  ts_json_open_array(json, key);
  for (int z = 0; z < TS_MAX_ELEMENT; ++z)
    if (has[z]) ts_json_put_int(json, NULL, z);
  ts_json_close(json);
}

static void put_stage(ts_json_writer *json, const ts_stage_desc *stage)
{
  ts_json_open_object(json, NULL);
  ts_json_put_number(json, "cutoff", stage->cutoff);
  ts_json_put_number(json, "lower", stage->lower);
  ts_json_put_string(json, "envelope", envelope_names[stage->envelope]);
  ts_json_open_array(json, "orders");
  for (int i = 0; i < stage->nlayers; ++i)
    ts_json_put_string(json, NULL, order_names[stage->order[i]]);
  ts_json_close(json);
  put_elements(json, "exclude_senders", stage->excluded);
  if (stage->max_neighbors) ts_json_put_int(json, "max_neighbors", stage->max_neighbors);
  ts_json_close(json);
}

static void put_energies(ts_json_writer *json, const ts_model_desc *desc)
{
  ts_json_open_object(json, "reference_energies");
  for (int z = 1; z < TS_MAX_ELEMENT; ++z) {
    char key[16];
    snprintf(key, sizeof key, "%d", z);
    if (desc->reference_energy[z] != 0.0) ts_json_put_number(json, key, desc->reference_energy[z]);
  }
  ts_json_close(json);
  ts_json_put_string(json, "energy_unit", unit_names[desc->energy_unit != 1.0]);
}

static void put_model(ts_json_writer *json, const ts_model_desc *desc)
{
  ts_json_put_int(json, "channels", desc->channels);
  ts_json_put_int(json, "heads", desc->heads);
  ts_json_put_int(json, "head_dim", desc->head_dim);
  ts_json_put_int(json, "head_channels", desc->head_channels);
  ts_json_put_int(json, "lmax", desc->lmax);
  ts_json_put_int(json, "bases", desc->bases);
  ts_json_put_number(json, "average_degree", desc->average_degree);
  ts_json_put_string(json, "head", desc->head);
  ts_json_put_number(json, "silu_scale", desc->silu_scale);
  ts_json_put_number(json, "sigmoid_scale", desc->sigmoid_scale);
  ts_json_open_array(json, "stages");
  for (int i = 0; i < desc->nstages; ++i)
    put_stage(json, &desc->stage[i]);
  ts_json_close(json);
  if (desc->merge != TS_MERGE_NONE)
    ts_json_put_string(json, "merge", merge_names[desc->merge == TS_MERGE_CHAIN]);
  ts_json_put_string(json, "softmax_floor", floor_names[desc->floor]);
  if (desc->score) ts_json_put_string(json, "score", score_names[desc->score]);
  if (desc->weighting) ts_json_put_string(json, "weighting", weighting_names[desc->weighting]);
  if (desc->head_kind) ts_json_put_string(json, "head_kind", head_names[desc->head_kind]);
  if (desc->lists_elements) put_elements(json, "elements", desc->element);
  put_energies(json, desc);
  ts_json_put_string(json, "note", desc->note);
}

int ts_model_desc_format(const ts_model_desc *desc, char **out)
{
  ts_json_writer *json;
  *out = NULL;
  TS_TRY(ts_json_writer_create(&json));
  put_model(json, desc);
  const char *text = ts_json_writer_text(json);
  if (text) *out = strdup(text);
  ts_json_writer_destroy(&json);
  return *out ? 0 : tsi_fail(TS_ERR_MEMORY, "no memory for a model description");
}
