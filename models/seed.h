/* SPDX-License-Identifier: MIT
 *
 * Weights from a seed: the same numbers on any machine, with no file, for tests and benchmarks at
 * any width. */
#ifndef TS_SEED_H
#define TS_SEED_H

#include "models/tensors.h"

/** Make every tensor of `desc` from `seed`, bit for bit as defined in seed.c.  The description is
 * put under the metadata key `tessera`.  Not collective.
 * \param [out] out  Release with ts_weights_destroy.
 * \return 0 or TS_ERR_MEMORY. */
int ts_weights_seed(const ts_model_desc *desc, uint64_t seed, ts_weights **out);

#endif
