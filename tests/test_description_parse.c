/* SPDX-License-Identifier: MIT
 *
 * Model descriptions: every recorded one is read and printed back to the same; every wrong one is
 * refused with the key and the value. */
#include "tests/comma_locale.h"
#include "tests/model_cases.h"

#include <locale.h>

static int parse(const char *text, ts_model_desc *desc)
{
  ts_json *doc = NULL;
  if (ts_json_parse(text, strlen(text), "t", &doc)) fail_msg("%s", ts_error_message());
  const int status = ts_model_desc_parse(ts_json_root(doc), "t", desc);
  ts_json_destroy(&doc);
  return status;
}

static void read_recorded(const char *name, ts_model_desc *desc)
{
  ts_json *doc = golden_file(name);
  if (ts_model_desc_parse(ts_json_member(ts_json_root(doc), "model"), name, desc))
    fail_msg("%s", ts_error_message());
  ts_json_destroy(&doc);
}

static void test_recorded(void **state)
{
  (void)state;
  static const char *const names[] = {"cutoff-edge",
                                      "kcl64-chain-first",
                                      "kcl64-chain",
                                      "kcl64-cluster",
                                      "kcl64-smooth",
                                      "molecule-charged",
                                      "molecule-first",
                                      "molecule-mixed",
                                      "molecule-zero",
                                      "pair",
                                      "slab-zero",
                                      "triclinic-cluster-bell",
                                      "triclinic-cluster",
                                      "triclinic-first",
                                      "water216-first",
                                      "water64-full",
                                      "forms/form-qkdot",
                                      "forms/form-qkdots",
                                      "forms/form-sigmoid",
                                      "forms/form-softplus",
                                      "forms/form-sphere-head",
                                      "forms/form-cap8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    ts_model_desc desc, again;
    char *text;
    read_recorded(names[i], &desc);
    desc.reference_energy[8] = -2041.8396543210123;
    desc.energy_unit = i % 2 ? 0.0433641153087705 : 1.0;
    strcpy(desc.note, "a \"note\"");
    desc.lists_elements = desc.element[8] = desc.element[19] = i % 2;
    assert_int_equal(ts_model_desc_format(&desc, &text), 0);
    if (parse(text, &again)) fail_msg("%s", ts_error_message());
    assert_memory_equal(&desc, &again, sizeof desc);
    free(text);
  }
}

static void test_fields(void **state)
{
  (void)state;
  ts_model_desc d;
  read_recorded("triclinic-cluster-bell", &d);
  assert_int_equal(d.channels, 16);
  assert_int_equal(d.heads, 8);
  assert_int_equal(d.head_dim, 4);
  assert_int_equal(d.head_channels, 2);
  assert_int_equal(d.bases, 16);
  assert_true(d.average_degree == 23.01 && d.silu_scale == 1.6791767923989418);
  assert_true(d.sigmoid_scale == 1.8467055342154763);
  assert_string_equal(d.head, "omol25");
  assert_int_equal(d.nstages, 2);
  assert_int_equal(d.merge, TS_MERGE_CLUSTER);
  assert_int_equal(d.floor, TS_FLOOR_MAX);
  assert_int_equal(d.stage[0].nlayers, 2);
  assert_int_equal(d.stage[0].order[1], TS_ORDER_ZERO);
  assert_false(d.stage[0].excluded[1]);
  assert_int_equal(d.stage[1].envelope, TS_ENVELOPE_BELL);
  assert_true(d.stage[1].cutoff == 8.0 && d.stage[1].lower == 0.1);
  assert_true(d.stage[1].excluded[0] && d.stage[1].excluded[1] && !d.stage[1].excluded[8]);
  assert_true(d.energy_unit == 1.0);
  read_recorded("kcl64-chain-first", &d);
  assert_int_equal(d.merge, TS_MERGE_CHAIN);
  assert_int_equal(d.stage[0].order[2], TS_ORDER_FIRST);
  assert_true(d.score == TS_SCORE_QK && d.weighting == TS_WEIGHTING_SOFTMAX);
  read_recorded("forms/form-qkdots", &d);
  assert_int_equal(d.score, TS_SCORE_QKDOTS);
  read_recorded("forms/form-softplus", &d);
  assert_int_equal(d.weighting, TS_WEIGHTING_SOFTPLUS);
  read_recorded("forms/form-sphere-head", &d);
  assert_int_equal(d.head_kind, TS_HEAD_SPHERE);
  read_recorded("forms/form-cap8", &d);
  assert_int_equal(d.stage[0].max_neighbors, 8);
}

#define STAGE "{\"cutoff\":5,\"lower\":0.1,\"envelope\":\"poly\",\"orders\":[\"zero\"]}"
#define REST                                                                                   \
  "\"head_dim\":4,\"head_channels\":2,\"lmax\":2,\"bases\":16,\"average_degree\":23,\"head\":" \
  "\"h\",\"silu_scale\":1.6,\"sigmoid_scale\":1.8,"

/* A good one-stage description with `from` (must occur) replaced by `to`. */
static void refuse(const char *from, const char *to, int status, const char *expected)
{
  static const char good[] = "{\"channels\":16,\"heads\":8," REST "\"stages\":[" STAGE "]}";
  char text[2048];
  const char *at = strstr(good, from);
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  ts_model_desc desc;
  assert_int_equal(parse(good, &desc), 0);
  assert_int_equal(parse(text, &desc), status);
  if (!strstr(ts_error_message(), expected))
    fail_msg("message '%s' lacks '%s'", ts_error_message(), expected);
}

static void refuse_input(const char *from, const char *to, const char *expected)
{
  refuse(from, to, TS_ERR_INPUT, expected);
}

static void test_widths(void **state)
{
  (void)state;
  refuse_input("\"channels\":16", "\"chanels\":16", "chanels is not a key");
  refuse_input("\"channels\":16,", "", "channels is missing");
  refuse_input("\"channels\":16", "\"channels\":\"16\"", "channels is \"16\"; expected");
  refuse_input("\"channels\":16", "\"channels\":16.5", "channels is 16.5; expected an integer");
  refuse_input("\"channels\":16", "\"channels\":0", "channels is 0");
  refuse_input("\"channels\":16", "\"channels\":1000000000000", "channels is 1000000000000");
  refuse_input("\"heads\":8", "\"heads\":5", "heads is 5; expected a divisor of channels, 16");
  refuse_input("\"heads\":8,\"head_dim\":4", "\"heads\":1,\"head_dim\":3", "to be even");
  refuse("\"lmax\":2", "\"lmax\":4", TS_ERR_UNSUPPORTED, "lmax is 4; this version supports 1 to 3");
  refuse("\"lmax\":2", "\"lmax\":0", TS_ERR_UNSUPPORTED, "lmax is 0; this version supports 1 to 3");
  refuse_input("\"bases\":16", "\"bases\":1", "bases is 1");
  refuse_input("\"average_degree\":23", "\"average_degree\":0", "average_degree is 0");
  refuse_input("\"head\":\"h\"", "\"head\":\"\"", "head is \"\"");
  refuse_input("\"head\":\"h\"", "\"head\":\"a.b\"", "head is \"a.b\"");
  refuse_input("\"silu_scale\":1.6", "\"silu_scale\":null", "silu_scale is null");
}

static void test_stages(void **state)
{
  (void)state;
  refuse_input(STAGE, "", "expected 1 or 2 stages, not 0");
  refuse_input(STAGE, STAGE "," STAGE "," STAGE, "expected 1 or 2 stages, not 3");
  refuse_input(STAGE, STAGE "," STAGE, "merge is missing or null");
  refuse_input("\"stages\"", "\"merge\":\"chain\",\"stages\"", "merge is \"chain\"; expected null");
  refuse_input("\"stages\"", "\"merge\":\"join\",\"stages\"", "merge is \"join\"; expected");
  refuse_input(STAGE, "5", "stages[0]");
  refuse_input("\"cutoff\":5", "\"cutoff\":-5", "stages[0].cutoff is -5");
  refuse_input("\"cutoff\":5", "\"cutof\":5", "stages[0].cutof is not a key");
  refuse_input("\"lower\":0.1", "\"lower\":5", "stages[0].lower is 5; expected less than");
  refuse_input("\"lower\":0.1", "\"lower\":-1", "stages[0].lower is -1");
  refuse_input("\"poly\"", "\"cosine\"", "stages[0].envelope is \"cosine\"");
  refuse_input("[\"zero\"]", "[]", "1 to 16 layers");
  refuse_input("[\"zero\"]", "[\"second\"]", "\"zero\" or \"first\"");
  refuse_input("\"poly\"", "\"poly\",\"exclude_senders\":[128]", "exclude_senders is 128");
  refuse_input("\"poly\"", "\"poly\",\"exclude_senders\":[1.5]", "exclude_senders is 1.5");
}

static void test_elements(void **state)
{
  (void)state;
  refuse_input("\"stages\"", "\"elements\":[8,128],\"stages\"", "elements is 128");
  refuse_input("\"stages\"", "\"elements\":[\"O\"],\"stages\"", "elements is \"O\"");
  refuse_input("\"stages\"", "\"elements\":8,\"stages\"", "elements is 8");
}

static void test_energies(void **state)
{
  (void)state;
  refuse_input("\"stages\"", "\"energy_unit\":\"Ha\",\"stages\"", "energy_unit is \"Ha\"");
  refuse_input("\"stages\"", "\"reference_energies\":{\"O\":1},\"stages\"", "key \"O\"");
  refuse_input("\"stages\"", "\"reference_energies\":{\"08\":1},\"stages\"", "key \"08\"");
  refuse_input("\"stages\"", "\"reference_energies\":{\"128\":1},\"stages\"", "key \"128\"");
  refuse_input("\"stages\"", "\"reference_energies\":{\"8\":\"x\"},\"stages\"", "is \"x\"");
  refuse_input("\"stages\"", "\"softmax_floor\":\"none\",\"stages\"", "softmax_floor is \"none\"");
}

/* Forms that other versions may compute are named, never evaluated as something else. */
static void test_other_forms(void **state)
{
  (void)state;
  const int status = TS_ERR_UNSUPPORTED;
  refuse_input("\"stages\"", "\"score\":\"dot\",\"stages\"", "score is \"dot\"");
  refuse_input("\"stages\"", "\"weighting\":\"relu\",\"stages\"", "weighting is \"relu\"");
  refuse_input("\"stages\"", "\"head_kind\":\"moe\",\"stages\"", "head_kind is \"moe\"");
  refuse_input("\"poly\"", "\"poly\",\"max_neighbors\":0", "stages[0].max_neighbors is 0");
  refuse("\"stages\"", "\"cg_first_order\":[[0,[]]],\"stages\"", status, "another convention");
}

static void test_comma_locale(void **state)
{
  (void)state;
  if (!use_comma_locale()) return;
  ts_model_desc desc, again;
  char *text;
  read_recorded("pair", &desc);
  assert_int_equal(ts_model_desc_format(&desc, &text), 0);
  setlocale(LC_ALL, "C");
  assert_int_equal(parse(text, &again), 0);
  assert_memory_equal(&desc, &again, sizeof desc);
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_recorded),     cmocka_unit_test(test_fields),
      cmocka_unit_test(test_widths),       cmocka_unit_test(test_stages),
      cmocka_unit_test(test_energies),     cmocka_unit_test(test_other_forms),
      cmocka_unit_test(test_comma_locale), cmocka_unit_test(test_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
