/* SPDX-License-Identifier: MIT
 *
 * A network's input is (Gaussians of r, receiver's vector, sender's vector), so its first layer is
 * a sum of three parts: the Gaussians' is shared by all pairs of elements, the elements' by all r.
 * Distances go in blocks, so that every product is one of matrices.  Slopes are carried forward
 * beside the values (one input, many outputs). */
#include "models/radial_net.h"

#include "runtime/error.h"
#include "runtime/memory.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 }; /* distances per product */

/* Values [n, .] and, where wanted, slopes of one stage of the computation. */
typedef struct dual {
  double *value, *slope; /* slope is NULL when none is wanted */
} dual;

typedef struct scratch {
  dual basis;     /* [BLOCK, K] */
  dual first;     /* [BLOCK, m] the Gaussians' part of the first layer */
  dual x, y;      /* [BLOCK, m] */
  double *target; /* [ni, nmlp, m] the receivers' parts, with the bias */
  double *source; /* [nj, nmlp, m] the senders' parts */
} scratch;

/* ---- finding the weights --------------------------------------------------------------------- */

static int find(const ts_weights *weights, const char *prefix, const char *rest, const double **out)
{
  char name[2 * TS_TENSOR_NAME];
  snprintf(name, sizeof name, "%s.%s", prefix, rest);
  *out = ts_weights_data(weights, name);
  return *out ? 0 : tsi_fail(TS_ERR_ARG, "tensor \"%s\" is missing", name);
}

static int find_mlp(const ts_weights *weights, const char *prefix, int out, tsi_radial_mlp *mlp)
{
  static const char *const weight[] = {"net.0.weight", "net.3.weight", "net.6.weight"};
  static const char *const bias[] = {"net.0.bias", "net.3.bias", "net.6.bias"};
  static const char *const scale[] = {"net.1.weight", "net.4.weight"};
  static const char *const shift[] = {"net.1.bias", "net.4.bias"};
  mlp->out = out;
  for (int i = 0; i < 3; ++i) {
    TS_TRY(find(weights, prefix, weight[i], &mlp->weight[i]));
    TS_TRY(find(weights, prefix, bias[i], &mlp->bias[i]));
  }
  for (int i = 0; i < 2; ++i) {
    TS_TRY(find(weights, prefix, scale[i], &mlp->scale[i]));
    TS_TRY(find(weights, prefix, shift[i], &mlp->shift[i]));
  }
  return 0;
}

static int find_tables(const ts_weights *weights, const char *prefix, tsi_radial_net *net)
{
  ts_tensor_view view;
  char name[TS_TENSOR_NAME];
  TS_TRY(find(weights, prefix, "target_embedding.weight", &net->target));
  TS_TRY(find(weights, prefix, "source_embedding.weight", &net->source));
  snprintf(name, sizeof name, "%.90s.source_embedding.weight", prefix);
  ts_weights_find(weights, name, &view);
  net->element_width = (int)view.dim[1];
  return 0;
}

int tsi_radial_net_init(const ts_model_desc *desc, const ts_weights *weights, int stage, int layer,
                        tsi_radial_net *net)
{
  if (stage < 0 || stage >= desc->nstages || layer < -1 || layer >= desc->stage[stage].nlayers ||
      (layer == -1 && stage != 0))
    return tsi_fail(TS_ERR_ARG, "the model has no radial network of stage %d, layer %d", stage,
                    layer);
  *net = (tsi_radial_net){.bases = desc->bases, .cutoff = desc->stage[stage].cutoff};
  net->middle = desc->bases / 2 < 128 ? desc->bases / 2 : 128;
  char prefix[64], part[96];
  if (layer >= 0)
    snprintf(prefix, sizeof prefix, "decoder.decoder.%s.%d.ga", stage ? "long_blocks" : "blocks",
             layer);
  else
    snprintf(prefix, sizeof prefix, "decoder.decoder.edge_deg_embed_dense");
  TS_TRY(find_tables(weights, prefix, net));
  const bool split = layer >= 0 && desc->score == TS_SCORE_QKDOT; /* weights, factors */
  net->nmlp = layer < 0 ? desc->lmax + 1 : 1 + split;
  for (int i = 0; i < net->nmlp; ++i) {
    const int out = layer < 0 ? desc->channels
                    : !split  ? 2 * desc->heads
                    : i == 0  ? desc->heads
                              : desc->bases * (desc->lmax + 1);
    if (layer < 0)
      snprintf(part, sizeof part, "%s.gbf_projs.%d", prefix, i);
    else
      snprintf(part, sizeof part, "%s.%s", prefix, i ? "rad_func_m0" : "fc_easy");
    TS_TRY(find_mlp(weights, part, out, &net->mlp[i]));
    net->width += net->mlp[i].out;
  }
  return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* K Gaussians with centres spread evenly over [0, cutoff], twice their spacing wide.  Beyond 14
 * widths (e^-98) they are set to zero: subnormal numbers would slow the products. */
static void gaussians(const tsi_radial_net *net, int n, const double *r, dual basis)
{
  const double spacing = net->cutoff / (net->bases - 1), width = 2.0 * spacing;
  memset(basis.value, 0, (size_t)n * (size_t)net->bases * sizeof(double));
  if (basis.slope) memset(basis.slope, 0, (size_t)n * (size_t)net->bases * sizeof(double));
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < net->bases; ++k) {
      const double z = (r[i] - k * spacing) / width;
      if (fabs(z) > 14.0) continue;
      const double value = exp(-0.5 * z * z);
      basis.value[i * net->bases + k] = value;
      if (basis.slope) basis.slope[i * net->bases + k] = -z / width * value;
    }
}

/* Layer norm (biased variance, eps 1e-5), then SiLU, on one row in place. */
static void norm_silu(int m, const double *scale, const double *shift, double *x, double *dx)
{
  double mean = 0.0, variance = 0.0, dmean = 0.0, along = 0.0;
  for (int i = 0; i < m; ++i)
    mean += x[i];
  mean /= m;
  for (int i = 0; i < m; ++i)
    variance += (x[i] - mean) * (x[i] - mean);
  const double inverse = 1.0 / sqrt(variance / m + 1e-5);
  for (int i = 0; i < m; ++i)
    x[i] = (x[i] - mean) * inverse;
  if (dx) {
    for (int i = 0; i < m; ++i) {
      dmean += dx[i];
      along += x[i] * dx[i];
    }
    dmean /= m;
    along /= m;
    for (int i = 0; i < m; ++i)
      dx[i] = (dx[i] - dmean - x[i] * along) * inverse * scale[i];
  }
  for (int i = 0; i < m; ++i) {
    const double y = x[i] * scale[i] + shift[i], s = 1.0 / (1.0 + exp(-y));
    x[i] = y * s;
    if (dx) dx[i] *= s * (1.0 + y * (1.0 - s));
  }
}

/* out [n, o] (row stride) = in [n, k] weight^T, for values and slopes; weight [o, k] (row stride).
 * The bias is already in out's values, or beta is 0. */
static void product(int n, int o, int k, dual in, const double *weight, int stride, double beta,
                    dual out, int out_stride)
{
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, o, k, 1.0, in.value, k, weight, stride,
              beta, out.value, out_stride);
  if (out.slope)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, o, k, 1.0, in.slope, k, weight, stride,
                0.0, out.slope, out_stride);
}

static void set_rows(int n, int width, const double *row, double *out, int stride)
{
  for (int i = 0; i < n; ++i)
    memcpy(out + (int64_t)i * stride, row, (size_t)width * sizeof *row);
}

void tsi_radial_net_elements(const tsi_radial_net *net, bool receivers, int nz, const int *z,
                             double *part)
{
  const int m = net->middle, e = net->element_width, in = net->bases + 2 * e;
  const int column = net->bases + (receivers ? 0 : e);
  const double *table = receivers ? net->target : net->source;
  for (int s = 0; s < nz; ++s)
    for (int p = 0; p < net->nmlp; ++p) {
      double *row = part + ((int64_t)s * net->nmlp + p) * m;
      if (receivers) memcpy(row, net->mlp[p].bias[0], (size_t)m * sizeof *row);
      cblas_dgemv(CblasRowMajor, CblasNoTrans, m, e, 1.0, net->mlp[p].weight[0] + column, in,
                  table + (int64_t)z[s] * e, 1, 1.0, row, 1);
    }
}

/* One network for one pair of elements and one block of distances, from the first layer on. */
static void finish(const tsi_radial_net *net, const tsi_radial_mlp *mlp, int n, scratch *s,
                   const double *target, const double *source, dual out)
{
  const int m = net->middle;
  for (int i = 0; i < n; ++i) {
    double *x = s->x.value + i * m, *dx = s->x.slope ? s->x.slope + i * m : NULL;
    for (int c = 0; c < m; ++c)
      x[c] = s->first.value[i * m + c] + target[c] + source[c];
    if (dx) memcpy(dx, s->first.slope + i * m, (size_t)m * sizeof *dx);
    norm_silu(m, mlp->scale[0], mlp->shift[0], x, dx);
  }
  set_rows(n, m, mlp->bias[1], s->y.value, m);
  product(n, m, m, s->x, mlp->weight[1], m, 1.0, s->y, m);
  for (int i = 0; i < n; ++i)
    norm_silu(m, mlp->scale[1], mlp->shift[1], s->y.value + i * m,
              s->y.slope ? s->y.slope + i * m : NULL);
  set_rows(n, mlp->out, mlp->bias[2], out.value, net->width);
  product(n, mlp->out, m, s->y, mlp->weight[2], m, 1.0, out, net->width);
}

/* ---- sampling -------------------------------------------------------------------------------- */

static int make_dual(size_t count, bool with_slope, dual *out)
{
  TS_TRY(TSI_NEW(out->value, count));
  return with_slope ? TSI_NEW(out->slope, count) : 0;
}

static int make_scratch(const tsi_radial_net *net, int ni, int nj, bool with_slope, scratch *s)
{
  const size_t m = (size_t)net->middle, row = m * (size_t)net->nmlp;
  TS_TRY(make_dual(BLOCK * (size_t)net->bases, with_slope, &s->basis));
  TS_TRY(make_dual(BLOCK * m, with_slope, &s->first));
  TS_TRY(make_dual(BLOCK * m, with_slope, &s->x));
  TS_TRY(make_dual(BLOCK * m, with_slope, &s->y));
  TS_TRY(TSI_NEW(s->target, (size_t)ni * row));
  return TSI_NEW(s->source, (size_t)nj * row);
}

static void free_scratch(scratch *s)
{
  dual *const all[] = {&s->basis, &s->first, &s->x, &s->y};
  for (int i = 0; i < 4; ++i) {
    free(all[i]->value);
    free(all[i]->slope);
  }
  free(s->target);
  free(s->source);
}

/* A block of n distances; `out` is its first row of the first pair, rows of pairs are nr apart. */
static void sample_block(const tsi_radial_net *net, int ni, int nj, int64_t nr, int n,
                         const double *r, scratch *s, dual out)
{
  const int m = net->middle;
  gaussians(net, n, r, s->basis);
  for (int p = 0, column = 0; p < net->nmlp; column += net->mlp[p++].out) {
    product(n, m, net->bases, s->basis, net->mlp[p].weight[0], net->bases + 2 * net->element_width,
            0.0, s->first, m);
    for (int i = 0; i < ni; ++i)
      for (int j = 0; j < nj; ++j) {
        const int64_t at = ((int64_t)i * nj + j) * nr * net->width + column;
        finish(net, &net->mlp[p], n, s, s->target + (i * net->nmlp + p) * m,
               s->source + (j * net->nmlp + p) * m,
               (dual){out.value + at, out.slope ? out.slope + at : NULL});
      }
  }
}

int tsi_radial_net_sample(const tsi_radial_net *net, int ni, const int *zi, int nj, const int *zj,
                          int64_t nr, const double *r, double *value, double *slope)
{
  scratch s = {0};
  const int status = make_scratch(net, ni, nj, slope != NULL, &s);
  if (!status) {
    tsi_radial_net_elements(net, true, ni, zi, s.target);
    tsi_radial_net_elements(net, false, nj, zj, s.source);
  }
  for (int64_t i = 0; i < nr && !status; i += BLOCK) {
    const int n = (int)(nr - i < BLOCK ? nr - i : BLOCK);
    sample_block(net, ni, nj, nr, n, r + i, &s,
                 (dual){value + i * net->width, slope ? slope + i * net->width : NULL});
  }
  free_scratch(&s);
  return status;
}

int tsi_radial_net_first(const tsi_radial_net *net, int64_t nr, const double *r, double *first)
{
  const int m = net->middle;
  dual basis = {0};
  TS_TRY(make_dual(BLOCK * (size_t)net->bases, false, &basis));
  for (int64_t i = 0; i < nr; i += BLOCK) {
    const int n = (int)(nr - i < BLOCK ? nr - i : BLOCK);
    gaussians(net, n, r + i, basis);
    for (int p = 0; p < net->nmlp; ++p)
      product(n, m, net->bases, basis, net->mlp[p].weight[0], net->bases + 2 * net->element_width,
              0.0, (dual){first + (i * net->nmlp + p) * m, NULL}, net->nmlp * m);
  }
  free(basis.value);
  return 0;
}

int tsi_radial_net_rest(const tsi_radial_net *net, int zi, int zj, int64_t n, const double *first,
                        const double *dfirst, double *value, double *slope)
{
  const int m = net->middle, stride = net->nmlp * m;
  scratch s = {0};
  const int status = make_scratch(net, 1, 1, true, &s);
  if (!status) {
    tsi_radial_net_elements(net, true, 1, &zi, s.target);
    tsi_radial_net_elements(net, false, 1, &zj, s.source);
  }
  for (int64_t from = 0; from < n && !status; from += BLOCK) {
    const int count = (int)(n - from < BLOCK ? n - from : BLOCK);
    for (int p = 0, column = 0; p < net->nmlp; column += net->mlp[p++].out) {
      for (int i = 0; i < count; ++i) {
        const int64_t at = (from + i) * stride + p * m;
        memcpy(s.first.value + i * m, first + at, (size_t)m * sizeof *first);
        memcpy(s.first.slope + i * m, dfirst + at, (size_t)m * sizeof *dfirst);
      }
      finish(net, &net->mlp[p], count, &s, s.target + p * m, s.source + p * m,
             (dual){value + from * net->width + column, slope + from * net->width + column});
    }
  }
  free_scratch(&s);
  return status;
}
