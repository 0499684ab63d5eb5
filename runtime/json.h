/* SPDX-License-Identifier: MIT
 *
 * Strict JSON on cJSON: what a job file or a weight file's header may contain, and nothing else.
 * Refused with file, line and column: duplicate keys, text after the end, NUL bytes, nesting beyond
 * 64 levels, invalid UTF-8, NaN and infinities, numbers outside double or longer than 62
 * characters.  Integers above 2^53 keep their digits (ts_json_int64).  Independent of the locale.
 * cJSON stays behind this file; members are found by bisection, elements in constant time. */
#ifndef TS_JSON_H
#define TS_JSON_H

#include "runtime/types.h"

typedef struct ts_json ts_json;           /* a document; owns its nodes */
typedef struct ts_json_node ts_json_node; /* borrowed from a document */

typedef enum ts_json_kind {
  TS_JSON_NULL,
  TS_JSON_BOOL,
  TS_JSON_NUMBER,
  TS_JSON_STRING,
  TS_JSON_ARRAY,
  TS_JSON_OBJECT
} ts_json_kind;

/** Parse `length` bytes; `origin` names them in messages (a path).  Both are copied where needed.
 * Not collective.
 * \return 0, TS_ERR_INPUT or TS_ERR_MEMORY. */
int ts_json_parse(const char *text, size_t length, const char *origin, ts_json **out);

/** Read and parse a whole file (at most 256 MiB).  \return 0, TS_ERR_INPUT (also: cannot be read).
 */
int ts_json_read(const char *path, ts_json **out);

void ts_json_destroy(ts_json **doc);

const ts_json_node *ts_json_root(const ts_json *doc);
ts_json_kind ts_json_node_kind(const ts_json_node *node);
const char *ts_json_kind_name(ts_json_kind kind);

/** Members of an object or elements of an array, in file order: size, i-th child, its key. */
int ts_json_size(const ts_json_node *node);
const ts_json_node *ts_json_at(const ts_json_node *node, int index);
const char *ts_json_key(const ts_json_node *node);
/** The member called `key`, or NULL. */
const ts_json_node *ts_json_member(const ts_json_node *object, const char *key);

/** Values; the caller has checked the kind. */
bool ts_json_bool(const ts_json_node *node);
double ts_json_number(const ts_json_node *node);
const char *ts_json_string(const ts_json_node *node);
/** Exact 64-bit integer (also written 2e3 or 5.0); TS_ERR_INPUT (no message) when the number is not
 * one or does not fit. */
int ts_json_int64(const ts_json_node *node, int64_t *out);

/** The line, from 1, where a node (of a member: its key) stands in the text. */
int ts_json_line(const ts_json_node *node);

/** The value in a few words for a message: 12.5, "cells", true, an array, an object.  Long strings
 * are cut.  Returns `out`. */
const char *ts_json_show(const ts_json_node *node, char *out, size_t size);

#endif
