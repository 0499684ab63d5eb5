/* SPDX-License-Identifier: MIT
 *
 * What the kinds of trajectories share. */
#ifndef TS_TRAJECTORY_IMPL_H
#define TS_TRAJECTORY_IMPL_H

#include "md/trajectory.h"

/** What a kind of file does; `close` releases the whole object. */
typedef struct tsi_trajectory_ops {
  int (*write)(ts_trajectory *trajectory, const ts_frame *frame);
  int (*sync)(ts_trajectory *trajectory);
  int (*close)(ts_trajectory *trajectory);
} tsi_trajectory_ops;

/** The atoms of a frame in the order of their ids, wrapped; one block of ids on each rank. */
typedef struct tsi_rows {
  ts_gidx first;       /* id of the first row, from 0; the same in every frame */
  ts_lidx n;           /* rows */
  double (*x)[3];      /* [n,3] [Å] in the cell; owned, as the others */
  int32_t (*image)[3]; /* [n,3] */
  double (*v)[3];      /* [n,3] [Å/fs]; NULL unless velocities are written */
  double (*f)[3];      /* [n,3] [eV/Å]; NULL unless forces are written */
  uint8_t *z;          /* [n] */
} tsi_rows;

/** Every kind begins with this. */
struct ts_trajectory {
  const tsi_trajectory_ops *ops;
  char *path; /* owned */
  bool velocities, forces;
  ts_gidx natoms;
  int64_t last_step; /* -1: none */
  MPI_Comm comm;
  int rank, ranks;
  tsi_rows rows;
};

/** Fill the shared part of a zeroed trajectory, except ops.  \return 0 or TS_ERR_MEMORY. */
int tsi_trajectory_begin(ts_trajectory *trajectory, MPI_Comm comm,
                         const ts_trajectory_params *params, const ts_system *system);

/** Release the shared part and the object. */
void tsi_trajectory_end(ts_trajectory *trajectory);

/** Fill trajectory->rows from a frame.
 * \return 0; TS_ERR_ARG (the ids are no block; forces are missing); TS_ERR_SIMULATION (wrapping).
 */
int tsi_trajectory_rows(ts_trajectory *trajectory, const ts_frame *frame);

/** True (on every rank) if there is an old file to go on with; says in the log if there is none. */
bool tsi_trajectory_resumes(const ts_trajectory *trajectory, const ts_trajectory_params *params);

/** The kinds. */
int tsi_h5md_open(MPI_Comm comm, const ts_trajectory_params *params, const ts_system *system,
                  ts_trajectory **out);
int tsi_xyz_open(MPI_Comm comm, const ts_trajectory_params *params, const ts_system *system,
                 ts_trajectory **out);

#endif
