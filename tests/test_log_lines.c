/* SPDX-License-Identifier: MIT
 *
 * Lines of several threads never mix, levels and ranks are respected, long lines are cut, and a
 * line takes the place of a progress bar. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/log.h"

enum { THREADS = 4, LINES = 200 };

static FILE *captured;
static int saved;

static void capture(void)
{
  captured = tmpfile();
  assert_non_null(captured);
  saved = dup(STDERR_FILENO);
  dup2(fileno(captured), STDERR_FILENO);
}

/* Back to the terminal; the captured text is to be read from its beginning. */
static void release(void)
{
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(captured);
}

static void *speak(void *arg)
{
  const char c = *(const char *)arg;
  char text[101];
  memset(text, c, 100);
  text[100] = 0;
  for (int i = 0; i < LINES; i++)
    ts_log(TS_LOG_INFO, "%s", text);
  return NULL;
}

static void lines_stay_whole(void **state)
{
  (void)state;
  pthread_t threads[THREADS];
  char names[THREADS] = {'a', 'b', 'c', 'd'}, line[256];
  int count = 0;
  capture();
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, speak, &names[i]);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  release();
  for (; fgets(line, sizeof line, captured); count++) {
    assert_int_equal(strlen(line), 101);
    for (int i = 1; i < 100; i++)
      assert_int_equal(line[i], line[0]);
  }
  assert_int_equal(count, THREADS * LINES);
  fclose(captured);
}

static void levels_and_ranks(void **state)
{
  (void)state;
  char text[1000] = "";
  capture();
  ts_log(TS_LOG_DEBUG, "hidden");
  ts_log(TS_LOG_WARNING, "low by %d", 3);
  ts_log_set_rank(2);
  ts_log(TS_LOG_INFO, "hidden");
  ts_log(TS_LOG_ERROR, "broken");
  ts_log_set_rank(0);
  ts_log_set_level(TS_LOG_ERROR);
  ts_log(TS_LOG_WARNING, "hidden");
  ts_log_set_level(TS_LOG_INFO);
  release();
  text[fread(text, 1, sizeof text - 1, captured)] = 0;
  assert_string_equal(text, "warning: low by 3\nrank 2: error: broken\n");
  fclose(captured);
}

static void bar_is_erased(void **state)
{
  (void)state;
  char text[1000] = "";
  capture();
  ts_log_set_bar(true);
  ts_log(TS_LOG_DEBUG, "hidden");
  ts_log(TS_LOG_WARNING, "first");
  ts_log(TS_LOG_INFO, "second");
  ts_log_set_bar(true);
  ts_log_set_bar(false);
  ts_log(TS_LOG_INFO, "third");
  release();
  text[fread(text, 1, sizeof text - 1, captured)] = 0;
  assert_string_equal(text, "\r\033[Kwarning: first\nsecond\nthird\n");
  fclose(captured);
}

static void long_line_is_cut(void **state)
{
  (void)state;
  static char text[10000], read_back[10000];
  memset(text, 'x', sizeof text - 1);
  capture();
  ts_log(TS_LOG_INFO, "%s", text);
  release();
  const size_t length = fread(read_back, 1, sizeof read_back, captured);
  assert_true(length > 1000 && length < sizeof text);
  assert_int_equal(read_back[length - 1], '\n');
  assert_int_equal(read_back[length - 2], 'x');
  fclose(captured);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_stay_whole),
      cmocka_unit_test(levels_and_ranks),
      cmocka_unit_test(bar_is_erased),
      cmocka_unit_test(long_line_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
