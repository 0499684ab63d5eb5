/* SPDX-License-Identifier: MIT
 *
 * What follows from the table of keys: the filled-in job reads back to the same bytes, the schema
 * shows every key and nothing planned, and the documentation holds the table as it is. */
#include "md/job.h"
#include "md/job_schema.h"
#include "runtime/error.h"
#include "runtime/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *folder(const char *variable, const char *otherwise)
{
  const char *value = getenv(variable);
  return value ? value : otherwise;
}

/* A stream that grows in memory, and the whole of a file; both to be freed. */
static char *print_job(const ts_job *job)
{
  char *text;
  size_t length;
  FILE *stream = open_memstream(&text, &length);
  assert_int_equal(ts_job_print(job, stream), 0);
  fclose(stream);
  return text;
}

static char *read_file(const char *path)
{
  char *text;
  size_t length;
  FILE *stream = open_memstream(&text, &length), *file = fopen(path, "r");
  if (!file) fail_msg("cannot open %s", path);
  for (int c; (c = getc(file)) != EOF;)
    putc(c, stream);
  fclose(file);
  fclose(stream);
  return text;
}

static void check_same(const char *path, int nset, const char *const *set)
{
  ts_job first, second;
  if (ts_job_read(path, nset, set, &first)) fail_msg("%s", ts_error_message());
  char *text = print_job(&first);
  if (ts_job_parse(text, strlen(text), path, 0, NULL, &second)) fail_msg("%s", ts_error_message());
  assert_memory_equal(&first, &second, sizeof first);
  free(text);
}

static void test_filled_in_job_reads_back(void **state)
{
  (void)state;
  char path[1024];
  snprintf(path, sizeof path, "%s/job/example.json", folder("TS_TEST_DATA", "tests/data"));
  check_same(path, 0, NULL);
  const char *const set[] = {"task=energy",
                             "timestep_fs=0.1234567890123456789",
                             "charge=-3",
                             "multiplicity=4",
                             "max_walltime=12345:59:59",
                             "ensemble.kind=nve",
                             "velocities.source=read",
                             "velocities.seed=9007199254740993",
                             "neighbors.skin_A=1e-3",
                             "execution.tile_atoms=48",
                             "execution.radial_tolerance=3.3e-9",
                             "execution.workers=2",
                             "output.trajectory.file=q\\\"\u00e9.xyz",
                             "output.directory=/a b/\u00e9",
                             "output.rdf.pairs=[]"};
  check_same(path, sizeof set / sizeof *set, set);
}

static const ts_json_node *schema_of(const ts_json_node *root, const char *path)
{
  char part[64];
  const ts_json_node *node = root;
  for (const char *c = path; node && *c;) {
    const size_t length = strcspn(c, ".");
    snprintf(part, sizeof part, "%.*s", (int)length, c);
    node = ts_json_member(node, "properties");
    if (node) node = ts_json_member(node, part);
    c += length + (c[length] == '.');
  }
  return node;
}

static void test_schema_shows_every_key(void **state)
{
  (void)state;
  char *text;
  size_t length;
  FILE *stream = open_memstream(&text, &length);
  assert_int_equal(ts_job_print_schema(stream), 0);
  fclose(stream);
  ts_json *doc;
  if (ts_json_parse(text, length, "schema", &doc)) fail_msg("%s", ts_error_message());
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    const ts_json_node *node = schema_of(ts_json_root(doc), key->path);
    if (!node != key->planned) fail_msg("%s: wrong in the schema", key->path);
    if (key->planned) continue;
    assert_non_null(ts_json_member(node, "description"));
    if (key->type == TSI_JOB_SECTION)
      assert_false(ts_json_bool(ts_json_member(node, "additionalProperties")));
    else
      assert_true(!key->fallback == !ts_json_member(node, "default"));
  }
  static const char *const planned[] = {"relax", "npt",   "csvr", "nose",
                                        "dcd",   "trace", "tf32", "fp32"};
  for (size_t i = 0; i < sizeof planned / sizeof *planned; ++i)
    if (strstr(text, planned[i])) fail_msg("the schema shows %s", planned[i]);
  ts_json_destroy(&doc);
  free(text);
}

static void test_documentation_holds_the_table(void **state)
{
  (void)state;
  char path[1024], *table;
  size_t length;
  FILE *stream = open_memstream(&table, &length);
  ts_job_print_table(stream);
  fclose(stream);
  snprintf(path, sizeof path, "%s/docs/job-file.md", folder("TS_SOURCE_DIR", "."));
  char *text = read_file(path);
  for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n"))
    if (!strstr(text, line)) fail_msg("docs/job-file.md lacks this line:\n%s", line);
  free(text);
  free(table);
}

static void test_table_is_sound(void **state)
{
  (void)state;
  for (int i = 0; i < tsi_job_key_count; ++i) {
    const tsi_job_key *key = &tsi_job_keys[i];
    assert_ptr_equal(tsi_job_key_find(key->path), key);
    if (!key->planned) assert_ptr_equal(tsi_job_key_nearest(key->path), key);
    const char *dot = strrchr(key->path, '.');
    if (!dot) continue;
    char parent[64];
    snprintf(parent, sizeof parent, "%.*s", (int)(dot - key->path), key->path);
    assert_int_equal(tsi_job_key_find(parent)->type, TSI_JOB_SECTION);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_filled_in_job_reads_back),
      cmocka_unit_test(test_schema_shows_every_key),
      cmocka_unit_test(test_documentation_holds_the_table),
      cmocka_unit_test(test_table_is_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
