/* SPDX-License-Identifier: MIT
 *
 * How a search is put together; private to this folder.
 *
 * Level 1 (candidates.c) lists every atom and image that may be a sender, as plain points in the
 * order in which a row wants its senders: by (gid, image).  Level 2 (chunks.c) bisects the
 * receivers and keeps, for each part, the candidates within reach of its box; a list never changes
 * its order, so every later list is still sorted and rows need no sort of their own.  Level 3
 * (search_cells.c, faiss_index.cc) takes one part: receivers against candidates.
 *
 * Points are float, relative to a common centre: cheap, and wrong by at most `error` per
 * coordinate.  A pair whose float distance is further than `margin` from both limits is settled by
 * it; the few others are decided in double from the positions themselves (tsi_search_settle).  So
 * the edge set depends on the doubles alone, whatever the back end did in float. */
#ifndef TS_SEARCH_H
#define TS_SEARCH_H

#include "neighbor/edges.h"

/** A receiver to be searched. */
typedef struct tsi_query {
  float p[3];
  ts_lidx atom;
  int32_t self; /**< its own id among the candidates, -1 if it does not send */
} tsi_query;

enum { TSI_LANES = 16 }; /**< lists are padded to this with points beyond reach */

/** Candidate points as separate coordinates; `id` indexes tsi_candidates. */
typedef struct tsi_points {
  int32_t n;
  int32_t capacity; /**< >= n + TSI_LANES */
  float *x, *y, *z;
  int32_t *id;
} tsi_points;

/** Everything Level 1 found.  M candidates; codes name images: code(n) is linear in n, so the
 * shift of an edge has code (candidate's code) - (receiver's code). */
typedef struct tsi_candidates {
  tsi_points points; /**< [M] ids 0 .. M-1, sorted by (gid, image) */
  ts_lidx *atom;     /**< [M] */
  int32_t *code;     /**< [M] */
  tsi_query *query;  /**< [N] receivers */
  int32_t *home;     /**< [N+G] code of the image at which an atom is searched */
  ts_lidx *by_gid;   /**< [N+G] atoms in the order of their ids */
  int32_t reach[3];  /**< largest |image| of a shift, per direction */
  int32_t codes;     /**< shift codes lie in -codes/2 .. codes/2 */
  double error; /**< of a point's coordinate against the true one, relative to the centre [Å] */
} tsi_candidates;

/** Float bounds on squared distances that settle a pair: beyond `far` it is none; from `sure_low`
 * to `sure_high` it is one. */
typedef struct tsi_bounds {
  float far, sure_low, sure_high;
} tsi_bounds;

typedef struct tsi_search tsi_search;

/** A box around points. */
typedef struct tsi_box {
  float low[3], high[3];
} tsi_box;

typedef struct tsi_scan tsi_scan; /* scan.h */

/** Level 3: search `queries` [nq] among `candidates` and record each row with tsi_search_row.
 * Ids in `candidates` ascend; every pair in range must be found, none may be recorded twice. */
typedef int (*tsi_search_fn)(tsi_search *search, tsi_query *queries, int32_t nq,
                             const tsi_points *candidates, int depth);

enum { TSI_MAX_DEPTH = 64 };

/** One build. */
struct tsi_search {
  const ts_cell *cell;
  const double (*x)[3];
  double lower, upper; /**< edges have lower <= r <= upper */
  double margin;       /**< of a float distance [Å] */
  tsi_bounds bounds;
  const tsi_scan *scan; /**< inner loops */
  tsi_candidates candidates;
  tsi_points level[TSI_MAX_DEPTH]; /**< lists of the parts being split */
  int32_t *log;                    /**< candidate ids of all rows, in the order of their search */
  int64_t log_size, log_capacity;
  int64_t *row_start; /**< [N] into the log */
  int32_t *row_size;  /**< [N] */
  int32_t *unsure;    /**< positions of a row's undecided hits */
  int64_t unsure_capacity;
  int64_t chunks;
};

/** The first `n` of `nsenders` atoms are the receivers. */
int tsi_candidates_build(const ts_cell *cell, ts_lidx n, ts_lidx nsenders, const double (*x)[3],
                         const ts_gidx *gid, const bool *excluded_sender, double upper,
                         tsi_candidates *out);
void tsi_candidates_free(tsi_candidates *c);

/** Lattice coordinates of the shift with code `code`. */
void tsi_code_image(const tsi_candidates *c, int32_t code, int32_t image[3]);

int tsi_points_reserve(tsi_points *points, int32_t n);
/** Fill the padding after the last point. */
void tsi_points_pad(tsi_points *points);
void tsi_points_free(tsi_points *points);

/** Split `queries` (nq > 0) until at most `leaf` are left and hand each part to `visit`, with the
 * candidates within reach of it; `queries` are reordered.  `depth` numbers the free lists. */
int tsi_search_bisect(tsi_search *search, tsi_query *queries, int32_t nq,
                      const tsi_points *candidates, int32_t leaf, int depth, tsi_search_fn visit);

/** Room for `n` hits at the end of the log (and as many unsure positions). */
int tsi_search_reserve(tsi_search *search, int32_t n);

/** Record the row of `query`: the `n` ids written at the end of the log, ascending; those at the
 * positions unsure[0..nunsure-1], ascending, are decided here. */
void tsi_search_row(tsi_search *search, const tsi_query *query, int32_t n, int32_t nunsure);

int tsi_search_cells(tsi_search *search, tsi_query *queries, int32_t nq,
                     const tsi_points *candidates, int depth);

#endif
