/* SPDX-License-Identifier: MIT
 *
 * log.csv: every number reads back, also under a comma locale; a resume drops the rows after the
 * step it resumes from and a half-written last line; a file that is not ours is refused.  And
 * summary.json holds what the run reached. */
#include "md/report.h"
#include "runtime/error.h"
#include "runtime/json.h"
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

static char folder[64], path[80];

static int set_up(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/tessera-test-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/log.csv", folder);
  return 0;
}

static int tear_down(void **state)
{
  char summary[80];
  (void)state;
  setlocale(LC_ALL, "C");
  snprintf(summary, sizeof summary, "%s/summary.json", folder);
  unlink(summary);
  unlink(path);
  return rmdir(folder);
}

static ts_observables values(int64_t step)
{
  return (ts_observables){.step = step,
                          .time = (double)step * 5e-4,
                          .epot = -1234.5 - 1.0 / 3.0,
                          .ekin = 0.1 * (double)step,
                          .temperature = 301.25,
                          .pressure = step % 2 ? NAN : -17.5,
                          .stress = {1, 2, 3, 4, 5, 6e-9},
                          .max_force_gid = 41};
}

static ts_report *open_report(int64_t first, bool resume)
{
  const ts_report_params params = {
      .directory = folder, .natoms = 10, .first_step = first, .last_step = 100, .resume = resume};
  ts_report *report;
  if (ts_report_create(&params, &report)) fail_msg("%s", ts_error_message());
  return report;
}

static void write_rows(ts_report *report, int64_t first, int64_t last)
{
  for (int64_t step = first; step <= last; step += 10) {
    const ts_observables row = values(step);
    ts_report_progress(report, step);
    assert_int_equal(ts_report_row(report, &row), 0);
  }
}

/* The file without the last two columns of each line, which depend on the clock. */
static char *read_csv(void)
{
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = calloc(1, 100000), line[4096];
  assert_non_null(text);
  while (fgets(line, sizeof line, file)) {
    *strrchr(line, ',') = '\0';
    *strrchr(line, ',') = '\0';
    strcat(strcat(text, line), "\n");
  }
  fclose(file);
  return text;
}

static void append_to_csv(const char *text)
{
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void starts_with(const char *text, const char *start)
{
  if (strncmp(text, start, strlen(start)))
    fail_msg("'%.80s' does not start with '%s'", text, start);
}

static void test_numbers(void **state)
{
  (void)state;
  for (int comma = 0; comma < 2; comma++) {
    if (comma && !use_comma_locale()) break;
    ts_report *report = open_report(0, false);
    write_rows(report, 30, 40);
    ts_report_destroy(&report);
    char *text = read_csv(), *row = strchr(text, '\n') + 1;
    starts_with(text, "step,time_ps,potential_eV,kinetic_eV,total_eV,conserved_eV,");
    starts_with(row, "30,0.015,-1234.8333333333333,3,0,0,301.25,-17.5,0,");
    assert_non_null(strstr(row, ",1,2,3,4,5,6e-09,0,0,0,0,42\n"));
    free(text);
  }
  setlocale(LC_ALL, "C");
}

static void test_resume(void **state)
{
  (void)state;
  ts_report *report = open_report(0, false);
  write_rows(report, 0, 100);
  ts_report_destroy(&report);
  char *straight = read_csv();

  static const char *const tail[] = {"", "110,0.05", "110,0.05,1,2\n", "junk\n"};
  for (int i = 0; i < 4; i++) {
    report = open_report(0, false);
    write_rows(report, 0, i % 2 ? 50 : 80); /* killed after step 50 or 80, checkpoint of 50 */
    ts_report_destroy(&report);
    append_to_csv(tail[i]);
    report = open_report(50, true);
    write_rows(report, 60, 100);
    ts_report_destroy(&report);
    char *resumed = read_csv();
    assert_string_equal(straight, resumed);
    free(resumed);
  }
  unlink(path); /* the file is gone: begin one */
  report = open_report(50, true);
  write_rows(report, 60, 60);
  ts_report_destroy(&report);
  char *begun = read_csv();
  assert_memory_equal(begun, straight, strcspn(straight, "\n"));
  starts_with(strchr(begun, '\n') + 1, "60,0.03,");
  free(begun);
  free(straight);
}

static void test_refused(void **state)
{
  (void)state;
  const ts_report_params params = {
      .directory = folder, .natoms = 1, .last_step = 9, .resume = true};
  const ts_report_params nowhere = {.directory = "/nonexistent", .natoms = 1, .last_step = 9};
  ts_report *report;
  static const char *const text[] = {"", "step,time\n1,2\n", "step"};
  for (int i = 0; i < 3; i++) {
    unlink(path);
    append_to_csv(text[i]);
    assert_int_equal(ts_report_create(&params, &report), TS_ERR_INPUT);
    assert_null(report);
    assert_non_null(strstr(ts_error_message(), "log.csv:1: not the columns"));
  }
  assert_int_equal(ts_report_create(&nowhere, &report), TS_ERR_IO);
  assert_non_null(strstr(ts_error_message(), "/nonexistent/log.csv"));
}

static double member(const ts_json *doc, const char *object, const char *key)
{
  const ts_json_node *node = ts_json_root(doc);
  if (object) node = ts_json_member(node, object);
  assert_non_null(node);
  node = ts_json_member(node, key);
  assert_non_null(node);
  return ts_json_node_kind(node) == TS_JSON_NUMBER ? ts_json_number(node) : NAN;
}

static void test_summary(void **state)
{
  (void)state;
  char name[80];
  const ts_phase phase[] = {{"project", 0.5}, {"rebuild", 0.25}};
  const ts_observables last = values(80);
  const ts_observer observer = {.count = 4, .mean_temperature = 300, .temperature_m2 = 16};
  ts_report *report = open_report(20, false);
  ts_json_writer *writer;
  ts_json *doc;
  ts_report_progress(report, 80);
  ts_report_phases(report, 2, phase);
  assert_int_equal(ts_report_summary_begin(report, "done", &last, &observer, 2, phase, &writer), 0);
  ts_json_put_int(writer, "rebuilds", 7);
  assert_int_equal(ts_report_summary_end(report), 0);
  ts_report_destroy(&report);
  snprintf(name, sizeof name, "%s/summary.json", folder);
  if (ts_json_read(name, &doc)) fail_msg("%s", ts_error_message());
  assert_string_equal(ts_json_string(ts_json_member(ts_json_root(doc), "status")), "done");
  assert_true(member(doc, NULL, "steps_made") == 60.0);
  assert_true(member(doc, NULL, "rebuilds") == 7.0);
  assert_true(member(doc, NULL, "wall_s") > 0.0);
  assert_true(member(doc, "last", "potential_eV") == last.epot);
  assert_true(member(doc, "mean", "temperature_deviation_K") == 2.0);
  assert_true(member(doc, "phases_s", "rebuild") == 0.25);
  ts_json_destroy(&doc);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_summary),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
