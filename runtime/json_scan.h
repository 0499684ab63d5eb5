/* SPDX-License-Identifier: MIT
 *
 * The strict half of runtime/json: one pass over the text that accepts exactly the grammar of
 * RFC 8259 (cJSON accepts more: control characters as blanks, 01, "\uzzzz", a byte order mark,
 * broken UTF-8) and remembers where every key and value starts.  The tree itself is cJSON's. */
#ifndef TS_JSON_SCAN_H
#define TS_JSON_SCAN_H

#include "runtime/types.h"

enum {
  TSI_JSON_DEPTH = 64, /* deepest nesting of arrays and objects */
  TSI_JSON_DIGITS = 62 /* longest number: what cJSON's buffer holds */
};

typedef struct tsi_json_scan {
  const char *text; /* borrowed */
  size_t length;
  const char *origin; /* borrowed; names the text in messages */
  size_t at;          /* next byte */
  size_t *mark;       /* [nmark] offsets of keys and values in the order of the text; owned */
  size_t nmark, room;
  size_t nvalue; /* marks that are values */
} tsi_json_scan;

/** Check the whole text.  Release with tsi_json_scan_free, also after a failure.
 * \return 0, TS_ERR_INPUT with line and column, or TS_ERR_MEMORY. */
int tsi_json_scan_text(const char *text, size_t length, const char *origin, tsi_json_scan *scan);

void tsi_json_scan_free(tsi_json_scan *scan);

/** Fail with `origin:line:column: ...` for the byte at `offset`; columns count characters. */
int tsi_json_fail(const tsi_json_scan *scan, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
