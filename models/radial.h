/* SPDX-License-Identifier: MIT
 *
 * Radial tables.  The radial networks depend on (r, Z_receiver, Z_sender) alone, so they are fitted
 * once, at load, by quintic B-splines on a uniform grid; a step then evaluates six coefficients per
 * output instead of a network of up to 180,000 multiply-adds per edge.  The slope is that of the
 * spline, so forces are the exact gradient of the energy that is evaluated.  A quintic spline has
 * four continuous derivatives and an error that falls with the sixth power of the step.
 *
 * At r: s = r/step, n = floor(s), t = s - n;
 *   value_c = sum_k B_k(t) coef[n+k, c],   slope_c = (1/step) sum_k B'_k(t) coef[n+k, c],  k =
 * 0..5.
 *
 * Tables grow with the number of elements squared.  Where they would be too large, the first layer
 * is split instead: it is a sum of a part of the distance, which alone is tabulated (one table for
 * all pairs), and of a vector of each element; the rest of the networks is evaluated on every edge.
 * That is exact in the elements, small, and a good deal slower (docs/model.md has the figures). */
#ifndef TS_RADIAL_H
#define TS_RADIAL_H

#include "models/description.h"
#include "models/safetensors.h"

/** S species, W outputs, P networks of middle width m.  Raw network outputs: the envelope is not
 * part of them. */
typedef struct ts_radial_table {
  int width;        /* W: 2H of a layer (gates, then weights), (L+1) C of the embedding; of a layer
                     * with score "qkdot": H weights, then K (L+1) factors; "qkdots": H, H */
  int nets, middle; /* P, m */
  double *coef; /* [S (receiver), S (sender), nodes, W] double, or, split, [nodes, P m]; owned by
                 * the set */
  double error; /* largest |spline - network| over all outputs, over the largest |network|; of a
                 * split set over TS_RADIAL_SAMPLES pairs of elements at most */
  double slope_error; /* the same of the slopes */
} ts_radial_table;

/** The tables of one stage share a grid. */
typedef struct ts_radial_stage {
  double cutoff; /* [Å] valid for 0 <= r <= cutoff */
  double step;   /* [Å] */
  int nodes;     /* cutoff/step + 6 */
  int nlayers;
  ts_radial_table layer[TS_MAX_LAYERS];
  ts_radial_table embed; /* the first stage's only; width 0 elsewhere */
} ts_radial_stage;

enum { TS_RADIAL_SAMPLES = 16 };

/** Bytes that the tables of all pairs of elements may take while they are fitted, in double;
 * beyond, the first layers are split.  At the published width some 14 elements in a float run. */
#define TS_RADIAL_MOST (UINT64_C(2) << 30)

typedef struct ts_radial_set {
  bool split;
  int nspecies;
  int species[TS_MAX_ELEMENT]; /* atomic numbers; the tables' species indices follow this order */
  double tolerance;
  int nstages;
  ts_radial_stage stage[TS_MAX_STAGES];
} ts_radial_set;

/** Fit all tables of a model for the elements present.  Not collective.
 * The step is refined until every table's error is at most `tolerance`, or round-off or the largest
 * grid stops it: the caller compares `error` and tells the user.
 * \param [in]  weights    Checked against `desc`; borrowed for the call.
 * \param [in]  species    [nspecies] distinct atomic numbers.
 * \param [in]  tolerance  Relative to each table's largest output, e.g. 1e-7.
 * \param [in]  most       Bytes that the tables of pairs may take; where they would take more the
 *                         first layers are split.  0 always splits, UINT64_MAX never does.
 * \param [out] out        Release with ts_radial_destroy.
 * \return 0, TS_ERR_ARG, TS_ERR_INPUT (the weights overflow) or TS_ERR_MEMORY. */
int ts_radial_build(const ts_model_desc *desc, const ts_weights *weights, int nspecies,
                    const int *species, double tolerance, uint64_t most, ts_radial_set **out);

/** Bytes of the tables of pairs of all stages that are built; later ones count nothing. */
uint64_t ts_radial_bytes(const ts_radial_set *set);

void ts_radial_destroy(ts_radial_set **set);

/** The networks themselves: what the tables stand for.  Not collective.
 * \param [in]  layer   Layer of the stage, or -1 for the embedding (stage 0).
 * \param [in]  zi, zj  Atomic numbers of receiver and sender.
 * \param [in]  r       [nr] double [Å].
 * \param [out] value   [nr, W] double.
 * \param [out] slope   [nr, W] double [1/Å], or NULL.
 * \return 0, TS_ERR_ARG or TS_ERR_MEMORY. */
int ts_radial_exact(const ts_model_desc *desc, const ts_weights *weights, int stage, int layer,
                    int zi, int zj, int64_t nr, const double *r, double *value, double *slope);

/** The six pieces of the uniform quintic B-spline on one interval and their slopes (per step).
 * \param [in] t  Position in the interval, 0 <= t <= 1. */
static inline void tsi_bspline5(double t, double B[6], double dB[6])
{
  const double u = 1.0 - t, t2 = t * t, u2 = u * u, t4 = t2 * t2, u4 = u2 * u2;
  B[0] = u4 * u / 120.0;
  B[5] = t4 * t / 120.0;
  B[1] = (26.0 + t * (-50.0 + t * (20.0 + t * (20.0 + t * (-20.0 + 5.0 * t))))) / 120.0;
  B[4] = (26.0 + u * (-50.0 + u * (20.0 + u * (20.0 + u * (-20.0 + 5.0 * u))))) / 120.0;
  B[2] = (66.0 + t2 * (-60.0 + t2 * (30.0 - 10.0 * t))) / 120.0;
  B[3] = (66.0 + u2 * (-60.0 + u2 * (30.0 - 10.0 * u))) / 120.0;
  dB[0] = -u4 / 24.0;
  dB[5] = t4 / 24.0;
  dB[1] = (-10.0 + t * (8.0 + t * (12.0 + t * (-16.0 + 5.0 * t)))) / 24.0;
  dB[4] = -(-10.0 + u * (8.0 + u * (12.0 + u * (-16.0 + 5.0 * u)))) / 24.0;
  dB[2] = t * (-24.0 + t2 * (24.0 - 10.0 * t)) / 24.0;
  dB[3] = -u * (-24.0 + u2 * (24.0 - 10.0 * u)) / 24.0;
}

#endif
