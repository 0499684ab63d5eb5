/* SPDX-License-Identifier: MIT
 *
 * The three texts that follow from the table of keys: a job with every key filled in, the JSON
 * Schema of all jobs, and the table of the documentation. */
#include "md/job_schema.h"

#include "md/elements.h"
#include "runtime/error.h"
#include "runtime/json_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a job ----------------------------------------------------------------------------------- */

static const char *word_of(const tsi_job_key *key, const void *field)
{
  int value;
  memcpy(&value, field, sizeof value);
  for (const tsi_job_word *w = key->words; w->word; ++w)
    if (w->value == value && !w->planned) return w->word;
  return "";
}

static void put_integer(ts_json_writer *w, const char *name, const tsi_job_key *key, int64_t value)
{
  if (key->special == TSI_JOB_AUTO && !value)
    ts_json_put_string(w, name, "auto");
  else if (key->special == TSI_JOB_NULL && value == TS_JOB_UNSET)
    ts_json_put_number(w, name, NAN); /* null */
  else
    ts_json_put_int(w, name, value);
}

static void put_real(ts_json_writer *w, const char *name, const tsi_job_key *key, double value)
{
  if (key->special == TSI_JOB_AUTO && value == 0.0)
    ts_json_put_string(w, name, "auto");
  else
    ts_json_put_number(w, name, value);
}

static void put_time(ts_json_writer *w, const char *name, int64_t seconds)
{
  char text[32];
  if (seconds)
    ts_json_put_string(w, name, tsi_job_show_time(seconds, text));
  else
    ts_json_put_number(w, name, NAN);
}

static void put_pairs(ts_json_writer *w, const char *name, const uint8_t (*pair)[2], int64_t count)
{
  ts_json_open_array(w, name);
  for (int64_t i = 0; i < count; ++i) {
    char text[16];
    snprintf(text, sizeof text, "%s-%s", ts_element_symbol(pair[i][0]),
             ts_element_symbol(pair[i][1]));
    ts_json_put_string(w, NULL, text);
  }
  ts_json_close(w);
}

/* The value of `key` in `job` as the member `name`. */
static void put_value(ts_json_writer *w, const char *name, const tsi_job_key *key,
                      const ts_job *job)
{
  const void *field = (const char *)job + key->offset;
  const void *count = (const char *)job + key->count_offset;
  switch (key->type) {
    case TSI_JOB_SECTION:
      break;
    case TSI_JOB_PATH:
    case TSI_JOB_NAME:
    case TSI_JOB_FILE:
      ts_json_put_string(w, name, field);
      break;
    case TSI_JOB_WORD:
      ts_json_put_string(w, name, word_of(key, field));
      break;
    case TSI_JOB_BOOL:
      ts_json_put_bool(w, name, *(const bool *)field);
      break;
    case TSI_JOB_INTEGER:
      put_integer(w, name, key, *(const int64_t *)field);
      break;
    case TSI_JOB_REAL:
      put_real(w, name, key, *(const double *)field);
      break;
    case TSI_JOB_TIME:
      put_time(w, name, *(const int64_t *)field);
      break;
    case TSI_JOB_PAIRS:
      put_pairs(w, name, field, *(const int64_t *)count);
      break;
  }
}

static void put_section(ts_json_writer *w, const char *path, const ts_job *job)
{
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    if (key->planned || !tsi_job_key_is_in(key, path)) continue;
    if (key->type == TSI_JOB_SECTION) {
      ts_json_open_object(w, tsi_job_key_name(key));
      put_section(w, key->path, job);
      ts_json_close(w);
    } else {
      put_value(w, tsi_job_key_name(key), key, job);
    }
  }
}

/* Takes the writer and destroys it. */
static int print_and_destroy(ts_json_writer *w, FILE *file)
{
  const char *text = ts_json_writer_text(w);
  int status = 0;
  if (!text)
    status = tsi_fail(TS_ERR_MEMORY, "no memory for a JSON text");
  else if (fputs(text, file) < 0)
    status = tsi_fail(TS_ERR_IO, "a JSON text could not be written");
  ts_json_writer_destroy(&w);
  return status;
}

int ts_job_print(const ts_job *job, FILE *file)
{
  ts_json_writer *w;
  TS_TRY(ts_json_writer_create(&w));
  put_section(w, "", job);
  return print_and_destroy(w, file);
}

/* ---- the schema ------------------------------------------------------------------------------ */

static void schema_words(ts_json_writer *w, const tsi_job_word *words)
{
  ts_json_open_array(w, "enum");
  for (; words->word; ++words)
    if (!words->planned) ts_json_put_string(w, NULL, words->word);
  ts_json_close(w);
}

static void schema_text(ts_json_writer *w, int64_t room)
{
  ts_json_put_string(w, "type", "string");
  ts_json_put_int(w, "minLength", 1);
  ts_json_put_int(w, "maxLength", room - 1);
}

/* No folders, and one of the endings. */
static void schema_file(ts_json_writer *w, const tsi_job_key *key)
{
  char pattern[200];
  int used = snprintf(pattern, sizeof pattern, "^[^/]+(");
  const char *bar = "";
  for (const tsi_job_word *word = key->words; word->word; ++word) {
    if (word->planned) continue;
    used += snprintf(pattern + used, sizeof pattern - (size_t)used, "%s\\%s", bar, word->word);
    bar = "|";
  }
  snprintf(pattern + used, sizeof pattern - (size_t)used, ")$");
  schema_text(w, TS_JOB_NAME);
  ts_json_put_string(w, "pattern", pattern);
}

static void schema_number(ts_json_writer *w, const tsi_job_key *key)
{
  ts_json_put_string(w, "type", key->type == TSI_JOB_INTEGER ? "integer" : "number");
  ts_json_put_number(w, key->above ? "exclusiveMinimum" : "minimum", key->min);
  if (isfinite(key->max))
    ts_json_put_number(w, "maximum", key->max);
  else
    ts_json_put_int(w, "maximum", INT64_MAX);
}

static void schema_time(ts_json_writer *w)
{
  ts_json_put_string(w, "type", "string");
  ts_json_put_string(w, "pattern", "^(?!0+:00:00$)[0-9]{1,5}:[0-5][0-9]:[0-5][0-9]$");
}

static void schema_pairs(ts_json_writer *w)
{
  ts_json_put_string(w, "type", "array");
  ts_json_put_int(w, "maxItems", TS_JOB_PAIRS);
  ts_json_open_object(w, "items");
  ts_json_put_string(w, "type", "string");
  ts_json_put_string(w, "pattern", "^[A-Z][a-z]?-[A-Z][a-z]?$");
  ts_json_close(w);
}

/* What the key takes, without its null or "auto". */
static void schema_plain(ts_json_writer *w, const tsi_job_key *key)
{
  if (key->type == TSI_JOB_FILE)
    schema_file(w, key);
  else if (key->words)
    schema_words(w, key->words);
  else if (key->type == TSI_JOB_PATH || key->type == TSI_JOB_NAME)
    schema_text(w, key->type == TSI_JOB_PATH ? TS_JOB_TEXT : TS_JOB_NAME);
  else if (key->type == TSI_JOB_BOOL)
    ts_json_put_string(w, "type", "boolean");
  else if (key->type == TSI_JOB_TIME)
    schema_time(w);
  else if (key->type == TSI_JOB_PAIRS)
    schema_pairs(w);
  else
    schema_number(w, key);
}

static void schema_key(ts_json_writer *w, const tsi_job_key *key, const ts_job *defaults)
{
  char text[300];
  snprintf(text, sizeof text, "%s%s%s%s", key->doc, key->unit ? " [" : "",
           key->unit ? key->unit : "", key->unit ? "]" : "");
  ts_json_put_string(w, "description", text);
  if (key->special == TSI_JOB_PLAIN) {
    schema_plain(w, key);
  } else {
    ts_json_open_array(w, "anyOf");
    ts_json_open_object(w, NULL);
    schema_plain(w, key);
    ts_json_close(w);
    ts_json_open_object(w, NULL);
    if (key->special == TSI_JOB_AUTO)
      ts_json_put_string(w, "const", "auto");
    else
      ts_json_put_string(w, "type", "null");
    ts_json_close(w);
    ts_json_close(w);
  }
  if (key->fallback) put_value(w, "default", key, defaults);
}

/* {"temperature_K": ["kind"], ...}: what must be given together. */
static void schema_needs(ts_json_writer *w, const char *path)
{
  bool open = false;
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    if (!key->needs || !tsi_job_key_is_in(key, path)) continue;
    if (!open) ts_json_open_object(w, "dependentRequired");
    open = true;
    ts_json_open_array(w, tsi_job_key_name(key));
    ts_json_put_string(w, NULL, key->needs);
    ts_json_close(w);
  }
  if (open) ts_json_close(w);
}

static void schema_section(ts_json_writer *w, const char *path, const ts_job *defaults)
{
  ts_json_put_string(w, "type", "object");
  ts_json_put_bool(w, "additionalProperties", false);
  schema_needs(w, path);
  ts_json_open_object(w, "properties");
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    if (key->planned || !tsi_job_key_is_in(key, path)) continue;
    ts_json_open_object(w, tsi_job_key_name(key));
    if (key->type == TSI_JOB_SECTION) {
      ts_json_put_string(w, "description", key->doc);
      schema_section(w, key->path, defaults);
    } else {
      schema_key(w, key, defaults);
    }
    ts_json_close(w);
  }
  ts_json_close(w);
}

int ts_job_print_schema(FILE *file)
{
  static const char least[] = "{\"structure\": \"-\", \"model\": \"-\"}";
  ts_job defaults;
  TS_TRY(ts_job_parse(least, strlen(least), "defaults", 0, NULL, &defaults));
  ts_json_writer *w;
  TS_TRY(ts_json_writer_create(&w));
  ts_json_put_string(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
  ts_json_put_string(w, "title", "Tessera job");
  ts_json_open_array(w, "required");
  for (int i = 0; i < tsi_job_key_count; ++i)
    if (tsi_job_keys[i].type != TSI_JOB_SECTION && !tsi_job_keys[i].fallback)
      ts_json_put_string(w, NULL, tsi_job_keys[i].path);
  ts_json_close(w);
  schema_section(w, "", &defaults);
  return print_and_destroy(w, file);
}

/* ---- the documentation ----------------------------------------------------------------------- */

void ts_job_print_table(FILE *file)
{
  fprintf(file, "| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    char expects[300];
    if (key->planned) continue;
    if (key->type == TSI_JOB_SECTION) {
      fprintf(file, "| **`%s`** | | | %s |\n", key->path, key->doc);
      continue;
    }
    fprintf(file, "| `%s` | %s%s%s%s | ", key->path,
            tsi_job_key_expects(key, expects, sizeof expects), key->unit ? " [" : "",
            key->unit ? key->unit : "", key->unit ? "]" : "");
    fprintf(file, key->fallback ? "`%s`" : "%s", key->fallback ? key->fallback : "required");
    fprintf(file, " | %s |\n", key->doc);
  }
}
