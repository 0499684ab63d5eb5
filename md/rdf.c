/* SPDX-License-Identifier: MIT
 *
 * Counting pairs by distance; see rdf.h.  The search is that of the edges, over the atoms of the
 * elements asked for only, with the rarer element of each pair as senders; senders come in batches,
 * so that the edges held at a time are bounded (about 120 MB) whatever the size of the system.
 * Counts are whole numbers in doubles: exact, and independent of the order of atoms.  A rank counts
 * the pairs whose receiver it owns; the senders of other ranks come from Level 1, whatever r_max is
 * beside the model's cutoffs.  After each frame all ranks hold the counts of all. */
#include "md/rdf.h"

#include "comm/sparse.h"
#include "md/elements.h"
#include "neighbor/edge_vector.h"
#include "neighbor/edges.h"
#include "neighbor/level1.h"
#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "runtime/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const double batch_edges = 4e6;

/* Pairs of the same two elements share one histogram. */
typedef struct histogram {
  uint8_t a, b;  /* receiver and sender in the search */
  double weight; /* sum over frames of N_A N_B' / V [1/Å^3] */
  double *count; /* [bins] ordered pairs (A, B), which are as many as (B, A) */
} histogram;

/* The atoms involved in one frame: this rank's and, behind them, those of others within reach. */
typedef struct points {
  ts_lidx own, n;
  double (*x)[3];
  uint8_t *z;
  ts_gidx *gid; /* only told apart */
  bool *excluded;
} points;

struct ts_rdf {
  ts_ranks ranks;
  int npairs, nhistograms;
  uint8_t (*pair)[2];   /* [npairs] as asked for */
  int *shared;          /* [npairs] histogram of each */
  histogram *histogram; /* [nhistograms] */
  int32_t bins;
  double bin; /* [Å] */
  double frames;
  int64_t atoms_of[TS_ELEMENTS + 1];               /* in the whole system */
  int64_t involved_atoms;                          /* of elements in some pair, in all */
  int16_t found[TS_ELEMENTS + 1][TS_ELEMENTS + 1]; /* histogram of (receiver, sender), or -1 */
  bool involved[TS_ELEMENTS + 1], sends[TS_ELEMENTS + 1];
  int64_t *frame; /* counts of one frame: [histograms, bins], then [histograms] of own images */
};

static int refuse_bins(const ts_rdf_params *params)
{
  if (!(params->bin > 0.0 && params->r_max > 0.0 && params->r_max / params->bin <= 1e6))
    return tsi_fail(TS_ERR_INPUT,
                    "radial distribution: r_max %g Å in bins of %g Å; both must be positive and "
                    "make at most 1000000 bins",
                    params->r_max, params->bin);
  return 0;
}

static int refuse_open_cell(const ts_cell *cell)
{
  const int periodic = cell->periodic[0] + cell->periodic[1] + cell->periodic[2];
  if (periodic == 3) return 0;
  return tsi_fail(TS_ERR_INPUT,
                  "radial distribution: g(r) is relative to a density, so the structure must be "
                  "periodic in three directions; this one is in %d",
                  periodic);
}

static int count_elements(const ts_rdf_params *params, ts_lidx n, const uint8_t *z, ts_rdf *rdf)
{
  for (ts_lidx i = 0; i < n; i++)
    if (z[i] <= TS_ELEMENTS) rdf->atoms_of[z[i]]++;
  TS_TRY(ts_ranks_sum_i64(&rdf->ranks, TS_ELEMENTS + 1, rdf->atoms_of));
  for (int p = 0; p < params->npairs; p++) {
    for (int side = 0; side < 2; side++) {
      const int element = params->pair[p][side];
      const char *symbol = ts_element_symbol(element);
      if (!symbol)
        return tsi_fail(TS_ERR_ARG, "radial distribution: there is no element %d", element);
      if (!rdf->atoms_of[element])
        return tsi_fail(TS_ERR_INPUT, "radial distribution %s-%s: the structure has no %s",
                        ts_element_symbol(params->pair[p][0]),
                        ts_element_symbol(params->pair[p][1]), symbol);
    }
  }
  return 0;
}

/* Give each pair its histogram, with the rarer element as sender. */
static void share_histograms(ts_rdf *rdf)
{
  memset(rdf->found, 0xff, sizeof rdf->found); /* -1 */
  for (int p = 0; p < rdf->npairs; p++) {
    uint8_t a = rdf->pair[p][0], b = rdf->pair[p][1];
    if (rdf->atoms_of[a] < rdf->atoms_of[b] || (rdf->atoms_of[a] == rdf->atoms_of[b] && a < b)) {
      a = rdf->pair[p][1];
      b = rdf->pair[p][0];
    }
    if (rdf->found[a][b] < 0) {
      rdf->found[a][b] = (int16_t)rdf->nhistograms;
      rdf->histogram[rdf->nhistograms].a = a;
      rdf->histogram[rdf->nhistograms++].b = b;
    }
    rdf->shared[p] = rdf->found[a][b];
    rdf->involved[a] = rdf->involved[b] = rdf->sends[b] = true;
  }
}

static int allocate(ts_rdf *rdf, const ts_rdf_params *params)
{
  for (int element = 1; element <= TS_ELEMENTS; element++)
    if (rdf->involved[element]) rdf->involved_atoms += rdf->atoms_of[element];
  rdf->bin = params->bin;
  rdf->bins = (int32_t)ceil(params->r_max / params->bin * (1.0 - 1e-12));
  TS_TRY(TSI_NEW(rdf->frame, rdf->nhistograms * ((int64_t)rdf->bins + 1)));
  for (int h = 0; h < rdf->nhistograms; h++)
    TS_TRY(TSI_NEW(rdf->histogram[h].count, rdf->bins));
  return 0;
}

int ts_rdf_create(const ts_rdf_params *params, const ts_cell *cell, ts_lidx n, const uint8_t *z,
                  ts_rdf **out)
{
  ts_rdf *rdf = NULL;
  int status;
  *out = NULL;
  TS_TRY(refuse_bins(params));
  TS_TRY(refuse_open_cell(cell));
  TS_TRY_GOTO(status, TSI_NEW(rdf, 1), fail);
  rdf->ranks = params->ranks ? *params->ranks : ts_ranks_virtual(1);
  TS_TRY_GOTO(status, count_elements(params, n, z, rdf), fail);
  TS_TRY_GOTO(status, TSI_NEW(rdf->pair, params->npairs), fail);
  TS_TRY_GOTO(status, TSI_NEW(rdf->shared, params->npairs), fail);
  TS_TRY_GOTO(status, TSI_NEW(rdf->histogram, params->npairs), fail);
  rdf->npairs = params->npairs;
  if (params->npairs) memcpy(rdf->pair, params->pair, sizeof *rdf->pair * (size_t)params->npairs);
  share_histograms(rdf);
  TS_TRY_GOTO(status, allocate(rdf, params), fail);
  *out = rdf;
  return 0;
fail:
  ts_rdf_destroy(&rdf);
  return status;
}

void ts_rdf_destroy(ts_rdf **rdf)
{
  ts_rdf *r = *rdf;
  *rdf = NULL;
  if (!r) return;
  for (int h = 0; h < r->nhistograms; h++)
    free(r->histogram[h].count);
  free(r->histogram);
  free(r->shared);
  free(r->pair);
  free(r->frame);
  free(r);
}

/* Copy this rank's atoms that are involved, wrapped. */
static int gather(const ts_rdf *rdf, const ts_cell *cell, ts_lidx n, const double (*x)[3],
                  const uint8_t *z, points *p)
{
  int32_t(*image)[3] = NULL;
  for (ts_lidx i = 0; i < n; i++)
    p->n += z[i] <= TS_ELEMENTS && rdf->involved[z[i]];
  TS_TRY(TSI_NEW(p->x, p->n));
  TS_TRY(TSI_NEW(p->z, p->n));
  TS_TRY(TSI_NEW(p->gid, p->n));
  TS_TRY(TSI_NEW(image, p->n));
  for (ts_lidx i = 0; i < n; i++) {
    if (z[i] > TS_ELEMENTS || !rdf->involved[z[i]]) continue;
    memcpy(p->x[p->own], x[i], sizeof *x);
    p->gid[p->own] = p->own;
    p->z[p->own++] = z[i];
  }
  const int status = ts_cell_wrap(cell, p->n, p->x, image);
  free(image);
  return status;
}

/* Put the atoms of other ranks behind. */
static int join(points *p, const ts_remote *remote)
{
  points all = {.own = p->own, .n = p->own + remote->n};
  int status = TSI_NEW(all.x, all.n);
  if (!status) status = TSI_NEW(all.z, all.n);
  if (!status) status = TSI_NEW(all.gid, all.n);
  if (!status) status = TSI_NEW(all.excluded, all.n);
  if (!status && p->own) {
    memcpy(all.x, p->x, sizeof *p->x * (size_t)p->own);
    memcpy(all.z, p->z, (size_t)p->own);
  }
  if (!status && remote->n) {
    memcpy(all.x + p->own, remote->x, sizeof *remote->x * (size_t)remote->n);
    memcpy(all.z + p->own, remote->tag, (size_t)remote->n);
  }
  for (ts_lidx i = 0; i < all.n && !status; i++)
    all.gid[i] = i;
  free(p->x);
  free(p->z);
  free(p->gid);
  *p = all;
  return status;
}

static void count_edges(ts_rdf *rdf, const points *p, const ts_edges *edges)
{
  int64_t *own = rdf->frame + (int64_t)rdf->nhistograms * rdf->bins;
  for (int64_t e = 0; e < edges->count; e++) {
    const ts_lidx i = edges->receiver[e], j = edges->sender[e];
    const int which = rdf->found[p->z[i]][p->z[j]];
    double d[3];
    if (which < 0) continue;
    const double r = tsi_edge_vector(p->x[i], p->x[j], edges->shift_vector[edges->shift[e]], d);
    const int32_t k = (int32_t)(r / rdf->bin);
    if (k >= rdf->bins) continue; /* at the end of the last bin */
    rdf->frame[(int64_t)which * rdf->bins + k]++;
    own[which] += i == j;
  }
}

/* Search with the senders among atoms first .. last-1 only. */
static int count_batch(ts_rdf *rdf, const ts_cell *cell, const points *p, ts_lidx first,
                       ts_lidx last)
{
  ts_search_params search;
  ts_edges *edges;
  ts_search_params_init(&search);
  search.cutoff = rdf->bins * rdf->bin;
  search.excluded_sender = p->excluded;
  for (ts_lidx i = 0; i < p->n; i++)
    p->excluded[i] = i < first || i >= last || !rdf->sends[p->z[i]];
  TS_TRY(ts_edges_build(cell, p->own, p->n - p->own, (const double(*)[3])p->x, p->gid, &search,
                        &edges));
  count_edges(rdf, p, edges);
  ts_edges_destroy(&edges);
  return 0;
}

static int count_pairs(ts_rdf *rdf, const ts_cell *cell, const points *p)
{
  const double reach = rdf->bins * rdf->bin, volume = ts_cell_volume(cell);
  const double around =
      1.0 + (double)rdf->involved_atoms * (4.0 / 3.0 * pi * reach * reach * reach) / volume;
  const ts_lidx batch = (ts_lidx)fmin(fmax(batch_edges / around, 1.0), (double)p->n);
  memset(rdf->frame, 0, sizeof *rdf->frame * (size_t)rdf->nhistograms * (size_t)(rdf->bins + 1));
  for (ts_lidx first = 0; first < p->n; first += batch)
    TS_TRY(count_batch(rdf, cell, p, first, p->n - first < batch ? p->n : first + batch));
  return 0;
}

/* The frame's counts of this rank, in rdf->frame. */
static int count_frame(ts_rdf *rdf, const ts_cell *cell, ts_lidx n, const double (*x)[3],
                       const uint8_t *z)
{
  points p = {0};
  ts_level1_params level1;
  ts_remote remote = {0};
  ts_level1_params_init(&level1);
  int status = tsi_ranks_agree(&rdf->ranks, gather(rdf, cell, n, x, z, &p));
  if (!status && rdf->ranks.size > 1) {
    const ts_shard shard = {.n = p.own, .x = (const double(*)[3])p.x, .gid = p.gid, .tag = p.z};
    status =
        ts_level1_find(&rdf->ranks, &level1, cell, rdf->bins * rdf->bin, &shard, &remote, NULL);
  }
  if (!status) {
    status = join(&p, &remote);
    if (!status) status = count_pairs(rdf, cell, &p);
    status = tsi_ranks_agree(&rdf->ranks, status);
  }
  ts_remote_free(&remote);
  free(p.x);
  free(p.z);
  free(p.gid);
  free(p.excluded);
  return status;
}

int ts_rdf_add(ts_rdf *rdf, const ts_cell *cell, ts_lidx n, const double (*x)[3], const uint8_t *z)
{
  const double volume = ts_cell_volume(cell);
  const int64_t *own = rdf->frame + (int64_t)rdf->nhistograms * rdf->bins;
  TS_TRY(count_frame(rdf, cell, n, x, z));
  TS_TRY(ts_ranks_sum_i64(&rdf->ranks, rdf->nhistograms * (rdf->bins + 1), rdf->frame));
  for (int h = 0; h < rdf->nhistograms; h++) {
    histogram *hist = &rdf->histogram[h];
    const double na = (double)rdf->atoms_of[hist->a];
    const double others =
        (double)rdf->atoms_of[hist->b] - (hist->a == hist->b && !own[h] ? 1.0 : 0.0);
    hist->weight += na * others / volume;
    for (int32_t k = 0; k < rdf->bins; k++)
      hist->count[k] += (double)rdf->frame[(int64_t)h * rdf->bins + k];
  }
  rdf->frames += 1.0;
  return 0;
}

int64_t ts_rdf_frames(const ts_rdf *rdf)
{
  return (int64_t)rdf->frames;
}

static void put_number(FILE *file, double value)
{
  char text[TSI_NUMBER_TEXT];
  tsi_number_write(value, text);
  fputs(text, file);
}

static void write_header(const ts_rdf *rdf, FILE *file)
{
  fputs("r_A", file);
  for (int p = 0; p < rdf->npairs; p++) {
    const char *a = ts_element_symbol(rdf->pair[p][0]), *b = ts_element_symbol(rdf->pair[p][1]);
    fprintf(file, ",g_%s-%s,n_%s-%s", a, b, a, b);
  }
  fputc('\n', file);
}

/* One pair's g in bin k, and its coordination number up to the end of the bin. */
static void write_pair(const ts_rdf *rdf, int p, int32_t k, double *sum, FILE *file)
{
  const histogram *hist = &rdf->histogram[rdf->shared[p]];
  const double inner = k * rdf->bin, outer = (k + 1) * rdf->bin;
  const double shell = 4.0 / 3.0 * pi * (outer * outer * outer - inner * inner * inner);
  const double expected = hist->weight * shell;
  *sum += hist->count[k];
  fputc(',', file);
  put_number(file, expected > 0.0 ? hist->count[k] / expected : 0.0);
  fputc(',', file);
  put_number(file, rdf->frames > 0.0 ? *sum / rdf->frames / rdf->atoms_of[rdf->pair[p][0]] : 0.0);
}

int ts_rdf_write(const ts_rdf *rdf, const char *path)
{
  ts_aside aside;
  double *sum = NULL;
  TS_TRY(TSI_NEW(sum, rdf->npairs));
  const int status = ts_aside_open(path, &aside);
  if (status) {
    free(sum);
    return status;
  }
  write_header(rdf, aside.file);
  for (int32_t k = 0; k < rdf->bins; k++) {
    put_number(aside.file,
               rint(1e9 * (k + 0.5) * rdf->bin) / 1e9); /* 0.075, not 0.07500000000000001 */
    for (int p = 0; p < rdf->npairs; p++)
      write_pair(rdf, p, k, &sum[p], aside.file);
    fputc('\n', aside.file);
  }
  free(sum);
  return ts_aside_commit(&aside);
}

/* The state: bins, width, frames; then of each histogram its elements, weight and counts. */
enum { STATE_HEAD = 3, HISTOGRAM_HEAD = 3 };

int64_t ts_rdf_state_size(const ts_rdf *rdf)
{
  return STATE_HEAD + (int64_t)rdf->nhistograms * (HISTOGRAM_HEAD + rdf->bins);
}

void ts_rdf_save(const ts_rdf *rdf, double *state)
{
  *state++ = rdf->bins;
  *state++ = rdf->bin;
  *state++ = rdf->frames;
  for (int h = 0; h < rdf->nhistograms; h++) {
    const histogram *hist = &rdf->histogram[h];
    *state++ = hist->a;
    *state++ = hist->b;
    *state++ = hist->weight;
    memcpy(state, hist->count, sizeof *state * (size_t)rdf->bins);
    state += rdf->bins;
  }
}

int ts_rdf_load(ts_rdf *rdf, int64_t size, const double *state)
{
  bool same = size == ts_rdf_state_size(rdf) && state[0] == rdf->bins && state[1] == rdf->bin;
  const int64_t stride = HISTOGRAM_HEAD + rdf->bins;
  for (int h = 0; same && h < rdf->nhistograms; h++) {
    const double *from = state + STATE_HEAD + h * stride;
    same = from[0] == rdf->histogram[h].a && from[1] == rdf->histogram[h].b;
  }
  if (!same)
    return tsi_fail(TS_ERR_INPUT,
                    "radial distribution: the stored counts are of other pairs or bins than the "
                    "job's; keep output.rdf as it was to resume");
  rdf->frames = state[2];
  for (int h = 0; h < rdf->nhistograms; h++) {
    const double *from = state + STATE_HEAD + h * stride;
    rdf->histogram[h].weight = from[2];
    memcpy(rdf->histogram[h].count, from + HISTOGRAM_HEAD, sizeof *from * (size_t)rdf->bins);
  }
  return 0;
}
