/* SPDX-License-Identifier: MIT
 *
 * The kind of a trajectory from its name, and the frame in the order of the ids. */
#include "md/trajectory.h"

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

int ts_trajectory_open(MPI_Comm comm, const ts_trajectory_params *params, const ts_system *system,
                       ts_trajectory **out)
{
  const char *dot = strrchr(params->path, '.');
  const bool xyz = dot && (!strcasecmp(dot, ".xyz") || !strcasecmp(dot, ".extxyz"));
  *out = NULL;
  return xyz ? tsi_xyz_open(comm, params, system, out) : tsi_h5md_open(comm, params, system, out);
}

int ts_trajectory_write(ts_trajectory *trajectory, const ts_frame *frame)
{
  if (frame->step <= trajectory->last_step)
    return tsi_fail(TS_ERR_ARG, "%s: frame of step %ld behind that of step %ld", trajectory->path,
                    (long)frame->step, (long)trajectory->last_step);
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

int tsi_trajectory_begin(ts_trajectory *t, MPI_Comm comm, const ts_trajectory_params *params,
                         const ts_system *system)
{
  int started = 0;
  MPI_Initialized(&started);
  t->ranks = 1;
  if (started) {
    MPI_Comm_rank(comm, &t->rank);
    MPI_Comm_size(comm, &t->ranks);
  }
  t->comm = comm;
  t->velocities = params->velocities;
  t->forces = params->forces;
  t->natoms = system->natoms;
  t->last_step = -1;
  t->rows.n = system->n;
  t->rows.first = system->n ? system->gid[0] : 0;
  for (ts_lidx i = 1; i < system->n; ++i)
    if (system->gid[i] < t->rows.first) t->rows.first = system->gid[i];
  t->path = strdup(params->path);
  if (!t->path) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", params->path);
  TS_TRY(TSI_NEW(t->rows.x, system->n));
  TS_TRY(TSI_NEW(t->rows.image, system->n));
  TS_TRY(TSI_NEW(t->rows.z, system->n));
  if (t->velocities) TS_TRY(TSI_NEW(t->rows.v, system->n));
  if (t->forces) TS_TRY(TSI_NEW(t->rows.f, system->n));
  return 0;
}

void tsi_trajectory_end(ts_trajectory *t)
{
  free(t->path);
  free(t->rows.x);
  free(t->rows.image);
  free(t->rows.v);
  free(t->rows.f);
  free(t->rows.z);
  free(t);
}

int tsi_trajectory_rows(ts_trajectory *t, const ts_frame *frame)
{
  const ts_system *s = frame->system;
  tsi_rows *rows = &t->rows;
  if (s->natoms != t->natoms || s->n != rows->n)
    return tsi_fail(TS_ERR_ARG, "%s: a frame of other atoms", t->path);
  if (t->forces && !frame->force) return tsi_fail(TS_ERR_ARG, "%s: no forces", t->path);
  for (ts_lidx i = 0; i < s->n; ++i) {
    const ts_gidx k = s->gid[i] - rows->first;
    if (k < 0 || k >= s->n)
      return tsi_fail(TS_ERR_ARG, "%s: the ids of this rank are not one block", t->path);
    memcpy(rows->x[k], s->x[i], sizeof *rows->x);
    memcpy(rows->image[k], s->image[i], sizeof *rows->image);
    if (rows->v) memcpy(rows->v[k], s->v[i], sizeof *rows->v);
    if (rows->f) memcpy(rows->f[k], frame->force[i], sizeof *rows->f);
    rows->z[k] = s->z[i];
  }
  return ts_cell_wrap(&s->cell, s->n, rows->x, rows->image);
}

bool tsi_trajectory_resumes(const ts_trajectory *t, const ts_trajectory_params *params)
{
  if (params->resume < 0) return false;
  int there = t->rank == 0 && access(t->path, F_OK) == 0;
  if (t->ranks > 1) MPI_Bcast(&there, 1, MPI_INT, 0, t->comm);
  if (!there) ts_log(TS_LOG_WARNING, "%s: it is not there; a new one is begun", t->path);
  return there;
}
