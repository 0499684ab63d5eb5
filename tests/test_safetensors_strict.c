/* SPDX-License-Identifier: MIT
 *
 * Weight files that must be refused, each with its reason; and odd ones that must be read: padding
 * with blanks, data at an odd offset, gaps, every type of number. */
#include "models/safetensors.h"
#include "tests/model_cases.h"

#include <math.h>
#include <unistd.h>

typedef struct bytes {
  size_t size;
  unsigned char data[4096];
} bytes;

static bytes file_of(const char *header, size_t length, const void *data, size_t size)
{
  bytes f = {.size = 8 + length + size};
  const uint64_t declared = length;
  assert_true(f.size <= sizeof f.data);
  memcpy(f.data, &declared, 8);
  memcpy(f.data + 8, header, length);
  if (size) memcpy(f.data + 8 + length, data, size);
  return f;
}

/* A file with this header and `size` bytes of zeros. */
static bytes zeros(const char *header, size_t size)
{
  static const unsigned char none[256];
  return file_of(header, strlen(header), none, size);
}

static void refuse(const bytes *f, const char *expected)
{
  /* an exact copy on the heap, so that a sanitizer sees a byte too far */
  unsigned char *copy = malloc(f->size ? f->size : 1);
  memcpy(copy, f->data, f->size);
  ts_weights *w;
  assert_int_equal(ts_weights_parse(copy, f->size, "t", &w), TS_ERR_INPUT);
  assert_null(w);
  free(copy);
  if (!strstr(ts_error_message(), expected))
    fail_msg("message '%s' lacks '%s'", ts_error_message(), expected);
}

static void refuse_header(const char *header, size_t size, const char *expected)
{
  const bytes f = zeros(header, size);
  refuse(&f, expected);
}

static ts_weights *accept(const bytes *f)
{
  ts_weights *w;
  if (ts_weights_parse(f->data, f->size, "t", &w)) fail_msg("%s", ts_error_message());
  return w;
}

#define ENTRY(dtype, shape, offsets) \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_lengths(void **state)
{
  (void)state;
  bytes f = zeros(ENTRY("F32", "[2]", "[0,8]"), 8);
  const size_t whole = f.size;
  for (f.size = 0; f.size < whole; ++f.size)
    refuse(&f, "t: "); /* cut anywhere */
  f.size = 4;
  refuse(&f, "not a safetensors file, or cut: 4 bytes");
  f.size = whole + 1;
  refuse(&f, "1 bytes after the last tensor");
  f.size = whole;
  for (int bit = 11; bit < 64; ++bit) {
    const uint64_t length = UINT64_C(1) << bit;
    memcpy(f.data, &length, 8);
    refuse(&f, "not a safetensors file");
  }
}

static void test_padding(void **state)
{
  (void)state;
  static const char header[] = ENTRY("F32", "[1]", "[0,4]") "       ";
  const float value = 1.5f;
  for (size_t pad = 0; pad <= 7; ++pad) { /* the data starts at every offset mod 8 */
    const bytes f = file_of(header, sizeof header - 1 - pad, &value, 4);
    ts_weights *w = accept(&f);
    assert_true(ts_weights_data(w, "a")[0] == 1.5);
    ts_weights_destroy(&w);
  }
  char nul[sizeof header];
  memcpy(nul, header, sizeof header);
  nul[sizeof header - 2] = '\0';
  const bytes f = file_of(nul, sizeof header - 1, &value, 4);
  refuse(&f, "NUL byte in the header");
}

static void test_ranges(void **state)
{
  (void)state;
  static const char expected[] = "0 <= begin <= end <= 8";
  refuse_header(ENTRY("F32", "[2]", "[8,0]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[4,12]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[-8,0]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0,9223372036854775807]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0,18446744073709551616]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0,8.5]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0,8,8]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0]"), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "\"0,8\""), 8, expected);
  refuse_header(ENTRY("F32", "[2]", "[0,4]"), 8, "need 8");
  refuse_header(ENTRY("F64", "[2]", "[0,8]"), 8, "need 16");
  refuse_header(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
      8, "\"a\" and \"b\" overlap");
}

static void test_shapes(void **state)
{
  (void)state;
  refuse_header(ENTRY("F32", "[0]", "[0,0]"), 0, "1 or more");
  refuse_header(ENTRY("F32", "[-2]", "[0,8]"), 8, "1 or more");
  refuse_header(ENTRY("F32", "[1.5]", "[0,8]"), 8, "1 or more");
  refuse_header(ENTRY("F32", "[1,1,1,1,2]", "[0,8]"), 8, "at most 4 dimensions");
  refuse_header(ENTRY("F32", "[4294967296,4294967296]", "[0,8]"), 8, "more elements");
  refuse_header(ENTRY("F32", "[4611686018427387905,4]", "[0,8]"), 8, "more elements");
  refuse_header(ENTRY("I64", "[1]", "[0,8]"), 8, "\"I64\"");
  refuse_header(ENTRY("f32", "[2]", "[0,8]"), 8, "\"f32\"");
}

static void test_structure(void **state)
{
  (void)state;
  refuse_header("[]", 0, "not a JSON object");
  refuse_header("{\"a\":1}", 0, "expected an object");
  refuse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "exactly dtype");
  refuse_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
                "exactly dtype");
  refuse_header("{\"__metadata__\":{\"k\":1}}", 0, "\"k\" is not a string");
  refuse_header("{\"__metadata__\":[]}", 0, "not an object of strings");
  refuse_header("{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "name");
  refuse_header(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
      8, "duplicate key");
  refuse_header(ENTRY("F32", "[2]", "[0,8]") "x", 8, "end of the text");
  refuse_header("", 0, "t: header");
}

static void test_types(void **state)
{
  (void)state;
  const struct {
    const char *dtype;
    unsigned char data[8];
    int size;
    double value;
  } cases[] = {
      {"F16", {0x00, 0x3c}, 2, 1.0},
      {"F16", {0xff, 0x7b}, 2, 65504.0},
      {"F16", {0x01, 0x00}, 2, 0x1p-24},
      {"F16", {0xff, 0x83}, 2, -1023 * 0x1p-24},
      {"F16", {0x00, 0x04}, 2, 0x1p-14},
      {"F16", {0x55, 0xb5}, 2, -0x1.554p-2},
      {"BF16", {0x80, 0x3f}, 2, 1.0},
      {"BF16", {0x7f, 0xff}, 2, -0x1.fep127},
      {"BF16", {0x01, 0x00}, 2, 0x1p-133},
      {"F32", {0x01, 0x00, 0x00, 0x00}, 4, 0x1p-149},
      {"F64", {0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40}, 8, 3.141592653589793},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char header[128];
    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"%s\",\"shape\":[],\"data_offsets\":[0,%d]}}", cases[i].dtype,
             cases[i].size);
    const bytes f = file_of(header, strlen(header), cases[i].data, (size_t)cases[i].size);
    ts_weights *w = accept(&f);
    assert_true(ts_weights_data(w, "a")[0] == cases[i].value);
    assert_int_equal(ts_weights_at(w, 0).rank, 0);
    ts_weights_destroy(&w);
  }
}

static void test_not_finite(void **state)
{
  (void)state;
  static const unsigned char half[4] = {0, 0, 0x01, 0x7c}, inf[4] = {0, 0, 0x80, 0x7f};
  const double nan64[2] = {1.0, NAN};
  bytes f = file_of(ENTRY("F16", "[2]", "[0,4]"), strlen(ENTRY("F16", "[2]", "[0,4]")), half, 4);
  refuse(&f, "tensor \"a\": element 1 is nan");
  f = file_of(ENTRY("F32", "[1]", "[0,4]"), strlen(ENTRY("F32", "[1]", "[0,4]")), inf, 4);
  refuse(&f, "tensor \"a\": element 0 is inf");
  f = file_of(ENTRY("F64", "[2]", "[0,16]"), strlen(ENTRY("F64", "[2]", "[0,16]")), nan64, 16);
  refuse(&f, "tensor \"a\": element 1 is nan");
}

static void test_gap(void **state)
{
  (void)state;
  const float data[3] = {1.0f, 2.0f, 3.0f};
  static const char header[] =
      "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}";
  const bytes f = file_of(header, sizeof header - 1, data, sizeof data);
  ts_weights *w = accept(&f);
  assert_int_equal(ts_weights_count(w), 2);
  assert_true(ts_weights_data(w, "a")[0] == 1.0 && ts_weights_data(w, "b")[0] == 3.0);
  assert_null(ts_weights_data(w, "c"));
  ts_weights_destroy(&w);
}

static void test_paths(void **state)
{
  (void)state;
  ts_weights *w;
  assert_int_equal(ts_weights_read("/nonexistent/w.safetensors", &w), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "/nonexistent/w.safetensors"));
  assert_int_equal(ts_weights_read("/", &w), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "not a regular file"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lengths),    cmocka_unit_test(test_padding),
      cmocka_unit_test(test_ranges),     cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_structure),  cmocka_unit_test(test_types),
      cmocka_unit_test(test_not_finite), cmocka_unit_test(test_gap),
      cmocka_unit_test(test_paths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
