/* SPDX-License-Identifier: MIT
 *
 * Every key of a job: its right values, and what is refused with which words. */
#include "md/job.h"
#include "runtime/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static ts_job job;

static int parse(const char *members, int nset, const char *const *set)
{
  char text[2048];
  snprintf(text, sizeof text, "{\"structure\": \"s.xyz\",\n\"model\": \"m.st\"%s%s}",
           *members ? ",\n" : "", members);
  return ts_job_parse(text, strlen(text), "dir/job.json", nset, set, &job);
}

static void accept(const char *members)
{
  if (parse(members, 0, NULL)) fail_msg("%s", ts_error_message());
}

static void refuse(int status, const char *members, const char *expected)
{
  assert_int_equal(parse(members, 0, NULL), status);
  if (!strstr(ts_error_message(), expected))
    fail_msg("%s:\nmessage '%s'\nlacks   '%s'", members, ts_error_message(), expected);
}

static void wrong(const char *members, const char *expected)
{
  refuse(TS_ERR_INPUT, members, expected);
}

static void not_yet(const char *members, const char *expected)
{
  refuse(TS_ERR_UNSUPPORTED, members, expected);
}

static void test_defaults(void **state)
{
  (void)state;
  accept("");
  assert_string_equal(job.path, "dir/job.json");
  assert_int_equal(job.task, TS_TASK_MD);
  assert_int_equal(job.ensemble.kind, TS_ENSEMBLE_NVE);
  assert_int_equal(job.velocities.seed, 1);
  assert_true(job.charge == TS_JOB_UNSET && job.multiplicity == TS_JOB_UNSET);
  assert_int_equal(job.max_walltime, 0);
  assert_true(job.neighbors.skin == 0.5);
  assert_int_equal(job.execution.tile_atoms, 0);
  assert_true(job.execution.radial_tolerance == 0.0);
  assert_string_equal(job.execution.scheduler, "lws");
  assert_int_equal(job.output.rdf.npairs, 0);
  assert_int_equal(job.output.trajectory.format, TS_TRAJECTORY_H5MD);
}

static void test_root_keys(void **state)
{
  (void)state;
  accept(
      "\"task\": \"energy\", \"steps\": 2e3, \"timestep_fs\": 20, \"charge\": -10,"
      "\"multiplicity\": 20, \"max_walltime\": \"100:59:01\"");
  assert_int_equal(job.task, TS_TASK_ENERGY);
  assert_int_equal(job.steps, 2000);
  assert_true(job.timestep == 20.0);
  assert_int_equal(job.charge, -10);
  assert_int_equal(job.multiplicity, 20);
  assert_int_equal(job.max_walltime, 100 * 3600 + 59 * 60 + 1);
  accept("\"steps\": 0, \"charge\": null, \"multiplicity\": null, \"max_walltime\": null");
  wrong("\"task\": \"dance\"", "job.json:3: task is \"dance\"; expected \"md\" or \"energy\"");
  wrong("\"task\": 1", "task is 1");
  not_yet("\"task\": \"relax\"", "task: \"relax\" is not supported in this version");
  wrong("\"steps\": -1", "steps is -1; expected an integer from 0 to 1000000000000");
  wrong("\"steps\": 1.5", "steps is 1.5");
  wrong("\"steps\": 1000000000001", "steps is 1000000000001");
  wrong("\"velocities\": {\"seed\": 9223372036854775808}", "velocities.seed is 9");
  wrong("\"steps\": \"10\"", "steps is \"10\"");
  wrong("\"timestep_fs\": 0", "expected a number above 0, at most 20");
  wrong("\"timestep_fs\": 20.001", "timestep_fs is 20.001");
  wrong("\"charge\": 11, \"multiplicity\": 1", "charge is 11; expected an integer from -10 to 10");
  wrong("\"charge\": 0, \"multiplicity\": 21", "multiplicity is 21");
  wrong("\"charge\": 0, \"multiplicity\": -1", "multiplicity is -1");
  wrong("\"charge\": 0", "charge is given, but multiplicity is not");
  wrong("\"multiplicity\": 1", "multiplicity is given, but charge is not");
  wrong("\"charge\": 0, \"multiplicity\": null", "one is null and one is not");
  static const char *const times[] = {"\"10\"",       "\"1:2:3\"",         "\"00:00:00\"",
                                      "\"00:60:00\"", "\"00:00:60\"",      "\"-1:00:00\"",
                                      "3600",         "\"1000000:00:00\"", "\"1:00:00 \""};
  for (size_t i = 0; i < sizeof times / sizeof *times; ++i) {
    char text[64];
    snprintf(text, sizeof text, "\"max_walltime\": %s", times[i]);
    wrong(text, "expected a time \"HH:MM:SS\"");
  }
}

static void test_paths(void **state)
{
  (void)state;
  char out[TS_JOB_TEXT];
  accept("\"output\": {\"directory\": \"out\"}");
  assert_int_equal(ts_job_input(&job, job.structure, out), 0);
  assert_string_equal(out, "dir/s.xyz");
  assert_int_equal(ts_job_input(&job, "/a/b", out), 0);
  assert_string_equal(out, "/a/b");
  assert_int_equal(ts_job_output(&job, "log.csv", out), 0);
  assert_string_equal(out, "dir/out/log.csv");
  assert_int_equal(ts_job_output(&job, "", out), 0);
  assert_string_equal(out, "dir/out");
  accept("\"output\": {\"directory\": \"/tmp/x/\"}");
  assert_int_equal(ts_job_output(&job, "log.csv", out), 0);
  assert_string_equal(out, "/tmp/x/log.csv");
  const char *text = "{\"structure\": \"\", \"model\": \"m\"}";
  assert_int_equal(ts_job_parse(text, strlen(text), "j", 0, NULL, &job), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "structure is \"\"; expected a path"));
  text = "{\"structure\": \"a\"}";
  assert_int_equal(ts_job_parse(text, strlen(text), "j", 0, NULL, &job), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "the key \"model\" is missing"));
  text = "[]";
  assert_int_equal(ts_job_parse(text, strlen(text), "j", 0, NULL, &job), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "j:1: the job is an array"));
  assert_int_equal(ts_job_read("/nonexistent/j", 0, NULL, &job), TS_ERR_INPUT);
}

static void test_motion(void **state)
{
  (void)state;
  accept(
      "\"ensemble\": {\"kind\": \"nvt\", \"temperature_K\": 0, \"friction_per_ps\": 1e-3},"
      "\"velocities\": {\"source\": \"read\", \"seed\": 9223372036854775807}");
  assert_int_equal(job.ensemble.kind, TS_ENSEMBLE_NVT);
  assert_true(job.ensemble.temperature == 0.0 && job.ensemble.friction == 1e-3);
  assert_int_equal(job.velocities.source, TS_VELOCITIES_READ);
  assert_true(job.velocities.seed == INT64_MAX);
  not_yet("\"ensemble\": {\"kind\": \"npt\"}", "ensemble.kind: \"npt\" is not supported");
  not_yet("\"ensemble\": {\"kind\": \"nvt\", \"thermostat\": \"csvr\"}",
          "\"csvr\" is not supported");
  not_yet("\"ensemble\": {\"kind\": \"nvt\", \"thermostat\": \"nose-hoover\"}", "not supported");
  wrong("\"ensemble\": {\"kind\": \"nvt\", \"temperature_K\": -1}", "ensemble.temperature_K is -1");
  wrong("\"ensemble\": {\"kind\": \"nvt\", \"friction_per_ps\": 0}", "expected a number above 0");
  wrong("\"ensemble\": {\"temperature_K\": 300}", "but ensemble.kind is not; give both");
  wrong("\"ensemble\": \"nvt\"", "ensemble is \"nvt\"; expected an object");
  wrong("\"velocities\": {\"seed\": -1}", "velocities.seed is -1");
  wrong("\"velocities\": {\"seed\": 0.5}", "velocities.seed is 0.5");
  wrong("\"velocities\": {\"temperature_K\": null}", "velocities.temperature_K is null");
}

static void test_execution(void **state)
{
  (void)state;
  accept(
      "\"neighbors\": {\"skin_A\": 0, \"rebuild\": 1, \"backend\": \"faiss\", \"chunk\": 1},"
      "\"partition\": {\"curve\": \"morton\", \"period\": 1},"
      "\"execution\": {\"precision\": \"double\", \"matrix\": \"cblas\", \"tile_atoms\": 64,"
      "\"recompute\": 1, \"replay\": false, \"scheduler\": \"eager\", \"workers\": 3,"
      "\"radial_tolerance\": 1e-9, \"overlap\": false, \"reproducible\": true}");
  assert_int_equal(job.neighbors.backend, TS_SEARCH_FAISS);
  assert_int_equal(job.partition.curve, TS_CURVE_MORTON);
  assert_int_equal(job.execution.precision, TS_PRECISION_DOUBLE);
  assert_string_equal(job.execution.matrix, "cblas");
  assert_int_equal(job.execution.tile_atoms, 64);
  assert_int_equal(job.execution.workers, 3);
  assert_true(job.execution.recompute == 1.0 && job.execution.radial_tolerance == 1e-9);
  assert_false(job.execution.replay);
  assert_string_equal(job.execution.scheduler, "eager");
  not_yet("\"task\": \"relax\"", "task: \"relax\" is not supported");
  not_yet("\"execution\": {\"matrix\": \"tf32\"}", "not supported");
  not_yet("\"trace\": {\"enabled\": false}", "trace is not supported in this version");
  wrong("\"neighbors\": {\"skin_A\": -0.1}", "neighbors.skin_A");
  wrong("\"neighbors\": {\"rebuild\": 0}", "neighbors.rebuild is 0");
  wrong("\"neighbors\": {\"chunk\": 0}", "neighbors.chunk");
  wrong("\"partition\": {\"period\": 0}", "partition.period");
  wrong("\"execution\": {\"workers\": 0}", "expected an integer from 1 to 4096 or \"auto\"");
  wrong("\"execution\": {\"workers\": \"all\"}", "execution.workers is \"all\"");
  wrong("\"execution\": {\"recompute\": 1.1}", "execution.recompute");
  wrong("\"execution\": {\"replay\": 1}", "execution.replay is 1; expected true or false");
  wrong("\"execution\": {\"radial_tolerance\": 0}", "execution.radial_tolerance");
  wrong("\"execution\": {\"scheduler\": \"\"}", "expected a name of 1 to 63 bytes");
}

static void test_output(void **state)
{
  (void)state;
  accept(
      "\"output\": {\"trajectory\": {\"file\": \"a.b.xyz\", \"every\": 0, \"forces\": true},"
      "\"checkpoint\": {\"file\": \"c.h5\", \"keep\": 100, \"every\": 0},"
      "\"rdf\": {\"pairs\": [\"O-O\", \"Cl-K\"], \"r_max_A\": 4, \"bin_A\": 4}}");
  assert_int_equal(job.output.trajectory.format, TS_TRAJECTORY_XYZ);
  assert_true(job.output.trajectory.forces);
  assert_int_equal(job.output.rdf.npairs, 2);
  assert_int_equal(job.output.rdf.pair[1][0], 17);
  assert_int_equal(job.output.rdf.pair[1][1], 19);
  accept("\"output\": {\"trajectory\": {\"file\": \"traj.h5md\"}}");
  assert_int_equal(job.output.trajectory.format, TS_TRAJECTORY_H5MD);
  not_yet("\"output\": {\"trajectory\": {\"file\": \"t.dcd\"}}", "\"t.dcd\" is not supported");
  wrong("\"output\": {\"trajectory\": {\"file\": \"../t.h5\"}}", "a file name without folders");
  wrong("\"output\": {\"trajectory\": {\"file\": \".h5\"}}",
        "ends in \".h5\", \".h5md\" or \".xyz\"");
  wrong("\"output\": {\"trajectory\": {\"file\": \"checkpoint.1.h5\"}}",
        "checkpoints may be written");
  wrong("\"output\": {\"rdf\": {\"file\": \"log.csv\"}}", "which the log is written to");
  wrong("\"output\": {\"rdf\": {\"pairs\": [\"O-Q\"]}}", "output.rdf.pairs[0] is \"O-Q\"");
  wrong("\"output\": {\"rdf\": {\"pairs\": [\"O-O\", 1]}}", "output.rdf.pairs[1] is 1");
  wrong("\"output\": {\"rdf\": {\"pairs\": \"O-O\"}}", "expected up to 16 pairs");
  wrong("\"output\": {\"rdf\": {\"bin_A\": 9}}", "expected at most output.rdf.r_max_A, 8");
  wrong("\"output\": {\"log_every\": 0}", "output.log_every is 0");
  wrong("\"output\": {\"checkpoint\": {\"keep\": 0}}", "output.checkpoint.keep");
}

static void test_unknown_keys(void **state)
{
  (void)state;
  wrong("\"cutof\": 6",
        "job.json:3: unknown key \"cutof\"; the nearest known key is \"partition.cut\"");
  wrong("\"ensemble\": {\"temprature\": 300}",
        "the nearest known key is \"ensemble.temperature_K\"");
  wrong("\"neighbors\": {\"skin\": 1}", "the nearest known key is \"neighbors.skin_A\"");
  wrong("\"step\": 5", "the nearest known key is \"steps\"");
  wrong("\"timestep\": 5", "the nearest known key is \"timestep_fs\"");
  wrong("\"friction_per_ps\": 5", "the nearest known key is \"ensemble.friction_per_ps\"");
  wrong("\"output\": {\"trajectory\": {\"evry\": 5}}", "\"output.trajectory.every\"");
  wrong("\"ensemble.kind\": \"nve\"", "a dot stands between objects only with --set");
  wrong("\"steps\": 1, \"steps\": 2", "duplicate key \"steps\"");
  wrong("\"\": 1", "unknown key \"\"");
  wrong("} trailing {", "where");
}

static void test_overrides(void **state)
{
  (void)state;
  const char *const good[] = {"partition.curve=morton",
                              "steps=7",
                              "steps=8",
                              "execution.workers=auto",
                              "model=\"a b\"",
                              "structure=12",
                              "output.rdf.pairs=[\"O-O\"]",
                              "ensemble.temperature_K=310",
                              "ensemble.kind=nvt",
                              "max_walltime=1:00:00",
                              "charge=null",
                              "multiplicity=null"};
  assert_int_equal(parse("\"steps\": 3", sizeof good / sizeof *good, good), 0);
  assert_int_equal(job.partition.curve, TS_CURVE_MORTON);
  assert_int_equal(job.steps, 8);
  assert_string_equal(job.model, "a b");
  assert_string_equal(job.structure, "12");
  assert_int_equal(job.output.rdf.npairs, 1);
  assert_int_equal(job.max_walltime, 3600);
  static const char *const bad[][2] = {
      {"steps", "--set steps: expected key=value"},
      {"=3", "expected key=value"},
      {"steps=", "--set steps=: steps is \"\""},
      {"steps=many", "steps is \"many\"; expected an integer"},
      {"step=3", "unknown key \"step\"; the nearest known key is \"steps\""},
      {"output={}", "output is an object; set one of its keys"},
      {"trace={}", "trace is not supported in this version"},
      {"task=relax", "task: \"relax\" is not supported in this version"},
      {"model=", "model is \"\"; expected a path"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    assert_true(parse("", 1, &bad[i][0]) < 0);
    if (!strstr(ts_error_message(), bad[i][1]))
      fail_msg("message '%s' lacks '%s'", ts_error_message(), bad[i][1]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults),     cmocka_unit_test(test_root_keys),
      cmocka_unit_test(test_paths),        cmocka_unit_test(test_motion),
      cmocka_unit_test(test_execution),    cmocka_unit_test(test_output),
      cmocka_unit_test(test_unknown_keys), cmocka_unit_test(test_overrides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
