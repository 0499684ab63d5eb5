/* SPDX-License-Identifier: MIT
 *
 * Which tensors a described model has, under the names of the published checkpoints, and the check
 * that a file holds exactly those: a missing, extra or mis-shaped tensor is an error that names it.
 */
#ifndef TS_TENSORS_H
#define TS_TENSORS_H

#include "models/description.h"
#include "models/safetensors.h"

typedef struct ts_tensor_spec {
  char name[TS_TENSOR_NAME];
  int rank;
  int64_t dim[TS_TENSOR_RANK]; /* 1 beyond the rank */
  bool optional;               /* a file may lack it: not used by this model or this job */
} ts_tensor_spec;

/** All tensors of a model, in the order of the layers.  Not collective.
 * \param [in]  with_charge  The job gives charge and multiplicity: their tensors are required.
 * \param [out] list         [count]; the caller frees it with free().
 * \return 0 or TS_ERR_MEMORY. */
int ts_model_tensors(const ts_model_desc *desc, bool with_charge, ts_tensor_spec **list,
                     int *count);

/** Compare a set with the list.  `origin` names the file in messages.  Not collective.
 * \return 0 or TS_ERR_INPUT naming the first missing, extra or mis-shaped tensor. */
int ts_weights_check(const ts_weights *w, const ts_model_desc *desc, bool with_charge,
                     const char *origin);

/** Read a weight file and its description (metadata `tessera`, else the .json beside it) and check
 * one against the other.  Not collective.
 * \param [out] desc  Filled on success.
 * \param [out] out   The weights; release with ts_weights_destroy.
 * \return 0, TS_ERR_INPUT, TS_ERR_UNSUPPORTED or TS_ERR_MEMORY. */
int ts_model_load(const char *path, bool with_charge, ts_model_desc *desc, ts_weights **out);

#endif
