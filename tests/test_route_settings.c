/* SPDX-License-Identifier: MIT
 *
 * Routing settings of a job: read exactly, or refused with place, value and what was expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "comm/route.h"
#include "runtime/error.h"

static int parse(const char *text, ts_route_params *params)
{
  ts_json *doc = NULL;
  assert_int_equal(ts_json_parse(text, strlen(text), "job.json", &doc), 0);
  const int status = ts_route_params_parse(ts_json_root(doc), "job.json", params);
  ts_json_destroy(&doc);
  return status;
}

static void accepted(void **state)
{
  (void)state;
  ts_route_params p;
  ts_route_params_init(&p, 4);
  assert_int_equal(parse("{}", &p), 0);
  assert_int_equal(p.mode, TS_ROUTE_LINEAR);
  assert_int_equal(p.partitions, 1);
  assert_int_equal(parse("{\"mode\": \"splitmix\", \"seed\": 9007199254740993}", &p), 0);
  assert_int_equal(p.mode, TS_ROUTE_SPLITMIX);
  assert_true(p.seed == UINT64_C(9007199254740993)); /* beyond 2^53: no digit is lost */
  assert_int_equal(parse("{\"mode\": \"linear\", \"partitions\": 48}", &p), 0);
  assert_int_equal(p.mode, TS_ROUTE_LINEAR);
  assert_int_equal(p.partitions, 48);
  assert_string_equal(ts_route_mode_name(TS_ROUTE_SPLITMIX), "splitmix");
}

static void refused(void **state)
{
  (void)state;
  static const struct {
    const char *text, *part;
  } cases[] = {
      {"{\"mode\": \"Linear\"}", "mode is \"Linear\", expected \"linear\" or \"splitmix\""},
      {"{\"mode\": \"\"}", "expected \"linear\" or"},
      {"{\"mode\": 1}", "mode is 1, expected"},
      {"{\"mode\": null}", "expected \"linear\" or"},
      {"{\"partitions\": 0}", "partitions is 0, expected an integer from 1"},
      {"{\"partitions\": 2.5}", "partitions is 2.5, expected an integer"},
      {"{\"partitions\": \"4\"}", "expected an integer"},
      {"{\"partitions\": 2147483648}", "expected an integer from 1 to 2147483647"},
      {"{\"seed\": -1}", "seed is -1, expected an integer from 0"},
      {"{\n\"seed\": 1e30}", "job.json:2: routing: seed"},
      {"{\"route_mode\": \"linear\"}", "unknown key \"route_mode\""},
      {"[]", "expected an object"},
      {"\"linear\"", "expected an object"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts_route_params p, before;
    memset(&p, 0, sizeof p);
    ts_route_params_init(&p, 4);
    before = p;
    assert_int_equal(parse(cases[i].text, &p), TS_ERR_INPUT);
    if (!strstr(ts_error_message(), cases[i].part))
      fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].text, ts_error_message(), cases[i].part);
    assert_true(p.mode == before.mode && p.seed == before.seed &&
                p.partitions == before.partitions);
  }
  ts_route_params p;
  ts_route_params_init(&p, 4); /* a good key before a bad one changes nothing */
  assert_int_equal(parse("{\"seed\": 5, \"mode\": \"x\"}", &p), TS_ERR_INPUT);
  assert_true(p.seed == 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(accepted), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
