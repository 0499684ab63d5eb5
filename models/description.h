/* SPDX-License-Identifier: MIT
 *
 * What a weight file's model is: widths, stages, constants.  The description is a JSON object that
 * travels with the weights (safetensors metadata key `tessera`, or a .json file beside them; see
 * docs/model-files.md).  It is parsed strictly: every key is known and every value is checked here,
 * once, so that kernels may rely on it.  Forms that the published code also has, but this version
 * does not compute, are refused by name rather than evaluated as something else. */
#ifndef TS_DESCRIPTION_H
#define TS_DESCRIPTION_H

#include "runtime/json.h"
#include "runtime/types.h"

enum {
  TS_MAX_LAYERS = 16, /* per stage */
  TS_MAX_STAGES = 2,
  TS_MAX_ELEMENT = 128,    /* atomic numbers are 0 <= Z < 128 */
  TS_MAX_NEIGHBORS = 1024, /* of a stage that bounds them */
  TS_SPHERE_POINTS = 18,   /* directions of the sphere head */
  TS_LMAX = 3,             /* highest degree; kernels are tuned for 2 */
  TS_ROWS = (TS_LMAX + 1) * (TS_LMAX + 1)
};

typedef enum ts_order { TS_ORDER_ZERO, TS_ORDER_FIRST } ts_order;
typedef enum ts_envelope { TS_ENVELOPE_POLY, TS_ENVELOPE_BELL } ts_envelope;
typedef enum ts_merge { TS_MERGE_NONE, TS_MERGE_CLUSTER, TS_MERGE_CHAIN } ts_merge;
typedef enum ts_softmax_floor { TS_FLOOR_MAX, TS_FLOOR_ABSOLUTE } ts_softmax_floor;
/* What multiplies q.k: a function of the distance; or one that sees the receiver's features along
 * the edge, through a linear map ("qkdot") or a small network ("qkdots"). */
typedef enum ts_score { TS_SCORE_QK, TS_SCORE_QKDOT, TS_SCORE_QKDOTS } ts_score;
typedef enum ts_weighting {
  TS_WEIGHTING_SOFTMAX,
  TS_WEIGHTING_SOFTPLUS,
  TS_WEIGHTING_SIGMOID
} ts_weighting;
typedef enum ts_head_kind { TS_HEAD_MLP, TS_HEAD_SPHERE } ts_head_kind;

/** Layers that share a cutoff, and with it one edge set. */
typedef struct ts_stage_desc {
  double cutoff; /* [Å] edges have lower <= r <= cutoff */
  double lower;  /* [Å] >= 0 */
  ts_envelope envelope;
  int nlayers; /* 1..TS_MAX_LAYERS */
  ts_order order[TS_MAX_LAYERS];
  bool excluded[TS_MAX_ELEMENT]; /* elements that do not send */
  int max_neighbors; /* only the nearest so many active senders of a receiver count; 0: all */
} ts_stage_desc;

typedef struct ts_model_desc {
  int channels;      /* C, a multiple of heads; channel c belongs to head c mod H */
  int heads;         /* H */
  int head_dim;      /* d; H d is even */
  int head_channels; /* channels per head of the first-order output: wide = H head_channels */
  int lmax;          /* L, 1..TS_LMAX */
  int bases;         /* K */
  double average_degree;
  char head[64]; /* name of the energy head, part of its tensors' names */
  double silu_scale, sigmoid_scale;
  int nstages;
  ts_stage_desc stage[TS_MAX_STAGES];
  ts_merge merge; /* TS_MERGE_NONE exactly when nstages is 1 */
  ts_softmax_floor floor;
  ts_score score;
  ts_weighting weighting;
  ts_head_kind head_kind;
  bool lists_elements;                     /* it says what it was taught */
  bool element[TS_MAX_ELEMENT];            /* these; of no meaning otherwise */
  double reference_energy[TS_MAX_ELEMENT]; /* [eV] added per atom; 0 where absent */
  double energy_unit;                      /* [eV] per unit of the model's own output */
  char note[256];
} ts_model_desc;

/** Parse and check a description.  Not collective.
 * \param [in]  object  The JSON object; borrowed for the call.
 * \param [in]  origin  Names the object in messages, e.g. "water.safetensors: tessera".
 * \param [out] out     Filled on success only.
 * \return 0, TS_ERR_INPUT (unknown or missing key, wrong type, impossible value) or
 * TS_ERR_UNSUPPORTED (a form that this version does not compute). */
int ts_model_desc_parse(const ts_json_node *object, const char *origin, ts_model_desc *out);

/** Write a description as JSON that ts_model_desc_parse reads back to the same bits.
 * \param [out] out  A NUL-terminated string; the caller frees it with free().
 * \return 0 or TS_ERR_MEMORY.  Not collective. */
int ts_model_desc_format(const ts_model_desc *desc, char **out);

#endif
