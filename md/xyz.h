/* SPDX-License-Identifier: MIT
 *
 * Reading a structure from an (extended) XYZ file; what is accepted is in docs/files.md.  Numbers
 * are read strictly and whatever may concern the physics is either understood or refused; keys and
 * columns that mean nothing here are skipped.  The first frame is used, and the log says so when
 * there are more.  Independent of the locale.  (Writing: md/trajectory.h.) */
#ifndef TS_XYZ_H
#define TS_XYZ_H

#include <stdio.h>

#include "md/system.h"

struct ts_ranks; /* comm/peers.h, apart from here so that a reader of streams needs no MPI */

/** Read the first frame, each rank the atoms of one block of ids (comm/blocks.h).  Collective.
 * A process hosts one of the ranks, and all must see the file.  Nobody reads the whole of it: line
 * ends are counted side by side to find where a rank's lines begin.  The first mistake in the file
 * is the message on all ranks.
 * Positions come wrapped with image counts; gid is the row; masses are standard unless the file has
 * a column `masses`; velocities are read from `velo` (with the key velocity_unit) or from ASE's
 * `momenta`.
 * \param [out] out  Owned by the caller: ts_system_destroy(); NULL on failure.
 * \return 0; TS_ERR_INPUT with `path:line: ...`, also when it cannot be read; TS_ERR_MEMORY;
 *         TS_ERR_MPI. */
int ts_xyz_read(const struct ts_ranks *ranks, const char *path, ts_system **out);

/** The same on one rank from an open stream of `size` bytes; `origin` names it in messages. */
int tsi_xyz_read_stream(FILE *stream, int64_t size, const char *origin, ts_system **out);

#endif
