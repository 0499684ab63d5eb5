/* SPDX-License-Identifier: MIT
 *
 * The recorded systems of tests/data/golden, as far as the model goes: their descriptions and the
 * seeds of their weights. */
#ifndef TS_TESTS_MODEL_CASES_H
#define TS_TESTS_MODEL_CASES_H

#include "models/seed.h"
#include "runtime/error.h"
#include "runtime/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/** The path of a file of tests/data; one at a time. */
static inline const char *data_path(const char *rest)
{
  static char path[1024];
  const char *folder = getenv("TS_TEST_DATA");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/data", rest);
  return path;
}

static inline ts_json *golden_file(const char *name)
{
  char rest[128];
  ts_json *doc = NULL;
  snprintf(rest, sizeof rest, "golden/%s.json", name);
  if (ts_json_read(data_path(rest), &doc)) fail_msg("%s", ts_error_message());
  return doc;
}

/** Describe a recorded model and make its weights. */
static inline void golden_model(const char *name, ts_model_desc *desc, ts_weights **weights)
{
  ts_json *doc = golden_file(name);
  const ts_json_node *root = ts_json_root(doc);
  int64_t seed = -1;
  if (ts_model_desc_parse(ts_json_member(root, "model"), name, desc))
    fail_msg("%s", ts_error_message());
  assert_int_equal(ts_json_int64(ts_json_member(root, "seed"), &seed), 0);
  ts_json_destroy(&doc);
  if (ts_weights_seed(desc, (uint64_t)seed, weights)) fail_msg("%s", ts_error_message());
}

#endif
