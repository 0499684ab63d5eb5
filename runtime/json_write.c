/* SPDX-License-Identifier: MIT
 *
 * A growing text and a stack of what is open; see json_write.h. */
#include "runtime/json_write.h"

#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/number.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 16 };

struct ts_json_writer {
  char *text; /* ends with NUL */
  size_t length, room;
  int depth;
  char closing[DEPTH_LIMIT]; /* '}' or ']' of each open level */
  bool filled[DEPTH_LIMIT];  /* the level has a member already */
  bool failed;               /* memory ran out */
};

static void append(ts_json_writer *w, const char *piece, size_t length)
{
  if (w->failed) return;
  if (w->length + length + 1 > w->room) {
    const size_t room = 2 * (w->length + length + 1);
    char *more = realloc(w->text, room);
    if (!more) {
      w->failed = true;
      return;
    }
    w->text = more;
    w->room = room;
  }
  memcpy(w->text + w->length, piece, length);
  w->length += length;
  w->text[w->length] = '\0';
}

static void append_text(ts_json_writer *w, const char *piece)
{
  append(w, piece, strlen(piece));
}

static void append_quoted(ts_json_writer *w, const char *value)
{
  append_text(w, "\"");
  for (const char *c = value; *c; c++) {
    char escape[8];
    if (*c == '"' || *c == '\\')
      append(w, (char[]){'\\', *c}, 2);
    else if ((unsigned char)*c < 0x20)
      append(w, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*c));
    else
      append(w, c, 1);
  }
  append_text(w, "\"");
}

static void append_number(ts_json_writer *w, double value)
{
  char text[TSI_NUMBER_TEXT];
  if (isfinite(value))
    append(w, text, (size_t)tsi_number_write(value, text));
  else
    append_text(w, "null");
}

static void new_line(ts_json_writer *w)
{
  append_text(w, "\n");
  for (int i = 0; i < w->depth; i++)
    append_text(w, "  ");
}

/* Everything before a value: comma, line, key. */
static void begin(ts_json_writer *w, const char *key)
{
  assert(w->depth > 0 && (key != NULL) == (w->closing[w->depth - 1] == '}'));
  if (w->filled[w->depth - 1]) append_text(w, ",");
  w->filled[w->depth - 1] = true;
  new_line(w);
  if (!key) return;
  append_quoted(w, key);
  append_text(w, ": ");
}

static void open_level(ts_json_writer *w, const char *opening, char closing)
{
  assert(w->depth < DEPTH_LIMIT);
  append_text(w, opening);
  w->closing[w->depth] = closing;
  w->filled[w->depth] = false;
  w->depth++;
}

int ts_json_writer_create(ts_json_writer **out)
{
  *out = calloc(1, sizeof **out);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "no memory for a JSON text");
  open_level(*out, "{", '}');
  return 0;
}

void ts_json_writer_destroy(ts_json_writer **writer)
{
  if (*writer) free((*writer)->text);
  free(*writer);
  *writer = NULL;
}

void ts_json_put_string(ts_json_writer *writer, const char *key, const char *value)
{
  begin(writer, key);
  append_quoted(writer, value);
}

void ts_json_put_number(ts_json_writer *writer, const char *key, double value)
{
  begin(writer, key);
  append_number(writer, value);
}

void ts_json_put_int(ts_json_writer *writer, const char *key, int64_t value)
{
  char text[TSI_NUMBER_TEXT];
  begin(writer, key);
  append(writer, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

void ts_json_put_bool(ts_json_writer *writer, const char *key, bool value)
{
  begin(writer, key);
  append_text(writer, value ? "true" : "false");
}

void ts_json_put_numbers(ts_json_writer *writer, const char *key, int n, const double *value)
{
  begin(writer, key);
  append_text(writer, "[");
  for (int i = 0; i < n; i++) {
    if (i) append_text(writer, ", ");
    append_number(writer, value[i]);
  }
  append_text(writer, "]");
}

void ts_json_open_object(ts_json_writer *writer, const char *key)
{
  begin(writer, key);
  open_level(writer, "{", '}');
}

void ts_json_open_array(ts_json_writer *writer, const char *key)
{
  begin(writer, key);
  open_level(writer, "[", ']');
}

void ts_json_close(ts_json_writer *writer)
{
  assert(writer->depth > 0);
  writer->depth--;
  if (writer->filled[writer->depth]) new_line(writer);
  append(writer, &writer->closing[writer->depth], 1);
  if (!writer->depth) append_text(writer, "\n");
}

const char *ts_json_writer_text(ts_json_writer *writer)
{
  while (writer->depth > 0)
    ts_json_close(writer);
  return writer->failed ? NULL : writer->text;
}

int ts_json_writer_save(ts_json_writer *writer, const char *path)
{
  ts_aside aside;
  const char *text = ts_json_writer_text(writer);
  if (!text) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its text", path);
  TS_TRY(ts_aside_open(path, &aside));
  fwrite(text, 1, writer->length, aside.file); /* a failure stays in the stream for the commit */
  return ts_aside_commit(&aside);
}
