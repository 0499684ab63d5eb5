/* SPDX-License-Identifier: MIT
 *
 * The tree: json_scan checks the grammar, cJSON builds and unescapes, and this file flattens the
 * result into one array in which the children of a node are neighbours.  So the i-th element costs
 * nothing (cJSON walks a list), a member costs a bisection over the sorted keys that the check for
 * duplicates needs anyway, and numbers are read once more from their own digits, because cJSON
 * keeps only a double.  Cost: about 100 bytes for each value of the text. */
#include "runtime/json.h"

#include "runtime/error.h"
#include "runtime/json_scan.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ts_json_node {
  ts_json_kind kind;
  int line;
  const char *key;    /* borrowed from cJSON; NULL for the root and for elements */
  const char *string; /* borrowed from cJSON */
  double number;
  int64_t integer;
  bool boolean, exact;         /* exact: `integer` is the number */
  int size;                    /* children */
  ts_json_node *child;         /* [size] in the order of the text */
  const ts_json_node **sorted; /* [size] members by key; NULL in an array */
};

struct ts_json {
  cJSON *tree;
  ts_json_node *node;          /* [nvalue]; the first is the root */
  const ts_json_node **sorted; /* [nvalue]; objects own disjoint parts */
};

/* Where flattening stands in the text and in the arrays. */
typedef struct builder {
  const tsi_json_scan *scan;
  ts_json *doc;
  size_t used, sorted; /* nodes and sorted entries handed out */
  size_t mark;         /* next mark */
  size_t counted;      /* bytes whose line ends are in `line` */
  int line;
} builder;

enum { FILE_LIMIT = 256 << 20 };

/* ---- numbers --------------------------------------------------------------------------------- */

/* The digits of a number: value = 0.d0 d1 d2 ... * 10^point, ndigit >= 1. */
typedef struct decimal {
  bool negative;
  int ndigit;
  char digit[TSI_JSON_DIGITS + 1];
  long point;
} decimal;

static void decimal_read(const char *token, decimal *out)
{
  *out = (decimal){.negative = *token == '-'};
  bool whole = true;
  const char *c = token + out->negative;
  for (; *c && *c != 'e' && *c != 'E'; ++c) {
    if (*c == '.') {
      whole = false;
      continue;
    }
    out->digit[out->ndigit++] = *c;
    out->point += whole;
  }
  if (*c) {
    long exponent = strtol(c + 1, NULL, 10); /* saturates */
    if (exponent > 100000) exponent = 100000;
    if (exponent < -100000) exponent = -100000;
    out->point += exponent;
  }
}

static bool decimal_is_zero(const decimal *d)
{
  for (int i = 0; i < d->ndigit; ++i)
    if (d->digit[i] != '0') return false;
  return true;
}

/* True and *out set when the decimal is an integer that fits.  Built as a negative number, because
 * there is one more of those. */
static bool decimal_int64(const decimal *d, int64_t *out)
{
  int64_t value = 0;
  for (long i = 0; i < d->point || i < d->ndigit; ++i) {
    const int digit = i < d->ndigit ? d->digit[i] - '0' : 0;
    if (i >= d->point && digit) return false;
    if (i >= d->point) continue;
    if (i >= d->ndigit && !value) break; /* 0e99999 */
    if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
        __builtin_sub_overflow(value, (int64_t)digit, &value))
      return false;
  }
  if (d->point < 0 && !decimal_is_zero(d)) return false;
  if (!d->negative && value == INT64_MIN) return false;
  *out = d->negative ? value : -value;
  return true;
}

static int read_number(const builder *b, size_t offset, ts_json_node *node)
{
  char token[TSI_JSON_DIGITS + 1];
  size_t length = 0;
  while (length < TSI_JSON_DIGITS && offset + length < b->scan->length &&
         strchr("+-.eE0123456789", b->scan->text[offset + length]))
    ++length;
  memcpy(token, b->scan->text + offset, length);
  token[length] = '\0';

  decimal d;
  decimal_read(token, &d);
  node->number = strtod(token, NULL);
  node->exact = decimal_int64(&d, &node->integer);
  if (!isfinite(node->number) || (node->number == 0.0 && !decimal_is_zero(&d)))
    return tsi_json_fail(b->scan, offset, "%s is outside the range of double precision", token);
  return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static size_t take_mark(builder *b, int *line)
{
  const size_t offset = b->scan->mark[b->mark++];
  for (; b->counted < offset; ++b->counted)
    b->line += b->scan->text[b->counted] == '\n';
  *line = b->line;
  return offset;
}

static int compare_keys(const void *left, const void *right)
{
  const ts_json_node *a = *(const ts_json_node *const *)left;
  const ts_json_node *b = *(const ts_json_node *const *)right;
  const int order = strcmp(a->key, b->key);
  return order ? order : (a > b) - (a < b);
}

/* Sort the members of an object and refuse a key that comes twice. */
static int sort_members(builder *b, ts_json_node *object, const size_t *key_offset)
{
  for (int i = 0; i < object->size; ++i)
    object->sorted[i] = &object->child[i];
  qsort(object->sorted, (size_t)object->size, sizeof(*object->sorted), compare_keys);
  for (int i = 1; i < object->size; ++i) {
    const ts_json_node *first = object->sorted[i - 1], *second = object->sorted[i];
    if (!strcmp(first->key, second->key))
      return tsi_json_fail(b->scan, key_offset[second - object->child],
                           "duplicate key \"%.80s\" (first on line %d)", first->key, first->line);
  }
  return 0;
}

static int build(builder *b, const cJSON *item, ts_json_node *node);

static int build_children(builder *b, const cJSON *parent, ts_json_node *node)
{
  size_t size = 0;
  for (const cJSON *c = parent->child; c; c = c->next)
    ++size;
  if (!size) return 0;
  const bool object = node->kind == TS_JSON_OBJECT;
  node->size = (int)size;
  node->child = b->doc->node + b->used;
  b->used += size;
  size_t *key_offset = NULL;
  if (object) {
    node->sorted = b->doc->sorted + b->sorted;
    b->sorted += size;
    key_offset = malloc(size * sizeof *key_offset);
    if (!key_offset) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its JSON", b->scan->origin);
  }
  int status = 0, i = 0;
  for (const cJSON *c = parent->child; c && !status; c = c->next, ++i) {
    if (object) {
      node->child[i].key = c->string;
      key_offset[i] = take_mark(b, &node->child[i].line);
    }
    status = build(b, c, &node->child[i]);
  }
  if (!status && object) status = sort_members(b, node, key_offset);
  free(key_offset);
  return status;
}

static int build(builder *b, const cJSON *item, ts_json_node *node)
{
  int line;
  const size_t offset = take_mark(b, &line);
  if (!node->key) node->line = line;
  switch (item->type & 0xFF) {
    case cJSON_False:
    case cJSON_True:
      node->kind = TS_JSON_BOOL;
      node->boolean = cJSON_IsTrue(item);
      return 0;
    case cJSON_Number:
      node->kind = TS_JSON_NUMBER;
      return read_number(b, offset, node);
    case cJSON_String:
      node->kind = TS_JSON_STRING;
      node->string = item->valuestring;
      return 0;
    case cJSON_Array:
      node->kind = TS_JSON_ARRAY;
      return build_children(b, item, node);
    case cJSON_Object:
      node->kind = TS_JSON_OBJECT;
      return build_children(b, item, node);
    default:
      node->kind = TS_JSON_NULL;
      return 0;
  }
}

/* The document of a text that json_scan has accepted; numbers are read in the C locale. */
static int flatten(const tsi_json_scan *scan, ts_json *doc)
{
  doc->tree = cJSON_ParseWithLengthOpts(scan->text, scan->length, NULL, 0);
  doc->node = calloc(scan->nvalue, sizeof *doc->node);
  doc->sorted = calloc(scan->nvalue, sizeof *doc->sorted);
  if (!doc->tree || !doc->node || !doc->sorted)
    return tsi_fail(TS_ERR_MEMORY, "%s: no memory for %zu JSON values", scan->origin, scan->nvalue);
  builder b = {.scan = scan, .doc = doc, .used = 1, .line = 1};
  return build(&b, doc->tree, doc->node);
}

int ts_json_parse(const char *text, size_t length, const char *origin, ts_json **out)
{
  *out = NULL;
  if (length > FILE_LIMIT)
    return tsi_fail(TS_ERR_INPUT, "%s: %zu bytes of JSON; at most %d are read", origin, length,
                    FILE_LIMIT);
  int status;
  ts_json *doc = NULL;
  locale_t before = (locale_t)0, plain = (locale_t)0;
  tsi_json_scan scan;
  TS_TRY_GOTO(status, tsi_json_scan_text(text, length, origin, &scan), fail);
  doc = calloc(1, sizeof *doc);
  plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!doc || !plain) {
    status = tsi_fail(TS_ERR_MEMORY, "%s: no memory for its JSON", origin);
    goto fail;
  }
  before = uselocale(plain);
  status = flatten(&scan, doc);
  uselocale(before);
fail:
  if (plain) freelocale(plain);
  tsi_json_scan_free(&scan);
  if (status) ts_json_destroy(&doc);
  *out = doc;
  return status;
}

/* The bytes of a stream of unknown length; owned by the caller, also after a failure. */
static int read_all(FILE *file, const char *path, char **text, size_t *length)
{
  size_t room = 0;
  for (*text = NULL, *length = 0;;) {
    if (*length == room) {
      room = room ? 2 * room : 4096;
      char *more = realloc(*text, room);
      if (!more) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for %zu bytes", path, room);
      *text = more;
    }
    const size_t got = fread(*text + *length, 1, room - *length, file);
    *length += got;
    if (ferror(file)) return tsi_fail(TS_ERR_INPUT, "%s: cannot read: %s", path, strerror(errno));
    if (!got) return 0;
    if (*length > FILE_LIMIT)
      return tsi_fail(TS_ERR_INPUT, "%s: larger than %d bytes of JSON", path, FILE_LIMIT);
  }
}

int ts_json_read(const char *path, ts_json **out)
{
  *out = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return tsi_fail(TS_ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
  char *text = NULL;
  size_t length = 0;
  int status = read_all(file, path, &text, &length);
  fclose(file);
  if (!status) status = ts_json_parse(text, length, path, out);
  free(text);
  return status;
}

void ts_json_destroy(ts_json **doc)
{
  if (!*doc) return;
  cJSON_Delete((*doc)->tree);
  free((*doc)->node);
  free((*doc)->sorted);
  free(*doc);
  *doc = NULL;
}

/* ---- access ---------------------------------------------------------------------------------- */

const ts_json_node *ts_json_root(const ts_json *doc)
{
  return doc->node;
}

ts_json_kind ts_json_node_kind(const ts_json_node *node)
{
  return node->kind;
}

const char *ts_json_kind_name(ts_json_kind kind)
{
  static const char *const name[] = {
      [TS_JSON_NULL] = "null",       [TS_JSON_BOOL] = "true or false",
      [TS_JSON_NUMBER] = "a number", [TS_JSON_STRING] = "a string",
      [TS_JSON_ARRAY] = "an array",  [TS_JSON_OBJECT] = "an object",
  };
  return name[kind];
}

int ts_json_size(const ts_json_node *node)
{
  return node->size;
}

const ts_json_node *ts_json_at(const ts_json_node *node, int index)
{
  return index >= 0 && index < node->size ? &node->child[index] : NULL;
}

const char *ts_json_key(const ts_json_node *node)
{
  return node->key;
}

const ts_json_node *ts_json_member(const ts_json_node *object, const char *key)
{
  int low = 0, high = object->sorted ? object->size : 0;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int order = strcmp(key, object->sorted[middle]->key);
    if (!order) return object->sorted[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

bool ts_json_bool(const ts_json_node *node)
{
  return node->boolean;
}

double ts_json_number(const ts_json_node *node)
{
  return node->number;
}

const char *ts_json_string(const ts_json_node *node)
{
  return node->string;
}

int ts_json_int64(const ts_json_node *node, int64_t *out)
{
  if (!node->exact) return TS_ERR_INPUT;
  *out = node->integer;
  return 0;
}

int ts_json_line(const ts_json_node *node)
{
  return node->line;
}

/* Digits with a point, whatever the locale. */
static void show_number(const ts_json_node *node, char *out, size_t size)
{
  if (node->exact)
    snprintf(out, size, "%lld", (long long)node->integer);
  else
    snprintf(out, size, "%.15g", node->number);
  for (char *c = out; *c; ++c)
    if (*c == ',') *c = '.';
}

const char *ts_json_show(const ts_json_node *node, char *out, size_t size)
{
  if (node->kind == TS_JSON_NUMBER)
    show_number(node, out, size);
  else if (node->kind == TS_JSON_STRING)
    snprintf(out, size, "\"%.60s\"%s", node->string, strlen(node->string) > 60 ? "..." : "");
  else if (node->kind == TS_JSON_BOOL)
    snprintf(out, size, "%s", node->boolean ? "true" : "false");
  else
    snprintf(out, size, "%s", ts_json_kind_name(node->kind));
  return out;
}
