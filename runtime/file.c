/* SPDX-License-Identifier: MIT
 *
 * fsync of files and of the folders that name them. */
#include "runtime/file.h"

#include "runtime/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_path(const char *path, int flags)
{
  const int fd = open(path, flags | O_CLOEXEC);
  if (fd < 0) return tsi_fail(TS_ERR_IO, "%s: cannot open it: %s", path, strerror(errno));
  /* some file systems have no fsync for folders: EINVAL */
  const int failed = fsync(fd) && errno != EINVAL ? errno : 0;
  close(fd);
  if (failed) return tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", path, strerror(failed));
  return 0;
}

int tsi_file_sync(const char *path)
{
  return sync_path(path, O_RDONLY);
}

int tsi_file_write(const char *path, int fd, const void *data, size_t size, int64_t offset)
{
  for (const char *at = data; size > 0;) {
    const ssize_t put = pwrite(fd, at, size, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return tsi_fail(TS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    at += put;
    offset += put;
    size -= (size_t)put;
  }
  return 0;
}

static int sync_folder_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash) return sync_path(".", O_RDONLY | O_DIRECTORY);
  if (slash == path) return sync_path("/", O_RDONLY | O_DIRECTORY);
  char *folder = strndup(path, (size_t)(slash - path));
  if (!folder) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  const int status = sync_path(folder, O_RDONLY | O_DIRECTORY);
  free(folder);
  return status;
}

int tsi_file_rename(const char *from, const char *to)
{
  if (rename(from, to))
    return tsi_fail(TS_ERR_IO, "%s: cannot rename it to %s: %s", from, to, strerror(errno));
  return sync_folder_of(to);
}

int tsi_file_link(const char *from, const char *to)
{
  const size_t size = strlen(to) + sizeof ".link";
  char *aside = malloc(size);
  if (!aside) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", to);
  snprintf(aside, size, "%s.link", to);
  unlink(aside); /* left by a kill */
  int status = 0;
  if (link(from, aside))
    status = tsi_fail(TS_ERR_IO, "%s: cannot link it to %s: %s", from, aside, strerror(errno));
  else
    status = tsi_file_rename(aside, to);
  /* rename() leaves `aside` where `to` already is the same file */
  unlink(aside);
  free(aside);
  return status;
}

int tsi_folder_make(const char *path)
{
  char *part = strdup(path);
  if (!part) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  int status = 0;
  size_t end = 0;
  do { /* a/b/c: a, then a/b, then a/b/c */
    end += 1 + strcspn(path + end + 1, "/");
    part[end] = '\0';
    struct stat info;
    if (mkdir(part, 0777) && !(errno == EEXIST && !stat(part, &info) && S_ISDIR(info.st_mode)))
      status = tsi_fail(TS_ERR_IO, "%s: cannot make this folder: %s", part, strerror(errno));
    part[end] = path[end];
  } while (!status && path[end]);
  free(part);
  return status;
}
