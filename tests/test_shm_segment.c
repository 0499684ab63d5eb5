/* SPDX-License-Identifier: MIT
 *
 * Shared segments: two users see the same memory; too large a one fails in one line with both
 * sizes; the name of a killed job is removed by the next one, that of a living one is not. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "comm/shm.h"
#include "runtime/error.h"

static bool exists(const char *name)
{
  const int file = shm_open(name, O_RDWR, 0);
  if (file >= 0) close(file);
  return file >= 0;
}

static void shared(void **state)
{
  (void)state;
  ts_shm *one = NULL, *two = NULL;
  char name[128];
  assert_int_equal(ts_shm_create(10000, &one), 0);
  snprintf(name, sizeof name, "%s", ts_shm_name(one));
  assert_int_equal(ts_shm_attach(name, 10000, &two), 0);
  ((char *)ts_shm_memory(one))[9999] = 7;
  assert_int_equal(((char *)ts_shm_memory(two))[9999], 7);
  ts_shm_destroy(&two);
  ts_shm_destroy(&one);
  assert_null(one);
  assert_false(exists(name));
  assert_int_equal(ts_shm_attach(name, 10000, &two), TS_ERR_SYSTEM);
  assert_null(two);
  assert_non_null(strstr(ts_error_message(), name));
}

static void too_large(void **state)
{
  (void)state;
  ts_shm *shm = NULL;
  assert_int_equal(ts_shm_create((size_t)1 << 50, &shm), TS_ERR_SYSTEM);
  assert_null(shm);
  assert_non_null(strstr(ts_error_message(), "/dev/shm: "));
  assert_non_null(strstr(ts_error_message(), "MB are free, the collectives need 1125899906.8 MB"));
  assert_null(strchr(ts_error_message(), '\n'));
}

/* A child creates a segment, tells its name, and waits for the end. */
static pid_t start_job(char name[128])
{
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    ts_shm *shm = NULL;
    char text[128] = "";
    if (ts_shm_create(4096, &shm)) _exit(1);
    snprintf(text, sizeof text, "%s", ts_shm_name(shm));
    if (write(ends[1], text, sizeof text) != sizeof text) _exit(1);
    pause();
    _exit(0);
  }
  assert_int_equal(read(ends[0], name, 128), 128);
  close(ends[0]);
  close(ends[1]);
  return pid;
}

static void stale(void **state)
{
  (void)state;
  char dead[128], living[128];
  const pid_t first = start_job(dead), second = start_job(living);
  ts_shm *shm = NULL;
  kill(first, SIGKILL); /* and stays a zombie */
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)first, &info, WEXITED | WNOWAIT), 0);
  assert_true(exists(dead));
  assert_int_equal(ts_shm_create(4096, &shm), 0);
  assert_false(exists(dead));
  assert_true(exists(living));
  ts_shm_destroy(&shm);
  kill(second, SIGKILL);
  waitpid(first, NULL, 0);
  waitpid(second, NULL, 0);
  assert_true(ts_shm_sweep() >= 1);
  assert_false(exists(living));
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared), cmocka_unit_test(too_large),
                                     cmocka_unit_test(stale)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
