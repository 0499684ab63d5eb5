/* SPDX-License-Identifier: MIT
 *
 * What Level 3 back ends share: the log of found rows and the decision in double. */
#include "neighbor/search.h"

#include <stdlib.h>
#include <string.h>

#include "neighbor/edge_vector.h"
#include "runtime/error.h"

static int grow(void **array, size_t count, size_t size)
{
  void *larger = realloc(*array, count * size);
  if (!larger) return tsi_fail(TS_ERR_MEMORY, "no memory for %zu found neighbours", count);
  *array = larger;
  return 0;
}

int tsi_search_reserve(tsi_search *search, int32_t n)
{
  const int64_t need = search->log_size + n + TSI_LANES;
  if (need > search->log_capacity) {
    const int64_t capacity = need + search->log_capacity; /* pages not reached cost nothing */
    TS_TRY(grow((void **)&search->log, (size_t)capacity, sizeof *search->log));
    search->log_capacity = capacity;
  }
  if (n + TSI_LANES > search->unsure_capacity) {
    TS_TRY(grow((void **)&search->unsure, (size_t)n + TSI_LANES, sizeof *search->unsure));
    search->unsure_capacity = n + TSI_LANES;
  }
  return 0;
}

/* Is candidate c a sender of atom i?  In double, from the positions as they were given. */
static bool is_edge(const tsi_search *search, ts_lidx i, int32_t c)
{
  const tsi_candidates *all = &search->candidates;
  const ts_lidx j = all->atom[c];
  const int32_t code = all->code[c] - all->home[i];
  int32_t image[3];
  double s[3], d[3];
  if (i == j && code == 0) return false; /* itself */
  tsi_code_image(all, code, image);
  ts_cell_shift(search->cell, image, s);
  return tsi_edge_in_range(tsi_edge_vector(search->x[i], search->x[j], s, d), search->lower,
                           search->upper);
}

void tsi_search_row(tsi_search *search, ts_lidx atom, int32_t n, int32_t nunsure)
{
  int32_t *hit = search->log + search->log_size;
  int32_t kept = 0, next = 0; /* hits before `next` are settled, `kept` of them stay */
  for (int32_t u = 0; u < nunsure; u++) {
    const int32_t at = search->unsure[u];
    if (is_edge(search, atom, hit[at])) continue;
    memmove(hit + kept, hit + next, (size_t)(at - next) * sizeof *hit);
    kept += at - next;
    next = at + 1;
  }
  memmove(hit + kept, hit + next, (size_t)(n - next) * sizeof *hit);
  kept += n - next;
  search->row_start[atom] = search->log_size;
  search->row_size[atom] = kept;
  search->log_size += kept;
}
