/* SPDX-License-Identifier: MIT
 *
 * What runtime/json_write writes, runtime/json reads back: every digit, every character, also under
 * a comma locale; and the file appears whole or not at all. */
#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/json.h"
#include "runtime/json_write.h"
#include "tests/comma_locale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const double numbers[] = {0.0, -1.5, 1.0 / 3.0, 1e-300, 4.35, 1e22, 123456789.123456789};
enum { COUNT = sizeof numbers / sizeof *numbers };
static const char *const hard = "tab\t quote\" slash\\ newline\n bell\a \xC3\x85";

static ts_json_writer *write_all(void)
{
  ts_json_writer *w;
  assert_int_equal(ts_json_writer_create(&w), 0);
  ts_json_put_string(w, hard, hard);
  ts_json_put_int(w, "int", INT64_MIN);
  ts_json_put_bool(w, "bool", false);
  ts_json_put_number(w, "nan", NAN);
  ts_json_put_number(w, "infinity", -INFINITY);
  ts_json_put_numbers(w, "numbers", COUNT, numbers);
  ts_json_open_object(w, "empty");
  ts_json_close(w);
  ts_json_open_array(w, "list");
  for (int i = 0; i < COUNT; i++)
    ts_json_put_number(w, NULL, numbers[i]);
  ts_json_open_object(w, NULL);
  ts_json_put_string(w, "in", "");
  return w; /* three levels open */
}

static void check(const ts_json *doc)
{
  const ts_json_node *root = ts_json_root(doc);
  const ts_json_node *row = ts_json_member(root, "numbers"), *list = ts_json_member(root, "list");
  int64_t integer;
  assert_string_equal(ts_json_string(ts_json_member(root, hard)), hard);
  assert_int_equal(ts_json_int64(ts_json_member(root, "int"), &integer), 0);
  assert_true(integer == INT64_MIN);
  assert_false(ts_json_bool(ts_json_member(root, "bool")));
  assert_int_equal(ts_json_node_kind(ts_json_member(root, "nan")), TS_JSON_NULL);
  assert_int_equal(ts_json_node_kind(ts_json_member(root, "infinity")), TS_JSON_NULL);
  assert_int_equal(ts_json_size(ts_json_member(root, "empty")), 0);
  assert_int_equal(ts_json_size(row), COUNT);
  assert_int_equal(ts_json_size(list), COUNT + 1);
  for (int i = 0; i < COUNT; i++) {
    assert_true(ts_json_number(ts_json_at(row, i)) == numbers[i]);
    assert_true(ts_json_number(ts_json_at(list, i)) == numbers[i]);
  }
  assert_string_equal(ts_json_string(ts_json_member(ts_json_at(list, COUNT), "in")), "");
}

static void test_reads_back(void **state)
{
  (void)state;
  for (int comma = 0; comma < 2; comma++) {
    if (comma && !use_comma_locale()) break;
    ts_json_writer *w = write_all();
    ts_json *doc;
    const char *text = ts_json_writer_text(w);
    if (ts_json_parse(text, strlen(text), "t", &doc)) fail_msg("%s", ts_error_message());
    check(doc);
    ts_json_destroy(&doc);
    ts_json_writer_destroy(&w);
  }
  setlocale(LC_ALL, "C");
}

static void test_file(void **state)
{
  (void)state;
  char folder[] = "/tmp/tessera-test-XXXXXX", path[64], part[80];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/s.json", folder);
  snprintf(part, sizeof part, "%s.part", path);

  ts_json_writer *w = write_all();
  ts_json *doc;
  assert_int_equal(ts_json_writer_save(w, path), 0);
  assert_int_not_equal(access(part, F_OK), 0);
  assert_int_equal(ts_json_read(path, &doc), 0);
  check(doc);
  ts_json_destroy(&doc);
  assert_int_equal(ts_json_writer_save(w, "/nonexistent/s.json"), TS_ERR_IO);
  assert_non_null(strstr(ts_error_message(), "/nonexistent/s.json"));
  ts_json_writer_destroy(&w);

  ts_aside aside; /* given up: the old file stays */
  assert_int_equal(ts_aside_open(path, &aside), 0);
  fputs("half", aside.file);
  ts_aside_abandon(&aside);
  assert_int_not_equal(access(part, F_OK), 0);
  assert_int_equal(ts_json_read(path, &doc), 0);
  ts_json_destroy(&doc);

  unlink(path);
  rmdir(folder);
}

/* A full disk is an error of the commit, and the old file stays. */
static void test_full_disk(void **state)
{
  (void)state;
  ts_aside aside;
  if (access("/dev/full", W_OK)) skip();
  assert_int_equal(ts_aside_open("/tmp/tessera-test-full", &aside), 0);
  assert_non_null(freopen("/dev/full", "w", aside.file));
  fputs("lost", aside.file);
  assert_int_equal(ts_aside_commit(&aside), TS_ERR_IO);
  assert_non_null(strstr(ts_error_message(), "No space"));
  assert_int_not_equal(access("/tmp/tessera-test-full", F_OK), 0);
  assert_int_not_equal(access("/tmp/tessera-test-full.part", F_OK), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_back),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_full_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
