/* SPDX-License-Identifier: MIT
 *
 * What must hold after a power failure, and folders.  (Files that are written whole go through
 * runtime/aside.h; these are the steps for those that a library writes.) */
#ifndef TS_FILE_H
#define TS_FILE_H

#include <stddef.h>
#include <stdint.h>

/** Force a file's content to the disk.  \return 0 or TS_ERR_IO. */
int tsi_file_sync(const char *path);

/** Write `size` bytes at `offset` of an open file, which `path` names in messages.
 * \return 0 or TS_ERR_IO. */
int tsi_file_write(const char *path, int fd, const void *data, size_t size, int64_t offset);

/** Rename `from` to `to` in the same folder, replacing an old `to`, and force the folder to the
 * disk.  \return 0 or TS_ERR_IO. */
int tsi_file_rename(const char *from, const char *to);

/** Give a file a second name, replacing an old `to`: at every moment `to` is the old file or the
 * new one, and `from` stays.  \return 0 or TS_ERR_IO (also where the file system has no links). */
int tsi_file_link(const char *from, const char *to);

/** Make a folder and its missing parents; one that exists is fine.  \return 0 or TS_ERR_IO. */
int tsi_folder_make(const char *path);

#endif
