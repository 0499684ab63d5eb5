/* SPDX-License-Identifier: MIT
 *
 * Files that appear whole or not at all: written aside under a temporary name in the same folder,
 * flushed, forced to the disk, renamed, and the folder forced too.  A reader sees the old file or
 * the new one, and a kill leaves at most the temporary file, which the next write replaces. */
#ifndef TS_FILE_H
#define TS_FILE_H

#include <stdio.h>

#include "runtime/types.h"

typedef struct tsi_file {
  FILE *stream;    /**< write here */
  char *path;      /**< the final name; owned */
  char *temporary; /**< path.tmp; owned */
} tsi_file;

/** Begin to write `path` aside.  Not collective.
 * \param [out] file  End it with tsi_file_commit() or tsi_file_abandon().
 * \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int tsi_file_begin(const char *path, tsi_file *file);

/** Finish: also reports any earlier write error of the stream.  The temporary file is gone even on
 * failure.  \return 0 or TS_ERR_IO. */
int tsi_file_commit(tsi_file *file);

/** Drop what was written.  Harmless after a commit. */
void tsi_file_abandon(tsi_file *file);

/** Force a file's content to the disk.  \return 0 or TS_ERR_IO. */
int tsi_file_sync(const char *path);

/** Rename `from` to `to` (replacing it) and force their folder to the disk.  Both lie in the same
 * folder.  \return 0 or TS_ERR_IO. */
int tsi_file_rename(const char *from, const char *to);

/** Make a folder and its missing parents; one that exists is fine.  \return 0 or TS_ERR_IO. */
int tsi_folder_make(const char *path);

#endif
