/* SPDX-License-Identifier: MIT
 *
 * A run inside a program that has chosen a locale with a decimal comma reads and writes the same
 * files as any other. */
#include "md/run.h"
#include "runtime/error.h"
#include "tests/comma_locale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/tessera-test-XXXXXX";

/* Set up and run a job of four steps; its exit status is that of the process. */
static int run(const char *name, bool comma)
{
  static ts_job job;
  char text[1024], path[128], output[128];
  const char *source = getenv("TS_SOURCE_DIR");
  if (!source) source = ".";
  snprintf(text, sizeof text,
           "{\"structure\": \"%s/tests/data/water-21.xyz\", \"timestep_fs\": 0.25,"
           " \"model\": \"%s/examples/salt-water/salt-water-small.safetensors\", \"steps\": 4,"
           " \"output\": {\"log_every\": 2, \"trajectory\": {\"file\": \"traj.xyz\", \"every\": 1},"
           " \"checkpoint\": {\"every\": 0}, \"rdf\": {\"pairs\": [\"O-H\"], \"every\": 2}}}",
           source, source);
  snprintf(path, sizeof path, "%s/job.json", folder);
  snprintf(output, sizeof output, "output.directory=%s", name);
  if (comma && !use_comma_locale()) return 1;
  const char *set = output;
  int status = ts_job_parse(text, strlen(text), path, 1, &set, &job);
  if (!status) status = ts_run_job(&job, false);
  if (status) fprintf(stderr, "%s\n", ts_error_message());
  return status ? 1 : 0;
}

/* MPI starts once in a process, so each run has its own. */
static int run_apart(const char *name, bool comma)
{
  int status = 0;
  const pid_t child = fork();
  if (!child) exit(run(name, comma));
  assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

static char *read_file(const char *run, const char *name)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s/%s", folder, run, name);
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("%s is missing", path);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
  fclose(file);
  return text;
}

static void test_same_files(void **state)
{
  static const char *const files[] = {"traj.xyz", "rdf.csv"};
  (void)state;
  assert_int_equal(run_apart("point", false), 0);
  assert_int_equal(run_apart("comma", true), 0);
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    char *expected = read_file("point", files[i]), *got = read_file("comma", files[i]);
    assert_string_equal(got, expected);
    free(expected);
    free(got);
  }
}

static int set_up(void **state)
{
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
  char command[64];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_files)};
  if (!use_comma_locale()) {
    printf("skipped: localedef (Debian: libc-bin) cannot make a comma locale\n");
    return 77;
  }
  setlocale(LC_ALL, "C");
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
