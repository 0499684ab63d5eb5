/* SPDX-License-Identifier: MIT
 *
 * Between the files of partition.h: two ways to find where the order is to be cut. */
#ifndef TS_PARTITION_IMPL_H
#define TS_PARTITION_IMPL_H

#include "neighbor/partition.h"

/** An atom to be counted. */
typedef struct tsi_cut_atom {
  uint64_t key, gid;
  int32_t weight, interval; /* the interval is for partition_count.c */
} tsi_cut_atom;

/** A cut in front of place (key, gid). */
typedef struct tsi_cut {
  uint64_t key, gid;
  int64_t before; /* atoms in front of it */
} tsi_cut;

typedef struct tsi_cut_problem {
  const ts_ranks *ranks;
  const int64_t *first; /* [hosted+1] of a hosted rank's atoms */
  tsi_cut_atom *atom;   /* reordered */
  bool weighted;        /* else every weight is 1 */
  int cuts;             /* K - 1 */
  const int64_t
      *target; /* [cuts] ascending: weight that belongs in front of a cut; less than all */
} tsi_cut_problem;

/** The side of an atom on which a cut falls: behind it if the target is past its middle. */
static inline bool tsi_cut_behind(int64_t target, int64_t before, int64_t weight)
{
  return target > before && 2 * (target - before) >= weight;
}

/** By counting; collective.  \param [out] cut  [cuts], the same on all ranks. */
int tsi_cut_count(const tsi_cut_problem *problem, tsi_cut *cut);

/** The same cuts (of the atoms, not the same places between them) by a sort on rank 0. */
int tsi_cut_root(const tsi_cut_problem *problem, tsi_cut *cut);

#endif
