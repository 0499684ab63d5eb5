/* SPDX-License-Identifier: MIT
 *
 * A file is never seen half written: it is written aside under another name, flushed to the disk,
 * and renamed over the old one.  Whatever happens in between, a reader finds the old file or the
 * new one. */
#ifndef TS_ASIDE_H
#define TS_ASIDE_H

#include <stdio.h>

/** A file being written aside.  Zero it, or open it; then commit or abandon, which release it. */
typedef struct ts_aside {
  FILE *file;      /**< write here */
  char *path;      /**< the name it will have */
  char *temporary; /**< the name it has: `path` with ".part" behind it */
} ts_aside;

/** Open `path`.part for writing (binary, truncated).  Not collective.
 * \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_aside_open(const char *path, ts_aside *out);

/** Flush to the disk, close, rename to the final name.  On failure the old file is untouched and
 * the new one removed.  \return 0 or TS_ERR_IO (also when an earlier write failed). */
int ts_aside_commit(ts_aside *aside);

/** Close and remove.  Accepts a zeroed or committed one. */
void ts_aside_abandon(ts_aside *aside);

#endif
