/* SPDX-License-Identifier: MIT
 *
 * HDF5 keeps its own tables (which chunk lies where) in the file and changes them in place, so a
 * kill in the middle of such a change can leave a file that nobody can read.  Before a change,
 * everything but the raw data is therefore copied to PATH.undo, and the copy is removed when the
 * change has reached the disk.  After a kill the copy is put back, and the file is what it was
 * before the change.  Raw data need no copy: a change never touches rows that were there before.
 *
 * The copy is small (tens of kilobytes, growing by about 50 bytes for a chunk) and needed only when
 * a chunk begins.  Not collective: one rank calls these while the others wait, with the file
 * flushed but not closed. */
#ifndef TS_H5_UNDO_H
#define TS_H5_UNDO_H

#include "md/h5.h"

/** Copy everything but `spans` to PATH.undo, on the disk when it returns.
 * \param [in,out] spans  [*count] raw data; sorted and merged here.
 * \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int tsi_h5_undo_begin(const char *path, tsi_h5_span *spans, int64_t *count);

/** The change is done: force the file to the disk and remove the copy.  \return 0 or TS_ERR_IO. */
int tsi_h5_undo_end(const char *path);

/** Put a copy back if there is one (a kill happened), and remove it; *applied says whether.
 * \return 0; TS_ERR_INPUT if the copy is damaged; TS_ERR_IO; TS_ERR_MEMORY. */
int tsi_h5_undo_apply(const char *path, bool *applied);

/** Remove a copy that belongs to an old file.  */
void tsi_h5_undo_drop(const char *path);

#endif
