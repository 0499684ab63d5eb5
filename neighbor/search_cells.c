/* SPDX-License-Identifier: MIT
 *
 * Level 3, back end `cells`: the chunk is bisected further, into cells of a few receivers that are
 * nearly as small as the room per atom allows; each receiver then scans its cell's list.  With
 * sixteen to a cell the list holds about five times the true neighbours of a liquid at 5.5 Å,
 * sixteen of them a comparison. */
#include "neighbor/scan.h"
#include "runtime/error.h"

enum { CELL = 16 };

static int scan_cell(tsi_search *search, tsi_query *queries, int32_t nq,
                     const tsi_points *candidates, int depth)
{
  (void)depth;
  for (int32_t i = 0; i < nq; i++) {
    TS_TRY(tsi_search_reserve(search, candidates->n));
    int32_t nunsure;
    const int32_t n = search->scan->near(candidates, queries[i].p, &search->bounds,
                                         search->log + search->log_size, search->unsure, &nunsure);
    tsi_search_row(search, &queries[i], n, nunsure);
  }
  return 0;
}

int tsi_search_cells(tsi_search *search, tsi_query *queries, int32_t nq,
                     const tsi_points *candidates, int depth)
{
  search->chunks++;
  return tsi_search_bisect(search, queries, nq, candidates, CELL, depth, scan_cell);
}
