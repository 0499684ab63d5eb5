/* SPDX-License-Identifier: MIT
 *
 * Writing strict JSON: two-space indent, numbers with as many digits as bring the
 * double back (at most 17) and a point whatever the locale, NaN and infinities as null, strings
 * escaped.  The document grows in memory and is written aside at the end; a failure on the way is
 * kept and reported there, so that callers need not check each line. */
#ifndef TS_JSON_WRITE_H
#define TS_JSON_WRITE_H

#include "runtime/types.h"

typedef struct ts_json_writer ts_json_writer;

/** Start a document: one object, open.  \return 0 or TS_ERR_MEMORY. */
int ts_json_writer_create(ts_json_writer **out);
void ts_json_writer_destroy(ts_json_writer **writer);

/** Members of the open object (with a key) or elements of the open array (key NULL). */
void ts_json_put_string(ts_json_writer *writer, const char *key, const char *value);
void ts_json_put_number(ts_json_writer *writer, const char *key, double value);
void ts_json_put_int(ts_json_writer *writer, const char *key, int64_t value);
void ts_json_put_bool(ts_json_writer *writer, const char *key, bool value);

/** An array of n numbers on one line. */
void ts_json_put_numbers(ts_json_writer *writer, const char *key, int n, const double *value);

/** Open an object or an array inside the open one; close the innermost. */
void ts_json_open_object(ts_json_writer *writer, const char *key);
void ts_json_open_array(ts_json_writer *writer, const char *key);
void ts_json_close(ts_json_writer *writer);

/** Close what is open and write the document to `path` (aside, then renamed).
 * \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_json_writer_save(ts_json_writer *writer, const char *path);

/** Close what is open and return the text; borrowed until the writer is destroyed; NULL if memory
 * ran out. */
const char *ts_json_writer_text(ts_json_writer *writer);

#endif
