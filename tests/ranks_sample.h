/* SPDX-License-Identifier: MIT
 *
 * Tests of files over ranks: one folder for all, and a system dealt out. */
#ifndef TS_TESTS_RANKS_SAMPLE_H
#define TS_TESTS_RANKS_SAMPLE_H

#include "comm/route.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tests/checkpoint_sample.h"
#include "tests/ranks_watchdog.h"

/** Start MPI; rank 0's new folder, and the path of a checkpoint in it, for all. */
static inline int ranks_sample_begin(ts_world **made, ts_ranks *ranks, char folder[64],
                                     char path[96])
{
  ranks_watchdog(240);
  if (ts_world_create(made) || ts_ranks_of(ts_world_comm(*made), ranks)) return 1;
  ts_log_set_level(TS_LOG_ERROR);
  if (ranks->first == 0) sample_folder(folder, path);
  return MPI_Bcast(folder, 64, MPI_CHAR, 0, ranks->comm) ||
         MPI_Bcast(path, 96, MPI_CHAR, 0, ranks->comm);
}

/** The exit status. */
static inline int ranks_sample_end(ts_world **made, const ts_ranks *ranks, const char *folder,
                                   int failed)
{
  if (failed) ts_world_abort(*made, TS_ERR_SIMULATION);
  MPI_Barrier(ranks->comm);
  if (ranks->first == 0) sample_remove(folder);
  ts_world_destroy(made);
  return 0;
}

/** The rank that has an atom: any, and `turn` changes it. */
static inline int sample_owner(ts_gidx id, const ts_ranks *ranks, int64_t turn)
{
  const uint64_t hash = tsi_key_avalanche((ts_key){(uint64_t)id, (uint64_t)turn}, 3);
  return (int)(hash % (uint64_t)ranks->size);
}

/** This rank's atoms of a whole system, in an odd order. */
static inline ts_system *sample_part_at(const ts_system *whole, const ts_ranks *ranks, int64_t turn)
{
  ts_system *s = NULL;
  ts_lidx n = 0;
  for (ts_gidx id = 0; id < whole->natoms; ++id)
    n += sample_owner(id, ranks, turn) == ranks->first;
  if (ts_system_create(whole->natoms, n, &s)) abort();
  s->cell = whole->cell;
  s->has_velocities = whole->has_velocities;
  s->has_charge = whole->has_charge;
  s->charge = whole->charge;
  s->multiplicity = whole->multiplicity;
  memcpy(s->title, whole->title, sizeof s->title);
  for (ts_gidx id = 0; id < whole->natoms; ++id) {
    if (sample_owner(id, ranks, turn) != ranks->first) continue;
    const ts_lidx i = --n;
    memcpy(s->x[i], whole->x[id], sizeof s->x[i]);
    memcpy(s->image[i], whole->image[id], sizeof s->image[i]);
    memcpy(s->v[i], whole->v[id], sizeof s->v[i]);
    s->mass[i] = whole->mass[id];
    s->z[i] = whole->z[id];
    s->gid[i] = id;
  }
  return s;
}

static inline ts_system *sample_part(const ts_system *whole, const ts_ranks *ranks)
{
  return sample_part_at(whole, ranks, 0);
}

#endif
