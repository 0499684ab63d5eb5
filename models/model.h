/* SPDX-License-Identifier: MIT
 *
 * A model made ready to run: weights packed once in the precision and matrix mode of the run,
 * radial tables for the elements that are present, and the kernels that this CPU can run. Read-only
 * after creation, shared by all workers. */
#ifndef TS_MODEL_H
#define TS_MODEL_H

#include "models/kernels.h"
#include "models/radial.h"

typedef struct ts_model_params {
  bool is_double;
  const char *matrix;      /* back end, "auto" */
  const char *isa;         /* "auto", or one to force */
  int nspecies;            /* elements present */
  const int *species;      /* [nspecies] atomic numbers */
  double radial_tolerance; /* 0: 1e-7 in float, 1e-12 in double */
  uint64_t radial_most;    /* bytes that radial tables may take while they are fitted, see
                            * ts_radial_build; 0: TS_RADIAL_MOST */
  bool has_charge;
  int charge, multiplicity; /* of the whole system */
} ts_model_params;

typedef struct ts_model {
  ts_model_desc desc;
  const ts_kernels *kernels;
  const ts_matrix_ops *matrix;
  bool is_double;
  size_t real_size; /* bytes of a real */
  int nspecies;
  int species_index[TS_MAX_ELEMENT]; /* of an atomic number, or -1 */
  ts_edge_params edge[TS_MAX_STAGES];
  ts_radial embed; /* W = (L+1) C */
  ts_layer layer[TS_MAX_STAGES][TS_MAX_LAYERS];
  ts_norm pre_norm; /* cluster merge: norm between the stages */
  ts_head head;
  double radial_error, radial_slope_error; /* largest of all tables, relative */
  size_t bytes;                            /* of weights and tables */
  size_t radial_bytes;                     /* of the radial functions among them */
  uint64_t radial_most;                    /* bytes beyond which they are split */
  int npool;
  void **pool; /* every packed array, for release */
} ts_model;

/** Pack a model.  Not collective.
 * \param [in] weights  Checked against desc (ts_weights_check); borrowed for the call.
 * \return 0, TS_ERR_INPUT (unknown back end; an element without tables), TS_ERR_UNSUPPORTED (an
 *         instruction set that this CPU lacks) or TS_ERR_MEMORY. */
int ts_model_create(const ts_model_desc *desc, const ts_weights *weights,
                    const ts_model_params *params, ts_model **out);
void ts_model_destroy(ts_model **model);

/** Sizes at a tile of `atoms` rows. */
ts_shape ts_model_shape(const ts_model *model, int atoms);

/** Layers of all stages. */
int ts_model_layers(const ts_model *model);

/** Bytes of a tile's queries, with the features that a score sees along the edge. */
size_t ts_query_bytes(const ts_model *model, const ts_shape *shape);

/** Where the parts of a tile's saved block are, see ts_saved.
 * \param [in]  keep_pairs  false: backward computes [R,A,4F] again.
 * \param [in]  base        The block, or NULL to ask for its size.
 * \return bytes of the block. */
size_t ts_saved_layout(const ts_model *model, const ts_shape *shape, bool keep_pairs, void *base,
                       ts_saved *out);

/** Multiply-adds of one atom in one layer's dense products, forward; backward has as many. */
double ts_model_dense_work(const ts_model *model, int stage, int layer);

#endif
