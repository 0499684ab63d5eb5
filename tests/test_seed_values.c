/* SPDX-License-Identifier: MIT
 *
 * Weights from a seed, bit for bit: single elements and a hash over all, recorded from the Python
 * definition. */
#include "tests/model_cases.h"

static void test_elements(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int64_t dim[4];
    double first, last;
  } expected[] = {
      {"decoder.embedding_charge.weight", {30, 16}, 0x1.ff23295db76adp-2, 0x1.6a4700320518dp-1},
      {"decoder.mix_cm.0.bias", {16}, -0x1.b8c41f83dedddp-3, 0x1.6697488048269p-5},
      {"decoder.decoder.blocks.0.norm_1.affine_weight",
       {3, 16},
       0x1.845ea749c7edep-1,
       0x1.07944abd88126p+0},
      {"decoder.decoder.blocks.1.ga.fc_easy.net.1.weight",
       {8},
       0x1.9943fdef173a2p-1,
       0x1.b020abef0cf48p-1},
      {"decoder.decoder.edge_deg_embed_dense.source_embedding.weight",
       {300, 16},
       -0x1.69c53bc40c55ap-1,
       -0x1.cd9485005e760p-3},
      {"decoder.decoder.long_blocks.0.ga.query_linear.bias",
       {1, 1, 16},
       0x1.e5ea7e6607bd7p-3,
       -0x1.4ade20ab04ab2p-3},
      {"decoder.decoder.blocks.0.ga.first_order_tp.so2_tp.out_linear.1.weight",
       {16, 48},
       0x1.b39e17557b606p-6,
       -0x1.a3558964f666ep-4},
      {"head.energy_heads.omol25.mlp.4.weight",
       {1, 16},
       0x1.d3a55d3f3b003p-3,
       -0x1.78bd7153f0b53p-2},
  };
  ts_model_desc desc;
  ts_weights *w;
  golden_model("triclinic-cluster", &desc, &w);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    ts_tensor_view view;
    assert_true(ts_weights_find(w, expected[i].name, &view));
    for (int d = 0; d < 4; ++d)
      assert_true(view.dim[d] == (expected[i].dim[d] ? expected[i].dim[d] : 1));
    assert_true(view.data[0] == expected[i].first);
    assert_true(view.data[view.count - 1] == expected[i].last);
  }
  ts_weights_destroy(&w);
}

/* A polynomial in the bits of all elements, tensors in order of name. */
static uint64_t hash(const ts_weights *w, int64_t *count)
{
  uint64_t sum = 0;
  *count = 0;
  for (int i = 0; i < ts_weights_count(w); ++i) {
    const ts_tensor_view view = ts_weights_at(w, i);
    for (int64_t k = 0; k < view.count; ++k) {
      uint64_t bits;
      memcpy(&bits, view.data + k, sizeof bits);
      sum = sum * UINT64_C(0x100000001B3) + bits;
    }
    *count += view.count;
  }
  return sum;
}

static void test_hashes(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int64_t count;
    uint64_t hash;
  } expected[] = {
      {"pair", 170913, UINT64_C(0x7b54fff06c75c01b)},
      {"triclinic-cluster", 252001, UINT64_C(0x52a266167177b90f)},
      {"molecule-charged", 172449, UINT64_C(0x5797b52a6a340bbf)},
      {"kcl64-smooth", 431313, UINT64_C(0x7fd3d295e26b6df0)},
      {"water64-full", 22748417, UINT64_C(0xd88ec786d250c0c2)},
  };
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    ts_model_desc desc;
    ts_weights *w;
    int64_t count;
    golden_model(expected[i].name, &desc, &w);
    assert_true(hash(w, &count) == expected[i].hash);
    assert_true(count == expected[i].count);
    assert_int_equal(ts_weights_check(w, &desc, true, "seed"), 0);
    ts_weights_destroy(&w);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_elements),
      cmocka_unit_test(test_hashes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
