/* SPDX-License-Identifier: MIT
 *
 * What Level 3 back ends share: the log of found rows and the decision in double. */
#include "neighbor/search.h"

#include <stdlib.h>
#include <string.h>

#include "neighbor/array.h"
#include "neighbor/edge_vector.h"
#include "runtime/error.h"

/* Larger memory with the first `used` elements; at least doubled, since pages that are never
 * reached cost nothing. */
static int enlarge(int32_t **array, int64_t used, int64_t need, int64_t *capacity)
{
  int32_t *larger = NULL;
  const int64_t size = need + *capacity;
  TS_TRY(TSI_ARRAY(larger, size));
  if (used > 0) memcpy(larger, *array, (size_t)used * sizeof *larger);
  free(*array);
  *array = larger;
  *capacity = size;
  return 0;
}

int tsi_search_reserve(tsi_search *search, int32_t n)
{
  const int64_t room = (int64_t)n + TSI_LANES, need = search->log_size + room;
  if (need > search->log_capacity)
    TS_TRY(enlarge(&search->log, search->log_size, need, &search->log_capacity));
  if (room > search->unsure_capacity)
    TS_TRY(enlarge(&search->unsure, 0, room, &search->unsure_capacity));
  return 0;
}

/* Is candidate c, another atom or another image, a sender of atom i?  In double, from the positions
 * as they were given. */
static bool is_edge(const tsi_search *search, ts_lidx i, int32_t c)
{
  const tsi_candidates *all = &search->candidates;
  const ts_lidx j = all->atom[c];
  const int32_t code = all->code[c] - all->home[i];
  int32_t image[3];
  double s[3], d[3];
  tsi_code_image(all, code, image);
  ts_cell_shift(search->cell, image, s);
  return tsi_edge_in_range(tsi_edge_vector(search->x[i], search->x[j], s, d), search->lower,
                           search->upper);
}

void tsi_search_row(tsi_search *search, const tsi_query *query, int32_t n, int32_t nunsure)
{
  int32_t *hit = search->log + search->log_size;
  int32_t kept = 0, next = 0; /* hits before `next` are settled, `kept` of them stay */
  for (int32_t u = 0; u < nunsure; u++) {
    const int32_t at = search->unsure[u];
    if (hit[at] != query->self && is_edge(search, query->atom, hit[at])) continue;
    memmove(hit + kept, hit + next, (size_t)(at - next) * sizeof *hit);
    kept += at - next;
    next = at + 1;
  }
  memmove(hit + kept, hit + next, (size_t)(n - next) * sizeof *hit);
  kept += n - next;
  search->row_start[query->atom] = search->log_size;
  search->row_size[query->atom] = kept;
  search->log_size += kept;
}
