/* SPDX-License-Identifier: MIT
 *
 * What runtime/json accepts, what it refuses and where it says the fault is. */
#include "runtime/error.h"
#include "runtime/json.h"
#include "tests/comma_locale.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

static void refuse_bytes(const char *text, size_t length, const char *expected)
{
  ts_json *doc = NULL;
  assert_int_equal(ts_json_parse(text, length, "t", &doc), TS_ERR_INPUT);
  assert_null(doc);
  if (!strstr(ts_error_message(), expected))
    fail_msg("message '%s' lacks '%s'", ts_error_message(), expected);
}

static void refuse(const char *text, const char *expected)
{
  refuse_bytes(text, strlen(text), expected);
}

static ts_json *accept(const char *text)
{
  ts_json *doc = NULL;
  if (ts_json_parse(text, strlen(text), "t", &doc)) fail_msg("%s", ts_error_message());
  return doc;
}

static void test_tree(void **state)
{
  (void)state;
  ts_json *doc = accept(
      "{\"b\": [1, -2.5e1, \"\\u00e9\\ud83d\\ude00\"],\n \"a\": {}, \"c\": null,"
      "\n\"d\": true}");
  const ts_json_node *root = ts_json_root(doc);
  assert_int_equal(ts_json_node_kind(root), TS_JSON_OBJECT);
  assert_int_equal(ts_json_size(root), 4);
  assert_string_equal(ts_json_key(ts_json_at(root, 0)), "b");
  assert_null(ts_json_at(root, 4));
  assert_null(ts_json_at(root, -1));
  assert_null(ts_json_member(root, "e"));
  const ts_json_node *b = ts_json_member(root, "b");
  assert_int_equal(ts_json_size(b), 3);
  assert_true(ts_json_number(ts_json_at(b, 1)) == -25.0);
  assert_string_equal(ts_json_string(ts_json_at(b, 2)), "\xC3\xA9\xF0\x9F\x98\x80");
  assert_int_equal(ts_json_size(ts_json_member(root, "a")), 0);
  assert_null(ts_json_member(ts_json_member(root, "a"), "x"));
  assert_true(ts_json_bool(ts_json_member(root, "d")));
  assert_int_equal(ts_json_line(ts_json_member(root, "a")), 2);
  assert_int_equal(ts_json_line(ts_json_member(root, "d")), 3);
  ts_json_destroy(&doc);
  assert_null(doc);
}

static void test_refusals(void **state)
{
  (void)state;
  refuse("", "t:1:1: the text ends where a value");
  refuse("{\"a\":1}\n x", "t:2:2: 'x' where the end of the text");
  refuse("{\"a\":1,\n\"b\":2, \"a\":3}", "t:2:8: duplicate key \"a\" (first on line 1)");
  refuse("{\"x\":{\"a\":1,\"\\u0061\":2}}", "duplicate key \"a\"");
  refuse("{\"\xC3\xA9\" 1}", "t:1:6: '1' where ':'");
  refuse("[1,]", "t:1:4: ']' where a value");
  refuse("[1 2]", "',' or ']'");
  refuse("{\"a\":1,}", "a key in double quotes");
  refuse("{a:1}", "a key in double quotes");
  refuse("'a'", "a value");
  refuse("NaN", "unknown word 'NaN'");
  refuse("[Infinity]", "unknown word 'Infinity'");
  refuse("-Infinity", "a digit");
  refuse("TRUE", "unknown word");
  refuse("// c\n1", "a value");
  refuse("\xEF\xBB\xBF{}", "byte order mark");
  refuse("\"a", "no end");
  refuse("\"a\nb\"", "control character (byte 0x0a)");
  refuse("\"\\x41\"", "unknown escape");
  refuse("\"\\u12g4\"", "four hexadecimal");
  refuse("\"\\u0000\"", "\\u0000");
  refuse("\"\\ud800\"", "surrogate");
  refuse("\"\\ud800\\u0041\"", "surrogate");
  refuse("\"\\udc00\"", "surrogate");
  refuse("\f1", "byte 0x0c");
  refuse_bytes("{}\0", 3, "NUL byte where the end");
  refuse_bytes("\"a\0b\"", 5, "NUL byte");
}

static void test_utf8(void **state)
{
  (void)state;
  static const char *const broken[] = {"\"\x80\"",
                                       "\"\xC3\"",
                                       "\"\xC0\xAF\"",
                                       "\"\xE0\x80\xAF\"",
                                       "\"\xED\xA0\x80\"",
                                       "\"\xF4\x90\x80\x80\"",
                                       "\"\xF5\x80\x80\x80\"",
                                       "\"\xE2\x82\""};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i)
    refuse(broken[i], "invalid UTF-8");
  ts_json *doc = accept("\"\xE2\x82\xAC \xF0\x9F\x98\x80 \xEF\xBF\xBF\"");
  ts_json_destroy(&doc);
}

static void check_number(const char *text, double value, bool exact, int64_t integer)
{
  ts_json *doc = accept(text);
  int64_t got = -77;
  assert_true(ts_json_number(ts_json_root(doc)) == value);
  assert_int_equal(ts_json_int64(ts_json_root(doc), &got), exact ? 0 : TS_ERR_INPUT);
  assert_true(got == (exact ? integer : -77));
  ts_json_destroy(&doc);
}

static void test_numbers(void **state)
{
  (void)state;
  check_number("0", 0.0, true, 0);
  check_number("-0", 0.0, true, 0);
  check_number("2e3", 2000.0, true, 2000);
  check_number("25.0e-1", 2.5, false, 0);
  check_number("5.00", 5.0, true, 5);
  check_number("1200e-2", 12.0, true, 12);
  check_number("0e99999999999999999999", 0.0, true, 0);
  check_number("0.1", 0.1, false, 0);
  check_number("1e-300", 1e-300, false, 0);
  check_number("9007199254740993", 9007199254740992.0, true, INT64_C(9007199254740993));
  check_number("9223372036854775807", 0x1p63, true, INT64_MAX);
  check_number("-9223372036854775808", -0x1p63, true, INT64_MIN);
  check_number("9223372036854775808", 0x1p63, false, 0);
  check_number("1.00000000000000000000000000001", 1.0, false, 0);
  check_number("1e300", 1e300, false, 0);
  refuse("1e400", "t:1:1: 1e400 is outside the range of double");
  refuse("[-1e400]", "outside the range");
  refuse("1e-400", "outside the range");
  refuse("01", "leading zero");
  refuse("-", "a digit");
  refuse("1.", "a digit");
  refuse(".5", "a value");
  refuse("+1", "a value");
  refuse("1e+", "a digit");
  refuse("0x10", "the end of the text");
  refuse("1000000000000000000000000000000000000000000000000000000000000000", "at most 62");
}

static void test_depth(void **state)
{
  (void)state;
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_STACK, &limit);
  char *text = malloc(200001);
  memset(text, '[', 100000);
  refuse_bytes(text, 100000, "t:1:65: nesting deeper than 64 levels");
  memset(text, '[', 64);
  memset(text + 64, ']', 64);
  text[128] = '\0';
  ts_json *doc = accept(text);
  ts_json_destroy(&doc);
  free(text);
}

/* 200,000 members: a quadratic search for duplicates would take minutes. */
static void test_large_object(void **state)
{
  (void)state;
  enum { N = 200000 };
  char *text = malloc(N * 20 + 3), *end = text;
  *end++ = '{';
  for (int i = 0; i < N; ++i)
    end += sprintf(end, "%s\"k%d\":%d", i ? "," : "", i, i);
  *end++ = '}';
  *end = '\0';
  ts_json *doc = accept(text);
  int64_t value;
  assert_int_equal(ts_json_int64(ts_json_member(ts_json_root(doc), "k123456"), &value), 0);
  assert_int_equal(value, 123456);
  ts_json_destroy(&doc);
  free(text);
}

static void test_comma_locale(void **state)
{
  (void)state;
  if (use_comma_locale()) assert_string_equal(localeconv()->decimal_point, ",");
  check_number("1.5", 1.5, false, 0);
  ts_json *doc = accept("[0.25]");
  char shown[64];
  assert_string_equal(ts_json_show(ts_json_at(ts_json_root(doc), 0), shown, sizeof shown), "0.25");
  ts_json_destroy(&doc);
  setlocale(LC_ALL, "C");
}

static void test_files(void **state)
{
  (void)state;
  ts_json *doc = NULL;
  assert_int_equal(ts_json_read("/nonexistent/a.json", &doc), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "/nonexistent/a.json: cannot open"));
  assert_int_equal(ts_json_read("/", &doc), TS_ERR_INPUT);
  assert_null(doc);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tree),         cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_utf8),         cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_depth),        cmocka_unit_test(test_large_object),
      cmocka_unit_test(test_comma_locale), cmocka_unit_test(test_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
