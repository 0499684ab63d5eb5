/* SPDX-License-Identifier: MIT
 *
 * Building an edge set: run the three levels, then lay the found rows out as CSR and transpose
 * them. The search logs rows in the order in which chunks come, four bytes an edge; their sizes
 * then give the offsets, and the final arrays are allocated at their exact size.  The log is gone
 * before the columns are made, so the peak is what the result itself needs plus the candidates. */
#include "neighbor/edges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "neighbor/array.h"
#include "neighbor/columns.h"
#include "neighbor/faiss_index.h"
#include "neighbor/scan.h"
#include "runtime/error.h"
#include "runtime/memory.h"

void ts_search_params_init(ts_search_params *params)
{
  *params = (ts_search_params){.backend = TS_SEARCH_CELLS, .chunk = 512};
}

void ts_edges_destroy(ts_edges **edges)
{
  ts_edges *e = *edges;
  if (!e) return;
  free(e->row);
  free(e->receiver);
  free(e->sender);
  free(e->shift);
  free(e->shift_image);
  free(e->shift_vector);
  free(e->column);
  free(e->column_edge);
  free(e);
  *edges = NULL;
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Time since *since, which moves to now. */
static double lap(double *since)
{
  const double now = seconds(), passed = now - *since;
  *since = now;
  return passed;
}

static int check_params(const ts_search_params *p)
{
  if (!(p->cutoff > 0 && p->cutoff < 1e12))
    return tsi_fail(TS_ERR_ARG, "cutoff %g Å: expected a positive length", p->cutoff);
  if (!(p->lower >= 0 && p->lower <= p->cutoff))
    return tsi_fail(TS_ERR_ARG, "lower bound %g Å: expected 0 to the cutoff, %g Å", p->lower,
                    p->cutoff);
  if (!(p->skin >= 0 && p->skin < 1e12))
    return tsi_fail(TS_ERR_ARG, "skin %g Å: expected zero or a positive length", p->skin);
  if (p->chunk < 1) return tsi_fail(TS_ERR_ARG, "chunk %d: expected at least 1", p->chunk);
  if (p->backend != TS_SEARCH_CELLS && p->backend != TS_SEARCH_FAISS)
    return tsi_fail(TS_ERR_ARG, "search back end %d is unknown", (int)p->backend);
  return 0;
}

/* How far float distances can be trusted.  Both ends of a pair are off by at most `error` per
 * coordinate, so the vector is off by 2 sqrt(3) error < 4 error in length; forming it, squaring and
 * adding in float costs below 4 * 2^-24 of the length, for which 16 * 2^-24 are granted. */
static void set_bounds(tsi_search *s)
{
  const double e = 4 * s->candidates.error;
  s->margin = e + ldexp(16 * (s->upper + e), -24);
  const double far = s->upper + s->margin, low = s->lower + s->margin, high = s->upper - s->margin;
  s->bounds.far = (float)(far * far * (1 + 1e-6));
  s->bounds.sure_low = (float)(low * low * (1 + 1e-6));
  s->bounds.sure_high = high > 0 ? (float)(high * high * (1 - 1e-6)) : -1;
}

static int search_rows(tsi_search *s, ts_lidx n, const ts_search_params *params)
{
  int count;
  s->scan = tsi_scan_list(&count)[0];
  set_bounds(s);
  TS_TRY(TSI_ARRAY(s->row_start, n));
  TS_TRY(TSI_ARRAY(s->row_size, n));
  if (n == 0) return 0;
  return tsi_search_bisect(
      s, s->candidates.query, n, &s->candidates.points, params->chunk, 0,
      params->backend == TS_SEARCH_FAISS ? tsi_search_faiss : tsi_search_cells);
}

/* The number of the shift with this code; new ones are numbered as rows meet them. */
static int new_shift(const tsi_search *s, int32_t code, int32_t *capacity, int32_t *number,
                     ts_edges *e)
{
  int32_t image[3];
  if (e->nshift == *capacity) {
    const int32_t larger = 2 * *capacity + 32;
    void *images = realloc(e->shift_image, (size_t)larger * sizeof *e->shift_image);
    if (images) e->shift_image = images;
    void *vectors = realloc(e->shift_vector, (size_t)larger * sizeof *e->shift_vector);
    if (vectors) e->shift_vector = vectors;
    if (!images || !vectors) return tsi_fail(TS_ERR_MEMORY, "no memory for %d shifts", larger);
    *capacity = larger;
  }
  tsi_code_image(&s->candidates, code, image);
  for (int k = 0; k < 3; k++)
    e->shift_image[e->nshift][k] = (int16_t)image[k];
  ts_cell_shift(s->cell, image, e->shift_vector[e->nshift]);
  number[code] = ++e->nshift; /* 0: not yet met */
  return 0;
}

static int fill_rows(const tsi_search *s, ts_edges *e)
{
  const tsi_candidates *c = &s->candidates;
  int32_t *table = NULL, capacity = 0;
  TS_TRY(TSI_NEW(table, c->codes));
  int32_t *number = table + c->codes / 2;
  int status = new_shift(s, 0, &capacity, number, e);
  for (ts_lidx i = 0; i < e->n && !status; i++) {
    const int32_t *hit = s->log + s->row_start[i];
    const int64_t first = e->row[i];
    const int32_t size = s->row_size[i], home = c->home[i];
    for (int32_t k = 0; k < size; k++) {
      const int32_t code = c->code[hit[k]] - home;
      if (!number[code]) TS_TRY_GOTO(status, new_shift(s, code, &capacity, number, e), done);
      e->receiver[first + k] = i;
      e->sender[first + k] = c->atom[hit[k]];
      e->shift[first + k] = number[code] - 1;
    }
  }
done:
  free(table);
  return status;
}

/* Room for `count` edges in every array but column_edge, which holds the log until rows are made.
 */
static int reserve_edges(int64_t count, ts_edges *e)
{
  if (e->receiver && count <= e->capacity) return 0;
  free(e->receiver);
  free(e->sender);
  free(e->shift);
  e->receiver = e->sender = e->shift = NULL;
  e->capacity = count + count / 16; /* the next build finds a few more or fewer */
  TS_TRY(TSI_ARRAY(e->receiver, e->capacity));
  TS_TRY(TSI_ARRAY(e->sender, e->capacity));
  return TSI_ARRAY(e->shift, e->capacity);
}

static int make_rows(const tsi_search *s, ts_edges *e)
{
  TS_TRY(TSI_NEW(e->row, (size_t)e->n + 1));
  for (ts_lidx i = 0; i < e->n; i++)
    e->row[i + 1] = e->row[i] + s->row_size[i];
  e->count = e->row[e->n];
  TS_TRY(reserve_edges(e->count, e));
  return fill_rows(s, e);
}

/* The log has served; its memory becomes column_edge if it is large enough. */
static int make_columns(tsi_search *s, bool symmetric, ts_edges *e)
{
  if (s->log_capacity >= 2 * e->capacity) {
    e->column_edge = (int64_t *)(void *)s->log;
  } else {
    free(s->log);
    TS_TRY(TSI_ARRAY(e->column_edge, e->capacity));
  }
  s->log = NULL;
  return tsi_columns_make(s->candidates.by_gid, symmetric, e);
}

/* An edge set without edges, in the memory of an earlier one. */
static int recycle(ts_edges *old, ts_lidx n, ts_lidx nhalo, tsi_search *s, ts_edges **out)
{
  *out = old;
  if (!old) TS_TRY(TSI_NEW(*out, 1));
  ts_edges *e = *out;
  s->log = (int32_t *)e->column_edge;
  s->log_capacity = 2 * e->capacity;
  free(e->row);
  free(e->column);
  free(e->shift_image);
  free(e->shift_vector);
  *e = (ts_edges){.n = n,
                  .nsenders = n + nhalo,
                  .capacity = e->capacity,
                  .receiver = e->receiver,
                  .sender = e->sender,
                  .shift = e->shift};
  return 0;
}

static bool any(const bool *flag, ts_lidx n)
{
  for (ts_lidx i = 0; flag && i < n; i++)
    if (flag[i]) return true;
  return false;
}

static int build(tsi_search *s, const ts_gidx *gid, const ts_search_params *params, ts_edges *e)
{
  double since = seconds();
  const bool *excluded = any(params->excluded_sender, e->nsenders) ? params->excluded_sender : NULL;
  TS_TRY(tsi_candidates_build(s->cell, e->n, e->nsenders, s->x, gid, excluded, s->upper,
                              &s->candidates));
  e->stats.candidates = s->candidates.points.n;
  e->stats.candidate_s = lap(&since);
  TS_TRY(search_rows(s, e->n, params));
  e->stats.chunks = s->chunks;
  e->stats.search_s = lap(&since);
  TS_TRY(make_rows(s, e));
  e->stats.row_s = lap(&since);
  TS_TRY(make_columns(s, !excluded, e));
  e->stats.column_s = lap(&since);
  return 0;
}

static void release(tsi_search *s)
{
  tsi_candidates_free(&s->candidates);
  for (int d = 0; d < TSI_MAX_DEPTH; d++)
    tsi_points_free(&s->level[d]);
  free(s->log);
  free(s->row_start);
  free(s->row_size);
  free(s->unsure);
}

static int start(const ts_cell *cell, ts_lidx n, ts_lidx nhalo, const double (*x)[3],
                 const ts_search_params *params, tsi_search *s, ts_edges **e)
{
  *s = (tsi_search){.cell = cell,
                    .x = x,
                    .lower = fmax(0, params->lower - params->skin),
                    .upper = params->cutoff + params->skin};
  const bool fits = n >= 0 && nhalo >= 0 && nhalo <= INT32_MAX - n;
  TS_TRY(recycle(params->recycle, fits ? n : 0, fits ? nhalo : 0, s, e));
  TS_TRY(check_params(params));
  if (!fits)
    return tsi_fail(TS_ERR_ARG, "%d atoms and %d of the halo: expected 0 to %d in all", n, nhalo,
                    INT32_MAX);
  return 0;
}

int ts_edges_build(const ts_cell *cell, ts_lidx n, ts_lidx nhalo, const double (*x)[3],
                   const ts_gidx *gid, const ts_search_params *params, ts_edges **out)
{
  tsi_search search;
  ts_edges *e = NULL;
  int status = start(cell, n, nhalo, x, params, &search, &e);
  if (!status) status = build(&search, gid, params, e);
  release(&search);
  if (status) ts_edges_destroy(&e);
  *out = e;
  return status;
}
