/* SPDX-License-Identifier: MIT
 *
 * The kind of a trajectory from its name, and the frame in the order of the ids. */
#include "md/trajectory.h"

#include "comm/blocks.h"
#include "comm/share.h"
#include "comm/sparse.h"
#include "md/trajectory_impl.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void ts_trajectory_params_init(ts_trajectory_params *params)
{
  *params = (ts_trajectory_params){.resume = -1};
}

int ts_trajectory_open(const ts_ranks *ranks, const ts_trajectory_params *params,
                       const ts_system *system, ts_trajectory **out)
{
  const char *dot = strrchr(params->path, '.');
  const bool xyz = dot && (!strcasecmp(dot, ".xyz") || !strcasecmp(dot, ".extxyz"));
  *out = NULL;
  return xyz ? tsi_xyz_open(ranks, params, system, out) : tsi_h5md_open(ranks, params, system, out);
}

static int check_frame(const ts_trajectory *t, const ts_frame *frame)
{
  if (frame->step <= t->last_step)
    return tsi_fail(TS_ERR_ARG, "%s: frame of step %ld behind that of step %ld", t->path,
                    (long)frame->step, (long)t->last_step);
  if (frame->system->natoms != t->natoms)
    return tsi_fail(TS_ERR_ARG, "%s: a frame of other atoms", t->path);
  if (t->forces && !frame->force && frame->system->n > 0)
    return tsi_fail(TS_ERR_ARG, "%s: no forces", t->path);
  return 0;
}

int ts_trajectory_write(ts_trajectory *trajectory, const ts_frame *frame)
{
  TS_TRY(tsi_ranks_agree(&trajectory->ranks, check_frame(trajectory, frame)));
  TS_TRY(tsi_trajectory_rows(trajectory, frame));
  TS_TRY(trajectory->ops->write(trajectory, frame));
  trajectory->last_step = frame->step;
  return 0;
}

int ts_trajectory_sync(ts_trajectory *trajectory)
{
  return trajectory->ops->sync(trajectory);
}

int64_t ts_trajectory_last_step(const ts_trajectory *trajectory)
{
  return trajectory->last_step;
}

int ts_trajectory_close(ts_trajectory **trajectory)
{
  if (!*trajectory) return 0;
  const int status = (*trajectory)->ops->close(*trajectory);
  *trajectory = NULL;
  return status;
}

/* ---- the shared part ---- */

static int allocate(ts_trajectory *t, const ts_trajectory_params *params)
{
  tsi_rows *rows = &t->rows;
  t->path = strdup(params->path);
  if (!t->path) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", params->path);
  TS_TRY(TSI_NEW(rows->x, rows->n));
  TS_TRY(TSI_NEW(rows->image, rows->n));
  TS_TRY(TSI_NEW(rows->z, rows->n));
  TS_TRY(TSI_NEW(rows->mass, rows->n));
  if (t->velocities) TS_TRY(TSI_NEW(rows->v, rows->n));
  if (t->forces) TS_TRY(TSI_NEW(rows->f, rows->n));
  return 0;
}

/* From the atoms of this rank to the rows that it writes. */
static int collect(const ts_blocks *blocks, size_t size, const void *atoms, void *rows)
{
  return ts_blocks_collect(blocks, size, &atoms, &rows);
}

static int find_blocks(const ts_trajectory *t, const ts_system *s, ts_blocks **out)
{
  const ts_gidx *id = s->gid;
  return ts_blocks_create(&t->ranks, t->natoms, &s->n, &id, out);
}

int tsi_trajectory_begin(ts_trajectory *t, const ts_ranks *ranks,
                         const ts_trajectory_params *params, const ts_system *system)
{
  ts_blocks *blocks;
  tsi_rows *rows = &t->rows;
  t->ranks = *ranks;
  t->velocities = params->velocities;
  t->forces = params->forces;
  t->natoms = system->natoms;
  t->last_step = -1;
  rows->first = ts_block_first(t->natoms, ranks->size, ranks->first);
  rows->n = (ts_lidx)(ts_block_first(t->natoms, ranks->size, ranks->first + 1) - rows->first);
  TS_TRY(tsi_ranks_agree(ranks, allocate(t, params)));
  TS_TRY(find_blocks(t, system, &blocks));
  int status = collect(blocks, sizeof *rows->z, system->z, rows->z);
  if (!status) status = collect(blocks, sizeof *rows->mass, system->mass, rows->mass);
  ts_blocks_destroy(&blocks);
  return status;
}

void tsi_trajectory_end(ts_trajectory *t)
{
  free(t->path);
  free(t->rows.x);
  free(t->rows.image);
  free(t->rows.v);
  free(t->rows.f);
  free(t->rows.z);
  free(t->rows.mass);
  free(t);
}

/* What is collected follows from the job, not from rows->v, which is NULL where there are no rows.
 */
static int collect_all(const ts_blocks *blocks, const ts_frame *frame, ts_trajectory *t)
{
  const ts_system *s = frame->system;
  tsi_rows *rows = &t->rows;
  TS_TRY(collect(blocks, sizeof *rows->x, s->x, rows->x));
  TS_TRY(collect(blocks, sizeof *rows->image, s->image, rows->image));
  if (t->velocities) TS_TRY(collect(blocks, sizeof *rows->v, s->v, rows->v));
  if (t->forces) TS_TRY(collect(blocks, sizeof *rows->f, frame->force, rows->f));
  return 0;
}

int tsi_trajectory_rows(ts_trajectory *t, const ts_frame *frame)
{
  const ts_system *s = frame->system;
  tsi_rows *rows = &t->rows;
  ts_blocks *blocks;
  TS_TRY(find_blocks(t, s, &blocks));
  const int status = collect_all(blocks, frame, t);
  ts_blocks_destroy(&blocks);
  if (status) return status;
  return tsi_ranks_agree(&t->ranks, ts_cell_wrap(&s->cell, rows->n, rows->x, rows->image));
}

int tsi_trajectory_resumes(const ts_trajectory *t, const ts_trajectory_params *params, bool *out)
{
  *out = params->resume >= 0 && access(t->path, F_OK) == 0;
  if (params->resume < 0) return 0;
  TS_TRY(ts_ranks_share(&t->ranks, out, sizeof *out));
  if (!*out && t->ranks.first == 0)
    ts_log(TS_LOG_WARNING, "%s: it is not there; a new one is begun", t->path);
  return 0;
}
