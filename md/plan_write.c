/* SPDX-License-Identifier: MIT
 *
 * Surveys as CSV and JSON: two sinks for the same names (plan_fields.c). */
#include <string.h>

#include "md/plan_print.h"
#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/json_write.h"
#include "runtime/number.h"

/* ---- CSV: once for the names, then a row each ---- */

typedef struct csv {
  FILE *file;
  bool names, some;
  char prefix[256];
} csv;

static void csv_open(void *context, const char *name)
{
  csv *c = context;
  const size_t used = strlen(c->prefix);
  snprintf(c->prefix + used, sizeof c->prefix - used, "%s.", name);
}

static void csv_close(void *context)
{
  csv *c = context;
  size_t used = strlen(c->prefix) - 1;
  while (used > 0 && c->prefix[used - 1] != '.')
    used--;
  c->prefix[used] = '\0';
}

static void csv_text(void *context, const char *name, const char *value)
{
  csv *c = context;
  if (c->some) fputc(',', c->file);
  c->some = true;
  if (c->names)
    fprintf(c->file, "%s%s", c->prefix, name);
  else
    fputs(value, c->file);
}

static void csv_number(void *context, const char *name, double value)
{
  char text[TSI_NUMBER_TEXT];
  tsi_number_write(value, text);
  csv_text(context, name, text);
}

int ts_plan_write_csv(const char *path, int n, const ts_plan_result *result, bool timed)
{
  ts_aside aside;
  csv c = {.names = true};
  const ts_plan_sink sink = {&c, csv_open, csv_close, csv_number, csv_text};
  TS_TRY(ts_aside_open(path, &aside));
  c.file = aside.file;
  for (int i = -1; i < n; i++) {
    const ts_plan_result *r = &result[i < 0 ? 0 : i];
    c.names = i < 0;
    c.some = false;
    ts_plan_fields(&r->params, r->survey, timed ? &r->time : NULL, &sink);
    fputc('\n', c.file);
  }
  return ts_aside_commit(&aside);
}

/* ---- JSON ---- */

static void json_open(void *context, const char *name)
{
  ts_json_open_object(context, name);
}

static void json_close(void *context)
{
  ts_json_close(context);
}

static void json_number(void *context, const char *name, double value)
{
  ts_json_put_number(context, name, value);
}

static void json_text(void *context, const char *name, const char *value)
{
  ts_json_put_string(context, name, value);
}

int ts_plan_write_json(const char *path, const char *system, int n, const ts_plan_result *result,
                       bool timed)
{
  ts_json_writer *w;
  TS_TRY(ts_json_writer_create(&w));
  const ts_plan_sink sink = {w, json_open, json_close, json_number, json_text};
  ts_json_put_string(w, "system", system);
  ts_json_open_array(w, "results");
  for (int i = 0; i < n; i++) {
    ts_json_open_object(w, NULL);
    ts_plan_fields(&result[i].params, result[i].survey, timed ? &result[i].time : NULL, &sink);
    ts_json_close(w);
  }
  ts_json_close(w);
  const int status = ts_json_writer_save(w, path);
  ts_json_writer_destroy(&w);
  return status;
}
