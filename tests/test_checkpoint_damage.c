/* SPDX-License-Identifier: MIT
 *
 * A damaged checkpoint is noticed whichever byte is wrong or missing, an older one takes its place,
 * a seal that was made on purpose cannot lead the reader astray, and a kill at any moment leaves
 * the newest sound checkpoint in place. */
#include "md/checkpoint.h"
#include "md/checkpoint_impl.h"
#include "runtime/crc64.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tests/checkpoint_sample.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <cmocka.h>

static void write_step(const char *path, const ts_system *s, int64_t step, int keep)
{
  ts_checkpoint *cp = sample_checkpoint(s, step);
  if (ts_checkpoint_write(cp, path, keep)) fail_msg("%s", ts_error_message());
  ts_checkpoint_destroy(&cp);
}

/* Step of the newest sound checkpoint, or -1. */
static int64_t newest(const char *path)
{
  ts_checkpoint *cp = NULL;
  if (ts_checkpoint_read(&alone, path, &cp)) return -1;
  const int64_t step = ts_checkpoint_step(cp);
  ts_checkpoint_destroy(&cp);
  return step;
}

static void refuse(const char *path)
{
  ts_checkpoint *cp = NULL;
  assert_int_equal(ts_checkpoint_read_file(&alone, path, &cp), TS_ERR_INPUT);
  assert_null(cp);
}

static void test_every_byte(void **state)
{
  (void)state;
  char folder[64], path[96], *data;
  sample_folder(folder, path);
  ts_system *s = sample_system(2, 1);
  write_step(path, s, 3, 1);
  const long size = sample_load(path, &data);
  const int fd = open(path, O_RDWR);
  for (long at = 0; at < size; ++at) { /* one bit of every byte */
    const char wrong = (char)(data[at] ^ (1 << (at % 8)));
    assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
    refuse(path);
    assert_int_equal(pwrite(fd, &data[at], 1, at), 1);
  }
  assert_int_equal(newest(path), 3);
  for (long cut = size - 1; cut >= 0; --cut) { /* every length */
    assert_int_equal(ftruncate(fd, cut), 0);
    refuse(path);
  }
  close(fd);
  sample_store(path, data, size); /* and the undamaged one is sound */
  assert_int_equal(newest(path), 3);
  data = realloc(data, (size_t)size + 1);
  data[size] = 0;
  sample_store(path, data, size + 1); /* longer than it says */
  refuse(path);
  free(data);
  ts_system_destroy(&s);
  sample_remove(folder);
}

static void test_older(void **state)
{
  (void)state;
  char folder[64], path[96], name[128], *data;
  sample_folder(folder, path);
  ts_system *s = sample_system(10, 1);
  assert_int_equal(newest(path), -1);
  assert_non_null(strstr(ts_error_message(), "there is no checkpoint"));
  for (int64_t step = 1; step <= 5; ++step) {
    write_step(path, s, step, 3);
    assert_int_equal(newest(path), step);
  }
  snprintf(name, sizeof name, "%s/checkpoint.3.h5", folder);
  assert_int_not_equal(access(name, F_OK), 0); /* three are kept: 5, 4 and 3 */
  for (int k = 0; k < 3; ++k) {
    assert_int_equal(newest(path), 5 - k);
    snprintf(name, sizeof name, k ? "%s/checkpoint.%d.h5" : "%s/checkpoint.h5", folder, k);
    const long size = sample_load(name, &data);
    data[size / 2] ^= 1;
    sample_store(name, data, size);
    free(data);
  }
  assert_int_equal(newest(path), -1);
  assert_non_null(strstr(ts_error_message(), "checkpoint.h5: not a sound checkpoint"));
  write_step(path, s, 6, 3); /* damaged ones are in nobody's way */
  assert_int_equal(newest(path), 6);
  ts_system_destroy(&s);
  sample_remove(folder);
}

/* Replace a part of the seal and make the checksum right again. */
static void reseal(char *data, long size, const char *from, const char *to)
{
  tsi_crc64 crc;
  char digits[17], *at = strstr(data, from), *sum = strstr(data, TSI_CHECKPOINT_CRC);
  assert_non_null(at);
  assert_int_equal(strlen(from), strlen(to));
  memcpy(at, to, strlen(to));
  if (!sum) return;
  sum += strlen(TSI_CHECKPOINT_CRC);
  memset(sum, '0', 16);
  tsi_crc64_begin(&crc);
  tsi_crc64_add(&crc, data, (size_t)size);
  snprintf(digits, sizeof digits, "%016lx", (unsigned long)tsi_crc64_value(&crc));
  memcpy(sum, digits, 16);
}

static void test_hostile(void **state)
{
  (void)state;
  static const char *const changes[][2] = {
      {"\nblock 1024\n", "\nblock 8192\n"},
      {"\nblock 1024\n", "\nblock 1000\n"},
      {"\nblock 1024\n", "\nblock -024\n"},
      {"\nbytes ", "\nbytes -"},
      {"\narrays 1", "\narrays 0"},
      {"\narrays 1", "\narrays 9"},
      {"\nx double 2 3", "\nx double 0 3"},
      {"\nx double 2 3", "\nx double 9 3"},
      {"\nx double 2 3", "\nv double 2 3"},
      {"\nx double 2 3", "\nx dooble 2 3"},
      {"\nx double 2 3", "\nX double 2 3"},
      {"\nx double 2 3", "\nx double 2  "},
      {"\nz uint8 2 1 ", "\nz uint8 2 1\n"},
      {"\nstep int64", "\nsteq int64"},
      {"\nstep int64 1 1", "\nstep int32 1 1"},
      {"\ncell double 9 1", "\ncell double 8 1"},
      {"\nz uint8 2 1 ", "\nz uint8 1 1 "},
      {"\nz uint8 2 1 ", "\nz uint8 2 9 "},
  };
  char folder[64], path[96], *plain;
  sample_folder(folder, path);
  ts_system *s = sample_system(2, 1), *back = NULL;
  write_step(path, s, 3, 1);
  const long size = sample_load(path, &plain);
  char *data = calloc((size_t)size + 1, 1);
  for (size_t k = 0; k < sizeof changes / sizeof *changes; ++k) {
    char from[32];
    memcpy(data, plain, (size_t)size);
    snprintf(from, sizeof from, "%s", changes[k][0]);
    if (strlen(changes[k][1]) > strlen(from)) /* takes one character more */
      snprintf(from, sizeof from, "%.*s", (int)strlen(changes[k][1]), strstr(data, changes[k][0]));
    reseal(data, size, from, changes[k][1]);
    sample_store(path, data, size);
    ts_checkpoint *cp = NULL;
    int status = ts_checkpoint_read_file(&alone, path, &cp);
    if (!status) status = ts_checkpoint_get_system(cp, &back);
    if (status != TS_ERR_INPUT) fail_msg("%s was accepted", changes[k][1]);
    ts_checkpoint_destroy(&cp);
  }
  free(data);
  free(plain);
  ts_system_destroy(&s);
  sample_remove(folder);
}

/* Write checkpoints until killed; say through the pipe which step has returned. */
static void write_forever(const char *path, const ts_system *s, int64_t step, int out)
{
  for (;; ++step) {
    write_step(path, s, step, 2);
    if (write(out, &step, sizeof step) != sizeof step) _exit(1);
  }
}

static void test_kill(void **state)
{
  (void)state;
  const char *more = getenv("TS_KILLS"); /* a number, for a longer test */
  const int kills = more ? atoi(more) : 30;
  char folder[64], path[96];
  sample_folder(folder, path);
  ts_system *s = sample_system(300, 1);
  int64_t last = 0;
  srand(7);
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_forever(path, s, last + 1, ends[1]);
    close(ends[1]);
    int64_t step = 0;
    if (read(ends[0], &step, sizeof step) != sizeof step) fail_msg("the writer has failed");
    nanosleep(&(struct timespec){0, rand() % 10000000}, NULL);
    kill(child, SIGKILL);
    last = step;
    while (read(ends[0], &step, sizeof step) == sizeof step)
      last = step;
    waitpid(child, NULL, 0);
    close(ends[0]);
    const int64_t found = newest(path); /* what has returned is there, and perhaps one more */
    if (found < last || found > last + 1)
      fail_msg("step %ld was written, %ld was found", (long)last, (long)found);
    last = found;
  }
  ts_system_destroy(&s);
  sample_remove(folder);
}

int main(void)
{
  ts_log_set_level(TS_LOG_ERROR);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_byte),
      cmocka_unit_test(test_older),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_kill),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
