/* SPDX-License-Identifier: MIT
 *
 * What the kinds of trajectories share. */
#ifndef TS_TRAJECTORY_IMPL_H
#define TS_TRAJECTORY_IMPL_H

#include "comm/peers.h"
#include "md/trajectory.h"

/** What a kind of file does; `close` releases the whole object. */
typedef struct tsi_trajectory_ops {
  int (*write)(ts_trajectory *trajectory, const ts_frame *frame);
  int (*sync)(ts_trajectory *trajectory);
  int (*close)(ts_trajectory *trajectory);
} tsi_trajectory_ops;

/** The atoms of a frame in the order of their ids, wrapped; one block of ids on each rank. */
typedef struct tsi_rows {
  ts_gidx first;       /* id of the first row, from 0 */
  ts_lidx n;           /* rows */
  double (*x)[3];      /* [n,3] [Å] in the cell; owned, as the others */
  int32_t (*image)[3]; /* [n,3] */
  double (*v)[3];      /* [n,3] [Å/fs]; NULL unless velocities are written */
  double (*f)[3];      /* [n,3] [eV/Å]; NULL unless forces are written */
  uint8_t *z;          /* [n] the same in every frame, as the mass */
  double *mass;        /* [n] [eV fs^2/Å^2] */
} tsi_rows;

/** Every kind begins with this. */
struct ts_trajectory {
  const tsi_trajectory_ops *ops;
  char *path; /* owned */
  bool velocities, forces;
  ts_gidx natoms;
  int64_t last_step; /* -1: none */
  ts_ranks ranks;
  tsi_rows rows;
};

/** Fill the shared part of a zeroed trajectory, except ops.  Collective.
 * \return 0, TS_ERR_MEMORY, TS_ERR_SIMULATION (an atom is lost) or TS_ERR_MPI. */
int tsi_trajectory_begin(ts_trajectory *trajectory, const ts_ranks *ranks,
                         const ts_trajectory_params *params, const ts_system *system);

/** Release the shared part and the object. */
void tsi_trajectory_end(ts_trajectory *trajectory);

/** Fill trajectory->rows from a frame.  Collective.
 * \return 0; TS_ERR_ARG (other atoms; forces are missing); TS_ERR_SIMULATION (an atom is lost, or
 *         cannot be wrapped); TS_ERR_MPI; TS_ERR_MEMORY. */
int tsi_trajectory_rows(ts_trajectory *trajectory, const ts_frame *frame);

/** Is there (on every rank alike) an old file to go on with?  Says in the log if there is none.
 * Collective.  \return 0 or TS_ERR_MPI. */
int tsi_trajectory_resumes(const ts_trajectory *trajectory, const ts_trajectory_params *params,
                           bool *out);

/** The kinds. */
int tsi_h5md_open(const ts_ranks *ranks, const ts_trajectory_params *params,
                  const ts_system *system, ts_trajectory **out);
int tsi_xyz_open(const ts_ranks *ranks, const ts_trajectory_params *params, const ts_system *system,
                 ts_trajectory **out);

#endif
