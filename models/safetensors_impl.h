/* SPDX-License-Identifier: MIT
 *
 * The body of a set of tensors, shared by its reader and writer. */
#ifndef TS_SAFETENSORS_IMPL_H
#define TS_SAFETENSORS_IMPL_H

#include "models/safetensors.h"

typedef struct tsi_tensor {
  char *name;
  int rank;
  int64_t dim[TS_TENSOR_RANK];
  int64_t count;
  double *data; /* [count], owned */
} tsi_tensor;

typedef struct tsi_meta {
  char *key, *value;
} tsi_meta;

struct ts_weights {
  int count, room;
  tsi_tensor *tensor; /* [count] by name */
  int nmeta;
  tsi_meta *meta; /* [nmeta] by key */
};

/** Room for that many tensors in all. */
int tsi_weights_reserve(ts_weights *w, int room);

#endif
