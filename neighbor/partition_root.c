/* SPDX-License-Identifier: MIT
 *
 * Cuts found as published: rank 0 gathers all keys, sorts them and tells where to cut.  It needs
 * memory for all atoms there and time that does not fall with the number of ranks; it is kept for
 * comparison. */
#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "comm/world.h"
#include "neighbor/partition_impl.h"
#include "runtime/error.h"

static int by_place(const void *a, const void *b)
{
  const tsi_cut_atom *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->gid > y->gid) - (x->gid < y->gid);
}

static void cut_sorted(const tsi_cut_problem *p, int64_t n, tsi_cut_atom *atom, tsi_cut *cut)
{
  int64_t weight = 0;
  int c = 0;
  qsort(atom, (size_t)n, sizeof *atom, by_place);
  for (int64_t i = 0; i < n; i++) {
    for (; c < p->cuts && p->target[c] < weight + atom[i].weight; c++) {
      const bool behind = tsi_cut_behind(p->target[c], weight, atom[i].weight);
      cut[c] = (tsi_cut){atom[i].key, atom[i].gid + behind, i + behind};
    }
    weight += atom[i].weight;
  }
}

/* Everybody's atoms to rank 0. */
static int gather(const tsi_cut_problem *p, ts_parcels *all)
{
  const int hosted = p->ranks->hosted;
  const int64_t n = p->first[hosted];
  ts_parcels send;
  TS_TRY(tsi_ranks_agree(p->ranks, ts_parcels_create(p->ranks, hosted, n, sizeof *p->atom, &send)));
  for (int h = 0; h <= hosted; h++) {
    send.first[h] = h;
    send.start[h] = p->first[h];
  }
  if (n) memcpy(send.data, p->atom, (size_t)n * sizeof *p->atom);
  const int status = ts_sparse_exchange(p->ranks, sizeof *p->atom, &send, all);
  ts_parcels_free(&send);
  return tsi_ranks_agree(p->ranks, status);
}

int tsi_cut_root(const tsi_cut_problem *problem, tsi_cut *cut)
{
  const ts_ranks *ranks = problem->ranks;
  ts_parcels all;
  TS_TRY(gather(problem, &all));
  if (ranks->first == 0)
    cut_sorted(problem, all.start[all.first[1]], (tsi_cut_atom *)(void *)all.data, cut);
  ts_parcels_free(&all);
  if (ranks->comm != MPI_COMM_NULL)
    TS_TRY_MPI(MPI_Bcast(cut, problem->cuts * (int)sizeof *cut, MPI_BYTE, 0, ranks->comm));
  return 0;
}
