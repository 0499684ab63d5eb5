/* SPDX-License-Identifier: MIT
 *
 * Reading a job.  Three sources pass through one function, set_value: the table's defaults, the
 * file, and the overrides of the command line, in this order, so the later ones win and all are
 * checked alike.  What concerns more than one key is checked at the end.  The first fault is
 * reported with its line, full key path, value, and what was expected. */
#include "md/job_schema.h"

#include "md/elements.h"
#include "runtime/error.h"
#include "runtime/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TEXT = 256, KEY_LIMIT = 100 };

typedef struct reader {
  ts_job *job;
  const char *origin;    /* the job file, or the override as typed */
  bool has_lines;        /* messages give the line too */
  bool given[KEY_LIMIT]; /* by key: by the file or an override */
} reader;

/* ---- messages -------------------------------------------------------------------------------- */

static int refuse(const reader *r, int status, const ts_json_node *node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int refuse(const reader *r, int status, const ts_json_node *node, const char *format, ...)
{
  char what[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (r->has_lines && node)
    return tsi_fail(status, "%s:%d: %s", r->origin, ts_json_line(node), what);
  return tsi_fail(status, "%s: %s", r->origin, what);
}

static int refuse_value(const reader *r, const tsi_job_key *key, const ts_json_node *node)
{
  char shown[100], expected[300];
  return refuse(r, TS_ERR_INPUT, node, "%s is %s; expected %s", key->path,
                ts_json_show(node, shown, sizeof shown),
                tsi_job_key_expects(key, expected, sizeof expected));
}

static int refuse_planned(const reader *r, const tsi_job_key *key, const ts_json_node *node)
{
  char shown[100], expected[300];
  return refuse(r, TS_ERR_UNSUPPORTED, node, "%s: %s is not supported in this version; expected %s",
                key->path, ts_json_show(node, shown, sizeof shown),
                tsi_job_key_expects(key, expected, sizeof expected));
}

static int refuse_unknown(const reader *r, const char *path, const ts_json_node *node)
{
  return refuse(r, TS_ERR_INPUT, node, "unknown key \"%.200s\"; the nearest known key is \"%s\"",
                path, tsi_job_key_nearest(path)->path);
}

/* ---- one value ------------------------------------------------------------------------------- */

static bool is_word(const ts_json_node *node, const char *word)
{
  return ts_json_node_kind(node) == TS_JSON_STRING && !strcmp(ts_json_string(node), word);
}

/* A text that fits the field; the field's other bytes are zero. */
static int set_text(const reader *r, const tsi_job_key *key, const ts_json_node *node, char *field,
                    size_t size)
{
  if (ts_json_node_kind(node) != TS_JSON_STRING) return refuse_value(r, key, node);
  const size_t length = strlen(ts_json_string(node));
  if (!length || length >= size) return refuse_value(r, key, node);
  memset(field, 0, size);
  memcpy(field, ts_json_string(node), length);
  return 0;
}

/* The word that equals `text`, or whose letters end it; NULL if none. */
static const tsi_job_word *find_word(const tsi_job_word *words, const char *text, bool ending)
{
  for (const tsi_job_word *w = words; w->word; ++w) {
    const size_t all = strlen(text), part = strlen(w->word);
    if (ending ? all > part && !strcmp(text + all - part, w->word) : !strcmp(text, w->word))
      return w;
  }
  return NULL;
}

/* A string that is one of the key's words (or ends in one), present in this version. */
static int match_word(const reader *r, const tsi_job_key *key, const ts_json_node *node,
                      const tsi_job_word **word)
{
  if (ts_json_node_kind(node) != TS_JSON_STRING) return refuse_value(r, key, node);
  *word = find_word(key->words, ts_json_string(node), key->type == TSI_JOB_FILE);
  if (!*word) return refuse_value(r, key, node);
  return (*word)->planned ? refuse_planned(r, key, node) : 0;
}

static int set_name(const reader *r, const tsi_job_key *key, const ts_json_node *node, char *field)
{
  const tsi_job_word *word = NULL;
  if (key->words) TS_TRY(match_word(r, key, node, &word));
  if (key->type == TSI_JOB_FILE && strchr(ts_json_string(node), '/'))
    return refuse_value(r, key, node);
  TS_TRY(set_text(r, key, node, field, TS_JOB_NAME));
  if (field == r->job->output.trajectory.file)
    r->job->output.trajectory.format = (ts_trajectory_format)word->value;
  return 0;
}

static int set_word(const reader *r, const tsi_job_key *key, const ts_json_node *node, void *field)
{
  const tsi_job_word *word;
  TS_TRY(match_word(r, key, node, &word));
  _Static_assert(sizeof(ts_task) == sizeof(int), "enumerations are stored as int");
  memcpy(field, &word->value, sizeof word->value);
  return 0;
}

static bool in_limits(const tsi_job_key *key, double value)
{
  return (key->above ? value > key->min : value >= key->min) && value <= key->max;
}

static int set_integer(const reader *r, const tsi_job_key *key, const ts_json_node *node,
                       int64_t *field)
{
  int64_t value = TS_JOB_UNSET;
  if (key->special == TSI_JOB_AUTO && is_word(node, "auto"))
    value = 0;
  else if (key->special != TSI_JOB_NULL || ts_json_node_kind(node) != TS_JSON_NULL) {
    if (ts_json_node_kind(node) != TS_JSON_NUMBER || ts_json_int64(node, &value) ||
        !in_limits(key, (double)value))
      return refuse_value(r, key, node);
  }
  *field = value;
  return 0;
}

static int set_real(const reader *r, const tsi_job_key *key, const ts_json_node *node,
                    double *field)
{
  if (key->special == TSI_JOB_AUTO && is_word(node, "auto")) {
    *field = 0.0;
    return 0;
  }
  if (ts_json_node_kind(node) != TS_JSON_NUMBER || !in_limits(key, ts_json_number(node)))
    return refuse_value(r, key, node);
  *field = ts_json_number(node) + 0.0; /* no negative zero */
  return 0;
}

/* Hours of one to five digits, then minutes and seconds below 60. */
static bool parse_time(const char *text, int64_t *seconds)
{
  const size_t hours = strspn(text, "0123456789");
  if (hours < 1 || hours > 5) return false;
  const char *c = text + hours;
  if (strlen(c) != 6 || c[0] != ':' || c[3] != ':') return false;
  if (strspn(c + 1, "0123456789") != 2 || strspn(c + 4, "0123456789") != 2) return false;
  const long minute = strtol(c + 1, NULL, 10), second = strtol(c + 4, NULL, 10);
  *seconds = 3600 * (int64_t)strtol(text, NULL, 10) + 60 * minute + second;
  return minute < 60 && second < 60 && *seconds > 0;
}

static int set_time(const reader *r, const tsi_job_key *key, const ts_json_node *node,
                    int64_t *field)
{
  int64_t seconds = 0;
  if (ts_json_node_kind(node) != TS_JSON_NULL &&
      (ts_json_node_kind(node) != TS_JSON_STRING || !parse_time(ts_json_string(node), &seconds)))
    return refuse_value(r, key, node);
  *field = seconds;
  return 0;
}

/* Two symbols with a dash between them. */
static bool parse_pair(const char *text, uint8_t pair[2])
{
  const char *dash = strchr(text, '-');
  if (!dash) return false;
  const int a = ts_element_number(text, (size_t)(dash - text));
  const int b = ts_element_number(dash + 1, strlen(dash + 1));
  pair[0] = (uint8_t)a;
  pair[1] = (uint8_t)b;
  return a && b;
}

static int set_pairs(const reader *r, const tsi_job_key *key, const ts_json_node *node,
                     uint8_t (*field)[2], int64_t *count)
{
  if (ts_json_node_kind(node) != TS_JSON_ARRAY || ts_json_size(node) > TS_JOB_PAIRS)
    return refuse_value(r, key, node);
  memset(field, 0, TS_JOB_PAIRS * sizeof *field);
  for (int i = 0; i < ts_json_size(node); ++i) {
    const ts_json_node *item = ts_json_at(node, i);
    char shown[100];
    if (ts_json_node_kind(item) != TS_JSON_STRING || !parse_pair(ts_json_string(item), field[i]))
      return refuse(r, TS_ERR_INPUT, item,
                    "%s[%d] is %s; expected a pair of elements such as \"O-H\"", key->path, i,
                    ts_json_show(item, shown, sizeof shown));
  }
  *count = ts_json_size(node);
  return 0;
}

static int set_value(reader *r, const tsi_job_key *key, const ts_json_node *node)
{
  void *field = (char *)r->job + key->offset;
  r->given[key - tsi_job_keys] = true;
  switch (key->type) {
    case TSI_JOB_SECTION:
      return refuse_value(r, key, node);
    case TSI_JOB_PATH:
      return set_text(r, key, node, field, TS_JOB_TEXT);
    case TSI_JOB_NAME:
    case TSI_JOB_FILE:
      return set_name(r, key, node, field);
    case TSI_JOB_WORD:
      return set_word(r, key, node, field);
    case TSI_JOB_BOOL:
      if (ts_json_node_kind(node) != TS_JSON_BOOL) return refuse_value(r, key, node);
      *(bool *)field = ts_json_bool(node);
      return 0;
    case TSI_JOB_INTEGER:
      return set_integer(r, key, node, field);
    case TSI_JOB_REAL:
      return set_real(r, key, node, field);
    case TSI_JOB_TIME:
      return set_time(r, key, node, field);
    case TSI_JOB_PAIRS:
      return set_pairs(r, key, node, field, (void *)((char *)r->job + key->count_offset));
  }
  return 0;
}

/* ---- the three sources ----------------------------------------------------------------------- */

static int set_defaults(reader *r)
{
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    if (!key->fallback) continue;
    ts_json *doc;
    TS_TRY(ts_json_parse(key->fallback, strlen(key->fallback), key->path, &doc));
    const int status = set_value(r, key, ts_json_root(doc));
    ts_json_destroy(&doc);
    TS_TRY(status);
  }
  memset(r->given, 0, sizeof r->given);
  return 0;
}

static int read_section(reader *r, const char *path, const ts_json_node *section)
{
  for (int i = 0; i < ts_json_size(section); ++i) {
    const ts_json_node *node = ts_json_at(section, i);
    const char *name = ts_json_key(node);
    char full[KEY_TEXT];
    snprintf(full, sizeof full, "%s%s%.150s", path, *path ? "." : "", name);
    if (strchr(name, '.'))
      return refuse(r, TS_ERR_INPUT, node,
                    "unknown key \"%s\": a dot stands between objects only with --set", full);
    const tsi_job_key *key = tsi_job_key_find(full);
    if (!key) return refuse_unknown(r, full, node);
    if (key->planned)
      return refuse(r, TS_ERR_UNSUPPORTED, node, "%s is not supported in this version", full);
    if (key->type != TSI_JOB_SECTION)
      TS_TRY(set_value(r, key, node));
    else if (ts_json_node_kind(node) != TS_JSON_OBJECT)
      return refuse_value(r, key, node);
    else
      TS_TRY(read_section(r, full, node));
  }
  return 0;
}

/* The value of an override: JSON where it is JSON; text for keys that take text, quoted or not. */
static int parse_override(const tsi_job_key *key, const char *value, const char *origin,
                          ts_json **out)
{
  const bool text = key->type == TSI_JOB_PATH || key->type == TSI_JOB_NAME ||
                    key->type == TSI_JOB_FILE || key->type == TSI_JOB_WORD;
  if ((!text || *value == '"') && !ts_json_parse(value, strlen(value), origin, out)) return 0;
  /* not JSON: the bare text as a JSON string */
  char *quoted = malloc(2 * strlen(value) + 3), *end = quoted;
  if (!quoted) return tsi_fail(TS_ERR_MEMORY, "--set %s: no memory", origin);
  *end++ = '"';
  for (const char *c = value; *c; ++c) {
    if (*c == '"' || *c == '\\') *end++ = '\\';
    *end++ = *c;
  }
  *end++ = '"';
  const int status = ts_json_parse(quoted, (size_t)(end - quoted), origin, out);
  free(quoted);
  return status;
}

static int apply_override(reader *r, const char *set)
{
  char origin[KEY_TEXT], path[KEY_TEXT];
  snprintf(origin, sizeof origin, "--set %.200s", set);
  r->origin = origin;
  r->has_lines = false;
  const char *equals = strchr(set, '=');
  if (!equals || equals == set || equals - set >= (ptrdiff_t)sizeof path)
    return refuse(r, TS_ERR_INPUT, NULL, "expected key=value, such as partition.curve=morton");
  snprintf(path, sizeof path, "%.*s", (int)(equals - set), set);
  const tsi_job_key *key = tsi_job_key_find(path);
  if (!key) return refuse_unknown(r, path, NULL);
  if (key->planned)
    return refuse(r, TS_ERR_UNSUPPORTED, NULL, "%s is not supported in this version", path);
  if (key->type == TSI_JOB_SECTION)
    return refuse(r, TS_ERR_INPUT, NULL, "%s is an object; set one of its keys", path);
  ts_json *doc;
  TS_TRY(parse_override(key, equals + 1, origin, &doc));
  const int status = set_value(r, key, ts_json_root(doc));
  ts_json_destroy(&doc);
  return status;
}

/* ---- more than one key ----------------------------------------------------------------------- */

static int check_given(const reader *r)
{
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    if (!key->fallback && !r->given[i] && key->type != TSI_JOB_SECTION)
      return refuse(r, TS_ERR_INPUT, NULL, "the key \"%s\" is missing: %s", key->path, key->doc);
    if (!key->needs || !r->given[i]) continue;
    char path[KEY_TEXT];
    snprintf(path, sizeof path, "%.*s%s", (int)(tsi_job_key_name(key) - key->path), key->path,
             key->needs);
    if (!r->given[tsi_job_key_find(path) - tsi_job_keys])
      return refuse(r, TS_ERR_INPUT, NULL, "%s is given, but %s is not; give both", key->path,
                    path);
  }
  return 0;
}

/* Checkpoints are numbered: checkpoint.h5, checkpoint.1.h5, ... */
static bool is_checkpoint_name(const ts_job *job, const char *file)
{
  const char *own = job->output.checkpoint.file;
  const size_t stem = strlen(own) - strlen(".h5");
  return !strncmp(file, own, stem) && file[stem] == '.';
}

static int check_together(const reader *r)
{
  const ts_job *job = r->job;
  if ((job->charge == TS_JOB_UNSET) != (job->multiplicity == TS_JOB_UNSET))
    return refuse(r, TS_ERR_INPUT, NULL, "charge and multiplicity: one is null and one is not");
  if (job->output.rdf.bin > job->output.rdf.r_max)
    return refuse(r, TS_ERR_INPUT, NULL,
                  "output.rdf.bin_A is %g; expected at most output.rdf.r_max_A, %g",
                  job->output.rdf.bin, job->output.rdf.r_max);
  if (!strcmp(job->output.rdf.file, "log.csv"))
    return refuse(r, TS_ERR_INPUT, NULL,
                  "output.rdf.file is \"log.csv\", which the log is written to; choose another");
  if (is_checkpoint_name(job, job->output.trajectory.file))
    return refuse(r, TS_ERR_INPUT, NULL,
                  "output.trajectory.file is \"%s\", which checkpoints may be written to; choose "
                  "another",
                  job->output.trajectory.file);
  return 0;
}

/* ---- whole jobs ------------------------------------------------------------------------------ */

static int read_job(const ts_json *doc, const char *path, int nset, const char *const *set,
                    ts_job *job)
{
  reader r = {.job = job, .origin = path, .has_lines = true};
  _Static_assert(sizeof job->path == TS_JOB_TEXT, "the path has the room of any path");
  if (strlen(path) >= sizeof job->path)
    return tsi_fail(TS_ERR_INPUT, "%.60s...: the path of the job file is longer than %d bytes",
                    path, TS_JOB_TEXT - 1);
  memcpy(job->path, path, strlen(path));
  TS_TRY(set_defaults(&r));
  const ts_json_node *root = ts_json_root(doc);
  if (ts_json_node_kind(root) != TS_JSON_OBJECT)
    return refuse(&r, TS_ERR_INPUT, root, "the job is %s; expected an object",
                  ts_json_kind_name(ts_json_node_kind(root)));
  TS_TRY(read_section(&r, "", root));
  for (int i = 0; i < nset; ++i)
    TS_TRY(apply_override(&r, set[i]));
  r.origin = path;
  TS_TRY(check_given(&r));
  return check_together(&r);
}

/* Takes the document and destroys it. */
static int finish(int status, ts_json *doc, const char *path, int nset, const char *const *set,
                  ts_job *out)
{
  memset(out, 0, sizeof *out);
  if (!status) status = read_job(doc, path, nset, set, out);
  ts_json_destroy(&doc);
  if (status) memset(out, 0, sizeof *out);
  return status;
}

int ts_job_parse(const char *text, size_t length, const char *path, int nset,
                 const char *const *set, ts_job *out)
{
  ts_json *doc;
  const int status = ts_json_parse(text, length, path, &doc);
  return finish(status, doc, path, nset, set, out);
}

int ts_job_read(const char *path, int nset, const char *const *set, ts_job *out)
{
  ts_json *doc;
  const int status = ts_json_read(path, &doc);
  return finish(status, doc, path, nset, set, out);
}

static int join(const char *folder, size_t length, const char *name, char out[TS_JOB_TEXT])
{
  const bool slash = length && *name && folder[length - 1] != '/';
  const int used =
      snprintf(out, TS_JOB_TEXT, "%.*s%s%s", (int)length, folder, slash ? "/" : "", name);
  if (used < TS_JOB_TEXT) return 0;
  return tsi_fail(TS_ERR_INPUT, "%.60s...%s: the path is longer than %d bytes", folder, name,
                  TS_JOB_TEXT - 1);
}

int ts_job_input(const ts_job *job, const char *name, char out[TS_JOB_TEXT])
{
  const char *slash = strrchr(job->path, '/');
  const size_t folder = slash && *name != '/' ? (size_t)(slash - job->path) + 1 : 0;
  return join(job->path, folder, name, out);
}

int ts_job_output(const ts_job *job, const char *name, char out[TS_JOB_TEXT])
{
  char directory[TS_JOB_TEXT];
  TS_TRY(ts_job_input(job, job->output.directory, directory));
  return join(directory, strlen(directory), name, out);
}
