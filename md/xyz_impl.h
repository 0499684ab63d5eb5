/* SPDX-License-Identifier: MIT
 *
 * The parts of reading an XYZ file: head, any run of rows, what stands behind the last one.  One
 * rank reads them one after the other (md/xyz.c), several each their own rows (md/xyz_slices.c). */
#ifndef TS_XYZ_IMPL_H
#define TS_XYZ_IMPL_H

#include "md/xyz.h"
#include "md/xyz_header.h"

/** A file and the place in it. */
typedef struct tsi_xyz_reader {
  FILE *stream;
  const char *origin; /* its name in messages */
  int64_t size, used; /* bytes of the file, and of the lines so far */
  int64_t number;     /* of the line, from 1 */
  char *line;         /* without its end; owned */
  size_t room;
} tsi_xyz_reader;

/** Read the first line.  These functions return 0, TS_ERR_INPUT or TS_ERR_MEMORY. */
int tsi_xyz_read_count(tsi_xyz_reader *reader, ts_gidx *natoms);

/** Read the second line and make a system for n atoms from id `first` on.
 * \param [out] out  Owned by the caller; NULL on failure. */
int tsi_xyz_read_header(tsi_xyz_reader *reader, ts_gidx natoms, ts_gidx first, ts_lidx n,
                        tsi_xyz_header *header, ts_system **out);

/** Read a line for each atom of the system; the reader stands before the first of them. */
int tsi_xyz_read_rows(tsi_xyz_reader *reader, const tsi_xyz_header *header, ts_system *system);

/** Read on behind the last atom.  \param [out] next  Line of the next frame; 0: there is none. */
int tsi_xyz_read_rest(tsi_xyz_reader *reader, int64_t *next);

/** Say in the log that there are more frames, if there are. */
void tsi_xyz_log_rest(const char *origin, int64_t next);

#endif
