/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: weight files and the model descriptions in them.  Each input is read as it is, once
 * more with a header length that fits (a random one hardly ever does), and as a description alone.
 * What is accepted must be finite and in order, and a description must survive printing.
 *
 * fuzz-sources: models/safetensors.c models/safetensors_read.c models/description.c
 * fuzz-sources: models/clebsch.c models/tensors.c runtime/json.c runtime/json_scan.c
 * fuzz-sources: runtime/json_write.c runtime/number.c runtime/aside.c runtime/file.c
 * fuzz-sources: runtime/memory.c runtime/error.c
 * fuzz-libs: -lcjson -lm */
#include "models/tensors.h"
#include "runtime/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe(const char *text, size_t length, const ts_weights *w)
{
  ts_json *doc;
  ts_model_desc desc, again;
  char *printed;
  if (ts_json_parse(text, length, "fuzz", &doc)) return;
  if (!ts_model_desc_parse(ts_json_root(doc), "fuzz", &desc)) {
    if (ts_model_desc_format(&desc, &printed)) abort();
    ts_json_destroy(&doc);
    if (ts_json_parse(printed, strlen(printed), "fuzz", &doc)) abort();
    if (ts_model_desc_parse(ts_json_root(doc), "fuzz", &again)) abort();
    if (memcmp(&desc, &again, sizeof desc)) abort();
    free(printed);
    if (w) ts_weights_check(w, &desc, false, "fuzz");
  }
  ts_json_destroy(&doc);
}

static void walk(const uint8_t *data, size_t size)
{
  ts_weights *w;
  if (ts_weights_parse(data, size, "fuzz", &w)) {
    if (w || !*ts_error_message()) abort();
    return;
  }
  for (int i = 0; i < ts_weights_count(w); ++i) {
    const ts_tensor_view view = ts_weights_at(w, i);
    if (ts_weights_data(w, view.name) != view.data) abort();
    if (i && strcmp(ts_weights_at(w, i - 1).name, view.name) >= 0) abort();
    if (view.count != view.dim[0] * view.dim[1] * view.dim[2] * view.dim[3]) abort();
    for (int64_t k = 0; k < view.count; ++k)
      if (!isfinite(view.data[k])) abort();
  }
  const char *text = ts_weights_metadata(w, "tessera");
  if (text) describe(text, strlen(text), w);
  ts_weights_destroy(&w);
}

/* The header's end is where its braces close. */
static uint64_t header_length(const uint8_t *header, size_t size)
{
  int depth = 0;
  for (size_t i = 0; i < size; ++i) {
    depth += (header[i] == '{') - (header[i] == '}');
    if (header[i] == '}' && depth == 0) return i + 1;
  }
  return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  walk(data, size);
  describe((const char *)data, size, NULL);
  if (size < 8) return 0;
  uint8_t *copy = malloc(size);
  const uint64_t length = header_length(data + 8, size - 8);
  memcpy(copy, data, size);
  memcpy(copy, &length, sizeof length);
  walk(copy, size);
  free(copy);
  return 0;
}
