/* SPDX-License-Identifier: MIT
 *
 * The radial networks themselves, with their slopes: what radial tables are fitted to and checked
 * against. */
#ifndef TS_RADIAL_NET_H
#define TS_RADIAL_NET_H

#include "models/description.h"
#include "models/safetensors.h"

/* One network: linear, layer norm, SiLU, twice, then linear.  All borrowed from the weights. */
typedef struct tsi_radial_mlp {
  const double *weight[3]; /* [m, in], [m, m], [out, m] */
  const double *bias[3];   /* [m], [m], [out] */
  const double *scale[2];  /* [m] of the layer norms */
  const double *shift[2];  /* [m] */
  int out;
} tsi_radial_mlp;

/* The networks behind one table: one of a layer, one per degree of the embedding; their outputs
 * stand side by side. */
typedef struct tsi_radial_net {
  int nmlp;
  tsi_radial_mlp mlp[TS_LMAX + 1];
  const double *target, *source; /* [rows, element_width] of receiver and sender; borrowed */
  int element_width;
  int bases;  /* K */
  int middle; /* m */
  int width;  /* W, all outputs */
  double cutoff;
} tsi_radial_net;

/** Find the weights of a table; layer -1 is the embedding (stage 0 only).
 * \return 0 or TS_ERR_ARG when a tensor or the layer is not there. */
int tsi_radial_net_init(const ts_model_desc *desc, const ts_weights *weights, int stage, int layer,
                        tsi_radial_net *net);

/** Evaluate at any r (also outside of [0, cutoff]) for every receiver with every sender.
 * \param [in]  zi, zj  [ni], [nj] atomic numbers of receivers and senders.
 * \param [in]  r       [nr] double [Å].
 * \param [out] value   [ni, nj, nr, W] double.
 * \param [out] slope   The same shape [1/Å], or NULL.
 * \return 0 or TS_ERR_MEMORY. */
int tsi_radial_net_sample(const tsi_radial_net *net, int ni, const int *zi, int nj, const int *zj,
                          int64_t nr, const double *r, double *value, double *slope);

/** The first layers in their three parts, whose sum the rest of the networks reads: of the
 * distance, first [nr, P, m] (P networks); of elements as receivers (with the bias) or as senders,
 * part [nz, P, m], zeros on entry.  \return 0 or TS_ERR_MEMORY. */
int tsi_radial_net_first(const tsi_radial_net *net, int64_t nr, const double *r, double *first);
void tsi_radial_net_elements(const tsi_radial_net *net, bool receivers, int nz, const int *z,
                             double *part);

/** The rest of the networks for one pair of elements.
 * \param [in]  first, dfirst  [n, P, m] of the distance, and its slope [1/Å].
 * \param [out] value, slope   [n, W].  \return 0 or TS_ERR_MEMORY. */
int tsi_radial_net_rest(const tsi_radial_net *net, int zi, int zj, int64_t n, const double *first,
                        const double *dfirst, double *value, double *slope);

#endif
