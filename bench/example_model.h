/* SPDX-License-Identifier: MIT
 *
 * The example's model in float: what the benches of many ranks run. */
#ifndef TS_BENCH_EXAMPLE_MODEL_H
#define TS_BENCH_EXAMPLE_MODEL_H

#include "models/model.h"
#include "models/tensors.h"
#include "tests/case.h"

/** Ends the program where it cannot be loaded. */
static inline ts_model *bench_example_model(void)
{
  static const int species[] = {1, 8, 17, 19};
  const ts_model_params params = {
      .matrix = "auto", .isa = "auto", .nspecies = 4, .species = species};
  ts_model_desc desc;
  ts_weights *weights;
  ts_model *model;
  must(ts_model_load(TS_SOURCE_TREE "/examples/salt-water/salt-water-small.safetensors", false,
                     &desc, &weights));
  must(ts_model_create(&desc, weights, &params, &model));
  ts_weights_destroy(&weights);
  return model;
}

#endif
