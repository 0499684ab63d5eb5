/* SPDX-License-Identifier: MIT
 *
 * Write aside, force to the disk, rename. */
#include "runtime/aside.h"

#include "runtime/error.h"
#include "runtime/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void release(ts_aside *aside)
{
  free(aside->path);
  free(aside->temporary);
  *aside = (ts_aside){0};
}

int ts_aside_open(const char *path, ts_aside *out)
{
  const size_t size = strlen(path) + sizeof ".part";
  *out = (ts_aside){.path = strdup(path), .temporary = malloc(size)};
  if (!out->path || !out->temporary) {
    release(out);
    return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  }
  snprintf(out->temporary, size, "%s.part", path);
  out->file = fopen(out->temporary, "wbe");
  if (!out->file) {
    const int why = errno;
    release(out);
    return tsi_fail(TS_ERR_IO, "%s.part: cannot create it: %s", path, strerror(why));
  }
  return 0;
}

int ts_aside_commit(ts_aside *aside)
{
  int status = 0;
  errno = 0;
  const bool written = !fflush(aside->file) && !ferror(aside->file) && !fsync(fileno(aside->file));
  const int why = errno ? errno : EIO; /* an earlier write that failed left no errno */
  const bool closed = !fclose(aside->file);
  aside->file = NULL;
  if (!written || !closed)
    status = tsi_fail(TS_ERR_IO, "%s: cannot write it: %s", aside->temporary, strerror(why));
  else
    status = tsi_file_rename(aside->temporary, aside->path);
  if (status) unlink(aside->temporary);
  release(aside);
  return status;
}

void ts_aside_abandon(ts_aside *aside)
{
  if (aside->file) {
    fclose(aside->file);
    unlink(aside->temporary);
  }
  release(aside);
}
