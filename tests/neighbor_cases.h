/* SPDX-License-Identifier: MIT
 *
 * For the tests of neighbor/: a small random generator, random cells with atoms in awkward places,
 * and a brute-force edge list that shares no code with the search: its own inverse by cofactors,
 * its own image ranges per pair, one image more on each side than needed. */
#ifndef TS_TESTS_NEIGHBOR_CASES_H
#define TS_TESTS_NEIGHBOR_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "neighbor/edges.h"
#include "runtime/error.h"

enum { CASE_MAX_ATOMS = 64 };

static inline uint64_t next_random(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

static inline double uniform(uint64_t *state, double low, double high)
{
  return low + (high - low) * ldexp((double)(next_random(state) >> 11), -53);
}

static inline int below(uint64_t *state, int n)
{
  return (int)(next_random(state) % (uint64_t)n);
}

#define ASSERT_OK(call)                                                    \
  do {                                                                     \
    if ((call) != 0) fail_msg("%s failed: %s", #call, ts_error_message()); \
  } while (0)

typedef struct brute_edge {
  ts_lidx i, j;
  int32_t image[3];
  double r;
} brute_edge;

typedef struct brute_list {
  int64_t count, capacity;
  brute_edge *edge;
} brute_list;

static inline void brute_add(brute_list *list, brute_edge edge)
{
  if (list->count == list->capacity) {
    list->capacity = 2 * list->capacity + 64;
    list->edge = realloc(list->edge, (size_t)list->capacity * sizeof *list->edge);
    assert_non_null(list->edge);
  }
  list->edge[list->count++] = edge;
}

static inline void brute_pair(const ts_cell *cell, const double inv[3][3], const double wide[3],
                              ts_lidx i, ts_lidx j, const double (*x)[3], double lower,
                              double upper, brute_list *list)
{
  int first[3] = {0}, last[3] = {0};
  for (int k = 0; k < 3; k++) {
    double f = 0;
    for (int m = 0; m < 3; m++)
      f += (x[i][m] - x[j][m]) * inv[m][k];
    if (!cell->periodic[k]) continue;
    first[k] = (int)floor(f - wide[k]) - 1;
    last[k] = (int)ceil(f + wide[k]) + 1;
  }
  for (int a = first[0]; a <= last[0]; a++)
    for (int b = first[1]; b <= last[1]; b++)
      for (int c = first[2]; c <= last[2]; c++) {
        double r2 = 0;
        for (int m = 0; m < 3; m++) {
          const double s = a * cell->h[0][m] + b * cell->h[1][m] + c * cell->h[2][m];
          const double d = x[i][m] - x[j][m] - s;
          r2 += d * d;
        }
        const double r = sqrt(r2);
        if (i == j && a == 0 && b == 0 && c == 0) continue;
        if (r >= lower && r <= upper) brute_add(list, (brute_edge){i, j, {a, b, c}, r});
      }
}

/* Every edge, by receiver, then sender's gid, then image. */
static inline brute_list brute_edges(const ts_cell *cell, ts_lidx n, const double (*x)[3],
                                     const ts_gidx *gid, double lower, double upper)
{
  brute_list list = {0};
  double inv[3][3], wide[3];
  const double(*h)[3] = cell->h;
  double det = 0;
  for (int k = 0; k < 3; k++) {
    const double *p = h[(k + 1) % 3], *q = h[(k + 2) % 3];
    for (int m = 0; m < 3; m++)
      inv[m][k] = p[(m + 1) % 3] * q[(m + 2) % 3] - p[(m + 2) % 3] * q[(m + 1) % 3];
  }
  for (int m = 0; m < 3; m++)
    det += h[0][m] * inv[m][0];
  for (int k = 0; k < 3; k++) {
    double area2 = 0;
    for (int m = 0; m < 3; m++) {
      area2 += inv[m][k] * inv[m][k];
      inv[m][k] /= det;
    }
    wide[k] = upper * sqrt(area2) / fabs(det);
  }
  ts_lidx *order = malloc(((size_t)n + 1) * sizeof *order);
  for (ts_lidx a = 0; a < n; a++) { /* insertion sort by gid */
    ts_lidx at = a;
    for (; at > 0 && gid[order[at - 1]] > gid[a]; at--)
      order[at] = order[at - 1];
    order[at] = a;
  }
  for (ts_lidx i = 0; i < n; i++)
    for (ts_lidx b = 0; b < n; b++)
      brute_pair(cell, (const double(*)[3])inv, wide, i, order[b], x, lower, upper, &list);
  free(order);
  return list;
}

/* Same edges, same order. */
static inline void assert_edges_are(const ts_edges *e, const brute_list *list, const char *what)
{
  if (e->count != list->count)
    fail_msg("%s: %lld edges, brute force finds %lld", what, (long long)e->count,
             (long long)list->count);
  for (int64_t k = 0; k < e->count; k++) {
    const brute_edge *b = &list->edge[k];
    const int16_t *s = e->shift_image[e->shift[k]];
    if (e->receiver[k] != b->i || e->sender[k] != b->j || s[0] != b->image[0] ||
        s[1] != b->image[1] || s[2] != b->image[2])
      fail_msg("%s: edge %lld is %d %d (%d %d %d), brute force has %d %d (%d %d %d)", what,
               (long long)k, e->receiver[k], e->sender[k], s[0], s[1], s[2], b->i, b->j,
               b->image[0], b->image[1], b->image[2]);
  }
}

/* Every array equal, bit for bit. */
static inline void assert_edges_equal(const ts_edges *a, const ts_edges *b)
{
  const size_t n = (size_t)a->n, count = (size_t)a->count, s = (size_t)a->nshift;
  assert_int_equal(a->n, b->n);
  assert_int_equal(a->nsenders, b->nsenders);
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->nshift, b->nshift);
  assert_memory_equal(a->row, b->row, (n + 1) * sizeof *a->row);
  assert_memory_equal(a->column, b->column, ((size_t)a->nsenders + 1) * sizeof *a->column);
  assert_memory_equal(a->shift_image, b->shift_image, s * sizeof *a->shift_image);
  assert_memory_equal(a->shift_vector, b->shift_vector, s * sizeof *a->shift_vector);
  if (count == 0) return;
  assert_memory_equal(a->receiver, b->receiver, count * sizeof *a->receiver);
  assert_memory_equal(a->sender, b->sender, count * sizeof *a->sender);
  assert_memory_equal(a->shift, b->shift, count * sizeof *a->shift);
  assert_memory_equal(a->column_edge, b->column_edge, count * sizeof *a->column_edge);
}

/* A system for a search. */
typedef struct search_case {
  ts_cell cell;
  ts_lidx n;
  double x[CASE_MAX_ATOMS][3]; /* wrapped */
  int32_t image[CASE_MAX_ATOMS][3];
  ts_gidx gid[CASE_MAX_ATOMS]; /* a permutation of 0..n-1 with gaps */
  ts_search_params params;
} search_case;

enum { CASE_KINDS = 9 };
static const char *const case_name[CASE_KINDS] = {
    "sparse", "dense", "skewed", "thin", "partly", "isolated", "on faces", "far away", "lattice"};

static inline void case_cell(search_case *c, int kind, uint64_t *seed)
{
  const double size = kind == 0 ? 25 : kind == 1 ? 7 : 11;
  double h[3][3];
  for (int k = 0; k < 3; k++)
    for (int m = 0; m < 3; m++)
      h[k][m] = k == m ? uniform(seed, 0.8, 1.2) * size : uniform(seed, -0.3, 0.3) * size;
  bool periodic[3] = {true, true, true};
  if (kind == 2) { /* add multiples of the other vectors: the same lattice, badly described */
    for (int step = 0; step < 3; step++) {
      const int k = below(seed, 3), l = (k + 1 + below(seed, 2)) % 3, q = below(seed, 9) - 4;
      for (int m = 0; m < 3; m++)
        h[k][m] += q * h[l][m];
    }
  }
  if (kind == 3) {
    const int k = below(seed, 3);
    for (int m = 0; m < 3; m++)
      h[k][m] *= uniform(seed, 0.08, 0.3);
  }
  if (kind == 4 || kind == 7)
    for (int k = 0; k < 3; k++)
      periodic[k] = below(seed, 2);
  if (kind == 8) { /* distances that hit the limit exactly, or miss it by a rounding */
    const double a = 2.5 * (1 + below(seed, 3));
    for (int k = 0; k < 3; k++)
      for (int m = 0; m < 3; m++)
        h[k][m] = k == m ? a : m < k ? a * 0.5 * below(seed, 2) : 0;
  }
  ASSERT_OK(ts_cell_init(&c->cell, kind == 5 ? NULL : h, kind == 5 ? NULL : periodic));
}

static inline double case_fraction(int kind, uint64_t *seed)
{
  static const double special[] = {0, 1, -0.0, 1 - 1e-16, 0.5, 1e-17, -1e-17, 0.25};
  if (kind == 6 && below(seed, 4)) return special[below(seed, 8)];
  if (kind == 8) return 0.25 * below(seed, 4);
  if (kind == 7 && below(seed, 2)) return uniform(seed, -1000, 1000);
  return uniform(seed, -0.4, 1.4);
}

static inline void case_make(search_case *c, int kind, uint64_t *seed)
{
  memset(c, 0, sizeof *c);
  case_cell(c, kind, seed);
  c->n = 1 + below(seed, kind == 0 ? 30 : kind == 3 || kind == 2 ? 12 : 40);
  const double offset = kind == 5 && below(seed, 2) ? 1e4 : 0;
  for (ts_lidx i = 0; i < c->n; i++) {
    c->gid[i] = 3 * i + below(seed, 3);
    double f[3];
    for (int k = 0; k < 3; k++) {
      f[k] = case_fraction(kind, seed);
      if (kind == 7 && !c->cell.periodic[k]) f[k] = uniform(seed, 0, 1) + 1000;
    }
    for (int m = 0; m < 3; m++)
      c->x[i][m] = kind == 5
                       ? offset + uniform(seed, 0, 15)
                       : f[0] * c->cell.h[0][m] + f[1] * c->cell.h[1][m] + f[2] * c->cell.h[2][m];
  }
  for (ts_lidx i = c->n - 1; i > 0; i--) {
    const int j = below(seed, i + 1);
    const ts_gidx swap = c->gid[i];
    c->gid[i] = c->gid[j];
    c->gid[j] = swap;
  }
  ASSERT_OK(ts_cell_wrap(&c->cell, c->n, c->x, c->image));
  ts_search_params_init(&c->params);
  c->params.cutoff = kind == 8 ? 2.5 * (1 + below(seed, 2)) : uniform(seed, 2, 7);
  c->params.skin = below(seed, 2) ? 0 : kind == 8 ? 1.25 : uniform(seed, 0, 1);
  c->params.lower = below(seed, 3) ? 0 : uniform(seed, 0, 2);
  c->params.chunk = 1 + below(seed, 20);
}

#endif
