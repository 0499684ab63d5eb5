/* SPDX-License-Identifier: MIT
 *
 * What a terminal shows: a table with a header every twenty rows, and a progress bar that is erased
 * before each row and shown only if standard error is a terminal. */
#include "md/report.h"
#include "runtime/error.h"
#include "runtime/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64];
static int terminal = -1;

static int set_up(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/tessera-test-XXXXXX");
  terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) {
    printf("no pseudo-terminal here: not checked\n");
    exit(77);
  }
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
  char path[80];
  (void)state;
  snprintf(path, sizeof path, "%s/log.csv", folder);
  unlink(path);
  return rmdir(folder);
}

/* Rows of a run of 100 steps with standard output and error going to `to`. */
static void run_on(int to)
{
  const ts_report_params params = {.directory = folder, .natoms = 10, .last_step = 100};
  const int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
  ts_report *report = NULL;
  fflush(NULL);
  dup2(to, STDOUT_FILENO);
  dup2(to, STDERR_FILENO);
  int status = ts_report_create(&params, &report);
  for (int step = 1; !status && step <= 100; step++) {
    const ts_observables row = {.step = step, .time = 0.02 * step, .drift = 7.25};
    ts_report_progress(report, step);
    if (step == 50) ts_log(TS_LOG_INFO, "a line of the log");
    if (step % 4 == 0) status = ts_report_row(report, &row);
  }
  ts_report_destroy(&report);
  fflush(NULL);
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  close(out);
  close(error);
  if (status) fail_msg("%s", ts_error_message());
}

static int count(const char *text, const char *what)
{
  int found = 0;
  for (; (text = strstr(text, what)); text++)
    found++;
  return found;
}

static void read_into(int from, char *text, size_t room)
{
  size_t length = 0;
  for (ssize_t got; (got = read(from, text + length, room - 1 - length)) > 0;)
    length += (size_t)got;
  text[length] = '\0';
}

static void test_terminal(void **state)
{
  (void)state;
  static char text[65536];
  const int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  struct termios raw;
  assert_true(screen >= 0);
  assert_int_equal(tcgetattr(screen, &raw), 0);
  cfmakeraw(&raw);
  assert_int_equal(tcsetattr(screen, TCSANOW, &raw), 0);
  assert_int_equal(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
  run_on(screen); /* fits the terminal's buffer */
  read_into(terminal, text, sizeof text);
  close(screen);
  assert_int_equal(count(text, "E_pot/eV"), 2);
  assert_int_equal(count(text, "\n"), 25 + 2 + 1);
  const int drawn = count(text, "\r\033[K[");
  assert_true(drawn >= 25);                                  /* again after each row */
  assert_int_equal(count(text, "\r\033[K"), drawn + 25 + 1); /* and erased before it */
  assert_non_null(strstr(text, " left\r\033[Ka line of the log\n"));
  assert_non_null(strstr(text, "step 1 of 100, "));
  assert_non_null(strstr(text, " s left\r\033[K"));
  assert_non_null(strstr(text, "]  97 %  step 97 of 100"));
  assert_null(strstr(text, "left\n"));
}

static void test_pipe(void **state)
{
  (void)state;
  static char text[65536];
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  run_on(ends[1]);
  close(ends[1]);
  read_into(ends[0], text, sizeof text);
  close(ends[0]);
  assert_int_equal(count(text, "\n"), 25 + 2 + 1);
  assert_null(strchr(text, '\r'));
  assert_int_equal(count(text, "7.250"), 100 / 4 - 48 / 4); /* from 1 ps on */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_terminal),
      cmocka_unit_test(test_pipe),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
