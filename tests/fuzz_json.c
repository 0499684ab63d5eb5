/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: strict JSON.  Whatever is accepted is walked in full: members are found by their
 * keys, kinds and values agree.
 *
 * fuzz-sources: runtime/json.c runtime/json_scan.c runtime/error.c
 * fuzz-libs: -lcjson -lm */
#include "runtime/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const ts_json_node *node)
{
  char shown[80];
  int64_t integer;
  const ts_json_kind kind = ts_json_node_kind(node);
  ts_json_show(node, shown, sizeof shown);
  if (strlen(shown) >= sizeof shown || ts_json_line(node) < 1) abort();
  if (kind == TS_JSON_NUMBER && !isfinite(ts_json_number(node))) abort();
  if (kind == TS_JSON_NUMBER && !ts_json_int64(node, &integer) &&
      (double)integer != ts_json_number(node))
    abort();
  if (kind == TS_JSON_STRING && strlen(ts_json_string(node)) > ((size_t)1 << 30)) abort();
  for (int i = 0; i < ts_json_size(node); ++i) {
    const ts_json_node *child = ts_json_at(node, i);
    if (kind == TS_JSON_OBJECT && ts_json_member(node, ts_json_key(child)) != child) abort();
    if (kind == TS_JSON_ARRAY && ts_json_key(child)) abort();
    walk(child);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  ts_json *doc;
  if (!ts_json_parse((const char *)data, size, "fuzz", &doc)) walk(ts_json_root(doc));
  ts_json_destroy(&doc);
  return 0;
}
