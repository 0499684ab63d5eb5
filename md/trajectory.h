/* SPDX-License-Identifier: MIT
 *
 * A trajectory: frames written while the run goes on.  The kind of file follows from its name: .xyz
 * or .extxyz is extended XYZ, anything else (.h5, .h5md) is H5MD 1.1.  Frames list the atoms in the
 * order of the structure file whatever the order in memory and the rank that has them, and their
 * steps strictly increase.  Each rank writes the rows of one block of ids (comm/blocks.h); the file
 * has the same bytes for any number of ranks.
 *
 * After a kill at any moment the file holds every frame whose ts_trajectory_write() returned, once
 * it has been opened for a resume; what it holds before that, and after a power failure, is in
 * docs/files.md.  Write a step's frame before its checkpoint: a resume keeps the frames up to the
 * checkpoint's step, so that the file ends as if nothing had happened. */
#ifndef TS_TRAJECTORY_H
#define TS_TRAJECTORY_H

#include "md/system.h"

struct ts_ranks; /* comm/peers.h */

/** Values of one frame besides the atoms; NaN: not known, not written. */
typedef struct ts_frame_values {
  double potential_energy; /**< [eV] */
  double kinetic_energy;   /**< [eV] */
  double temperature;      /**< [K] */
  double pressure;         /**< [bar] */
  double stress[6];        /**< [eV/Å^3] xx yy zz yz xz xy, negative when compressed */
} ts_frame_values;

/** One frame; everything is borrowed for the call. */
typedef struct ts_frame {
  int64_t step;
  double time;                   /**< [fs] */
  const ts_system *system;       /**< x may lie outside the cell */
  const double (*force)[3];      /**< [n,3] [eV/Å] in the system's order; NULL if not written */
  const ts_frame_values *values; /**< NULL: none */
} ts_frame;

typedef struct ts_trajectory_params {
  const char *path;
  bool velocities, forces; /**< write them */
  int64_t resume;          /**< keep an existing file's frames up to this step; -1: start afresh */
} ts_trajectory_params;

typedef struct ts_trajectory ts_trajectory;

/** Fill the defaults: positions only, start afresh. */
void ts_trajectory_params_init(ts_trajectory_params *params);

/** Create the file (an old one of that name is replaced), or open it to go on.  A resume without
 * the file starts afresh, with a line in the log.  Collective; so are the others, and they fail on
 * all ranks if they fail on one.
 * \param [in]  ranks   Of which this process is one; copied, its comm and traffic are borrowed.
 * \param [in]  system  Atoms of the run: number, elements and masses are written or compared.
 * \param [out] out     Owned by the caller: ts_trajectory_close(); NULL on failure.
 * \return 0; TS_ERR_INPUT (the file is not this run's or is damaged); TS_ERR_IO; TS_ERR_HDF5;
 *         TS_ERR_MPI; TS_ERR_MEMORY. */
int ts_trajectory_open(const struct ts_ranks *ranks, const ts_trajectory_params *params,
                       const ts_system *system, ts_trajectory **out);

/** Append one frame; the operating system has it when this returns.  The values are rank 0's.
 * \return 0; TS_ERR_ARG if the step is not above the last one; TS_ERR_SIMULATION (an atom is lost,
 *         or cannot be wrapped); TS_ERR_IO; TS_ERR_HDF5; TS_ERR_MPI; TS_ERR_MEMORY. */
int ts_trajectory_write(ts_trajectory *trajectory, const ts_frame *frame);

/** Force everything written so far to the disk (before a checkpoint). */
int ts_trajectory_sync(ts_trajectory *trajectory);

/** Step of the last frame in the file, or -1. */
int64_t ts_trajectory_last_step(const ts_trajectory *trajectory);

/** Finish the file.  Accepts NULL, sets *trajectory to NULL; the memory is gone even on failure.
 * \return 0, TS_ERR_IO or TS_ERR_HDF5. */
int ts_trajectory_close(ts_trajectory **trajectory);

#endif
