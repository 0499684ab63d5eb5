/* SPDX-License-Identifier: MIT
 *
 * Codes, exit statuses, and messages that belong to their thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/error.h"

static int fails(int value)
{
  return value < 0 ? tsi_fail(TS_ERR_ARG, "value %d is below 0", value) : 0;
}

static int propagates(int value, int *reached)
{
  TS_TRY(fails(value));
  *reached = 1;
  return 0;
}

static void message_names_the_value(void **state)
{
  (void)state;
  int reached = 0;
  assert_int_equal(propagates(-3, &reached), TS_ERR_ARG);
  assert_int_equal(reached, 0);
  assert_string_equal(ts_error_message(), "value -3 is below 0");
  assert_int_equal(propagates(3, &reached), 0);
  assert_int_equal(reached, 1);
}

static void *other_thread(void *arg)
{
  (void)arg;
  const int clean = strcmp(ts_error_message(), "") == 0;
  tsi_fail(TS_ERR_IO, "of the other thread");
  return clean ? NULL : "saw a message of another thread";
}

static void message_belongs_to_the_thread(void **state)
{
  (void)state;
  pthread_t thread;
  void *complaint = NULL;
  tsi_fail(TS_ERR_IO, "mine");
  assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
  assert_int_equal(pthread_join(thread, &complaint), 0);
  assert_null(complaint);
  assert_string_equal(ts_error_message(), "mine");
}

static void long_message_is_cut(void **state)
{
  (void)state;
  char text[5000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  tsi_fail(TS_ERR_INPUT, "%s", text);
  assert_true(strlen(ts_error_message()) < sizeof text);
  assert_memory_equal(ts_error_message(), text, strlen(ts_error_message()));
}

static void statuses_map_to_exits(void **state)
{
  (void)state;
  assert_int_equal(ts_status_exit(TS_OK), 0);
  assert_int_equal(ts_status_exit(TS_ERR_INPUT), 1);
  assert_int_equal(ts_status_exit(TS_ERR_SIMULATION), 2);
  assert_int_equal(ts_status_exit(TS_ERR_MEMORY), 3);
  assert_int_equal(ts_status_exit(TS_ERR_STOPPED), 4);
  assert_int_equal(ts_status_exit(-12345), 3);
  assert_string_equal(ts_status_text(-12345), "unknown status");
  assert_string_equal(ts_status_text(TS_ERR_MEMORY), "memory ran out");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(message_names_the_value),
      cmocka_unit_test(message_belongs_to_the_thread),
      cmocka_unit_test(long_message_is_cut),
      cmocka_unit_test(statuses_map_to_exits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
