/* SPDX-License-Identifier: MIT
 *
 * Weight files written and read back: the same values, the same bytes the second time; and the
 * check of a set against its description, with the example potential and with damaged copies. */
#include "models/tensors.h"
#include "tests/model_cases.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tessera-weights-XXXXXX";

static const char *in_folder(const char *name)
{
  static char path[2][256];
  static int next;
  next = !next;
  snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
  return path[next];
}

static char *slurp(const char *path, size_t *size)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*size);
  assert_int_equal(fread(data, 1, *size, file), *size);
  fclose(file);
  return data;
}

static void assert_same_file(const char *a, const char *b)
{
  size_t na, nb;
  char *da = slurp(a, &na), *db = slurp(b, &nb);
  assert_int_equal(na, nb);
  assert_memory_equal(da, db, na);
  free(da);
  free(db);
}

/* A copy without one tensor, or with another shape of it, or with one more. */
static ts_weights *altered(const ts_weights *w, const char *without, const char *flattened,
                           const char *extra)
{
  ts_weights *out;
  assert_int_equal(ts_weights_create(&out), 0);
  for (int i = 0; i < ts_weights_count(w); ++i) {
    const ts_tensor_view v = ts_weights_at(w, i);
    if (without && !strcmp(v.name, without)) continue;
    if (flattened && !strcmp(v.name, flattened))
      assert_int_equal(ts_weights_add(out, v.name, 1, &v.count, v.data), 0);
    else
      assert_int_equal(ts_weights_add(out, v.name, v.rank, v.dim, v.data), 0);
  }
  if (extra) assert_int_equal(ts_weights_add(out, extra, 1, (const int64_t[]){2}, NULL), 0);
  return out;
}

static void test_double(void **state)
{
  (void)state;
  ts_model_desc desc, again;
  ts_weights *w, *read;
  golden_model("triclinic-cluster", &desc, &w);
  assert_int_equal(ts_weights_set_metadata(w, "quote", "a \"b\" \\ \n \xC3\xA9"), 0);
  assert_int_equal(ts_weights_write(w, in_folder("a.safetensors"), TS_DTYPE_F64), 0);
  if (ts_model_load(in_folder("a.safetensors"), true, &again, &read))
    fail_msg("%s", ts_error_message());
  assert_memory_equal(&desc, &again, sizeof desc);
  assert_string_equal(ts_weights_metadata(read, "quote"), "a \"b\" \\ \n \xC3\xA9");
  assert_int_equal(ts_weights_count(read), ts_weights_count(w));
  for (int i = 0; i < ts_weights_count(w); ++i) {
    const ts_tensor_view a = ts_weights_at(w, i), b = ts_weights_at(read, i);
    assert_string_equal(a.name, b.name);
    assert_int_equal(a.rank, b.rank);
    assert_memory_equal(a.dim, b.dim, sizeof a.dim);
    assert_memory_equal(a.data, b.data, (size_t)a.count * sizeof *a.data);
  }
  assert_int_equal(ts_weights_write(read, in_folder("b.safetensors"), TS_DTYPE_F64), 0);
  assert_same_file(in_folder("a.safetensors"), in_folder("b.safetensors"));
  ts_weights_destroy(&w);
  ts_weights_destroy(&read);
}

static void test_float(void **state)
{
  (void)state;
  ts_model_desc desc;
  ts_weights *w, *read;
  golden_model("pair", &desc, &w);
  assert_int_equal(ts_weights_write(w, in_folder("a.safetensors"), TS_DTYPE_F32), 0);
  assert_int_equal(ts_weights_read(in_folder("a.safetensors"), &read), 0);
  for (int i = 0; i < ts_weights_count(w); ++i) {
    const ts_tensor_view a = ts_weights_at(w, i), b = ts_weights_at(read, i);
    for (int64_t k = 0; k < a.count; ++k)
      assert_true((double)(float)a.data[k] == b.data[k]);
  }
  ts_weights_destroy(&w);
  ts_weights_destroy(&read);
  /* what a reader would refuse is not written, and nothing is left behind */
  const double large = 1e300;
  assert_int_equal(ts_weights_create(&w), 0);
  assert_int_equal(ts_weights_add(w, "x", 0, NULL, &large), 0);
  assert_int_equal(ts_weights_write(w, in_folder("c.safetensors"), TS_DTYPE_F32), TS_ERR_ARG);
  assert_int_not_equal(access(in_folder("c.safetensors"), F_OK), 0);
  assert_int_equal(ts_weights_write(w, in_folder("no/c.safetensors"), TS_DTYPE_F64), TS_ERR_IO);
  ts_weights_destroy(&w);
}

static void test_example(void **state)
{
  (void)state;
  ts_model_desc desc;
  ts_weights *w;
  const char *path = data_path("../../examples/salt-water/salt-water-small.safetensors");
  if (ts_model_load(path, false, &desc, &w)) fail_msg("%s", ts_error_message());
  assert_int_equal(ts_weights_count(w), 181);
  assert_int_equal(desc.floor, TS_FLOOR_ABSOLUTE);
  assert_true(desc.reference_energy[8] == -0.41278286479619697);
  ts_weights_destroy(&w);
  /* it was taught without charge */
  assert_int_equal(ts_model_load(path, true, &desc, &w), TS_ERR_INPUT);
  assert_null(w);
  assert_non_null(strstr(ts_error_message(), "decoder.embedding_charge.weight\" is missing"));
}

static void check(const ts_weights *w, const ts_model_desc *desc, bool with_charge,
                  const char *expected)
{
  const int status = ts_weights_check(w, desc, with_charge, "t");
  if (!expected && status) fail_msg("%s", ts_error_message());
  if (!expected) return;
  assert_int_equal(status, TS_ERR_INPUT);
  if (!strstr(ts_error_message(), expected))
    fail_msg("message '%s' lacks '%s'", ts_error_message(), expected);
}

static void test_names_and_shapes(void **state)
{
  (void)state;
  static const char value[] = "decoder.decoder.blocks.0.ga.proj_value.weight";
  static const char norm[] = "decoder.decoder.norm_final.affine_weight";
  static const char charge[] = "decoder.mix_cm.0.bias";
  const struct {
    const char *without, *flattened, *extra;
    bool with_charge;
    const char *expected;
  } cases[] = {
      {NULL, NULL, NULL, true, NULL},
      {value, NULL, NULL, false, "proj_value.weight\" is missing; expected shape [3, 16, 16]"},
      {NULL, value, NULL, false, "proj_value.weight\" has shape [768]; its description says [3, "},
      {NULL, NULL, "rbf.offset", false, "\"rbf.offset\" is not part of the described model"},
      {NULL, NULL, "a", false, "\"a\" is not part of the described model"},
      {charge, NULL, NULL, false, NULL},
      {charge, NULL, NULL, true, "mix_cm.0.bias\" is missing"},
      {norm, NULL, NULL, true, NULL}, /* two stages joined as a cluster do not use it */
  };
  ts_model_desc desc;
  ts_weights *w;
  golden_model("triclinic-cluster", &desc, &w);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    ts_weights *other = altered(w, cases[i].without, cases[i].flattened, cases[i].extra);
    check(other, &desc, cases[i].with_charge, cases[i].expected);
    ts_weights_destroy(&other);
  }
  ts_weights_destroy(&w);
  golden_model("pair", &desc, &w);
  ts_weights *other = altered(w, norm, NULL, NULL);
  check(other, &desc, false, "norm_final.affine_weight\" is missing");
  ts_weights_destroy(&other);
  ts_weights_destroy(&w);
}

static void test_description_beside(void **state)
{
  (void)state;
  ts_model_desc desc, again;
  ts_weights *w, *plain, *read;
  char *text;
  golden_model("pair", &desc, &w);
  plain = altered(w, NULL, NULL, NULL); /* without metadata */
  assert_int_equal(ts_weights_write(plain, in_folder("d.safetensors"), TS_DTYPE_F64), 0);
  assert_int_equal(ts_model_load(in_folder("d.safetensors"), false, &again, &read), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "no model description"));
  assert_int_equal(ts_model_desc_format(&desc, &text), 0);
  FILE *file = fopen(in_folder("d.json"), "w");
  fputs(text, file);
  fclose(file);
  free(text);
  if (ts_model_load(in_folder("d.safetensors"), false, &again, &read))
    fail_msg("%s", ts_error_message());
  assert_memory_equal(&desc, &again, sizeof desc);
  ts_weights_destroy(&w);
  ts_weights_destroy(&plain);
  ts_weights_destroy(&read);
}

static void test_add(void **state)
{
  (void)state;
  ts_weights *w;
  assert_int_equal(ts_weights_create(&w), 0);
  assert_int_equal(ts_weights_add(w, "b", 2, (const int64_t[]){2, 3}, NULL), 0);
  assert_int_equal(ts_weights_add(w, "a", 0, NULL, (const double[]){4.0}), 0);
  assert_string_equal(ts_weights_at(w, 0).name, "a");
  assert_int_equal(ts_weights_at(w, 1).count, 6);
  assert_int_equal(ts_weights_add(w, "a", 0, NULL, NULL), TS_ERR_ARG);
  assert_int_equal(ts_weights_add(w, "c", 1, (const int64_t[]){0}, NULL), TS_ERR_ARG);
  assert_int_equal(ts_weights_add(w, "c", 2, (const int64_t[]){INT64_MAX, 2}, NULL), TS_ERR_ARG);
  assert_int_equal(ts_weights_add(w, "c", 5, NULL, NULL), TS_ERR_ARG);
  assert_int_equal(ts_weights_add(w, "", 0, NULL, NULL), TS_ERR_ARG);
  ts_weights_destroy(&w);
  ts_weights_destroy(&w);
}

static int make_folder(void **state)
{
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
  (void)state;
  static const char *const names[] = {"a.safetensors", "b.safetensors", "d.safetensors", "d.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    unlink(in_folder(names[i]));
  return rmdir(folder); /* fails when a test left something behind */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_double),
      cmocka_unit_test(test_float),
      cmocka_unit_test(test_example),
      cmocka_unit_test(test_names_and_shapes),
      cmocka_unit_test(test_description_beside),
      cmocka_unit_test(test_add),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
