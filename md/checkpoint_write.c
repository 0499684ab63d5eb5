/* SPDX-License-Identifier: MIT
 *
 * Writing a checkpoint: the HDF5 file aside, then the seal in front of it (md/checkpoint_impl.h),
 * then the disk, then the names. */
#include "md/checkpoint_impl.h"
#include "md/h5.h"
#include "runtime/error.h"
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are written in the byte order of the machine, which must be little-endian"
#endif

static bool exists(const char *path)
{
  return access(path, F_OK) == 0;
}

/* The seal without its checksum; returns its length. */
static int64_t compose(const ts_checkpoint *cp, const int64_t *offset, int64_t block, int64_t bytes,
                       char head[TSI_CHECKPOINT_BLOCK])
{
  memset(head, 0, TSI_CHECKPOINT_BLOCK);
  int64_t n = snprintf(head, TSI_CHECKPOINT_BLOCK,
                       "%sblock %" PRId64 "\nbytes %" PRId64 "%s%016d\narrays %d\n",
                       TSI_CHECKPOINT_MAGIC, block, bytes, TSI_CHECKPOINT_CRC, 0, cp->count);
  for (int i = 0; i < cp->count; ++i) {
    const tsi_checkpoint_array *a = &cp->array[i];
    n += snprintf(head + n, (size_t)(TSI_CHECKPOINT_BLOCK - n),
                  "%s %s %" PRId64 " %" PRId64 " %" PRId64 "\n", a->name,
                  tsi_checkpoint_types[a->type], a->rows, a->width, offset[i]);
  }
  return n;
}

/* Smallest user block that holds the seal whatever the offsets turn out to be. */
static int64_t block_for(const ts_checkpoint *cp, char head[TSI_CHECKPOINT_BLOCK])
{
  int64_t widest[TSI_CHECKPOINT_ARRAYS], block = TSI_CHECKPOINT_FIRST;
  for (int i = 0; i < cp->count; ++i)
    widest[i] = INT64_MAX;
  const int64_t length = compose(cp, widest, TSI_CHECKPOINT_BLOCK, INT64_MAX, head);
  while (block <= length)
    block *= 2;
  return block;
}

/* The HDF5 file behind an empty user block; where its data are. */
static int write_arrays(const ts_checkpoint *cp, const char *path, int64_t block, int64_t *offset)
{
  tsi_h5 *file = NULL;
  TS_TRY(tsi_h5_create(path, MPI_COMM_SELF, block, &file));
  tsi_h5_span *spans = NULL;
  int64_t nspans = 0;
  int status = 0;
  for (int i = 0; i < cp->count && !status; ++i) {
    const tsi_checkpoint_array *a = &cp->array[i];
    const tsi_h5_block whole = tsi_h5_whole(a->width > 1 ? 2 : 1, a->rows, a->width, 1);
    status = tsi_h5_put(file, a->name, a->type, &whole, a->data);
    if (!status) status = tsi_h5_spans(file, a->name, 0, &spans, &nspans);
    if (!status) offset[i] = spans[i].offset;
  }
  free(spans);
  const int closed = tsi_h5_close(&file);
  return status ? status : closed;
}

/* Put the seal on a file that is complete, and force everything to the disk. */
static int seal(const ts_checkpoint *cp, const char *path, int64_t block, const int64_t *offset,
                char head[TSI_CHECKPOINT_BLOCK])
{
  struct stat info;
  uint64_t sum = 0;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info)) {
    if (fd >= 0) close(fd);
    return tsi_fail(TS_ERR_IO, "%s: cannot be sealed: %s", path, strerror(errno));
  }
  compose(cp, offset, block, info.st_size, head);
  int status = tsi_checkpoint_sum(path, fd, head, block, info.st_size, &sum);
  if (!status) {
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, sum);
    memcpy(strstr(head, TSI_CHECKPOINT_CRC) + strlen(TSI_CHECKPOINT_CRC), digits, 16);
    if (pwrite(fd, head, (size_t)block, 0) != block || fsync(fd))
      status = tsi_fail(TS_ERR_IO, "%s: cannot be sealed: %s", path, strerror(errno));
  }
  close(fd);
  return status;
}

/* Make room for a new `path`: every older checkpoint takes the next number.  `path` itself gets a
 * second name, so that it is never missing; where there are no links it is renamed. */
static int move_older(const char *path, int keep)
{
  int status = 0;
  for (int k = keep - 1; k >= 1 && !status; --k) {
    char *from = tsi_checkpoint_numbered(path, k - 1), *to = tsi_checkpoint_numbered(path, k);
    if (!from || !to)
      status = tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
    else if (exists(from) && k > 1)
      status = tsi_file_rename(from, to);
    else if (exists(from) && tsi_file_link(from, to))
      status = tsi_file_rename(from, to);
    free(from);
    free(to);
  }
  return status;
}

int ts_checkpoint_write(const ts_checkpoint *checkpoint, const char *path, int keep)
{
  if (keep < 1 || keep > TSI_CHECKPOINT_KEPT)
    return tsi_fail(TS_ERR_ARG, "%s: keep %d checkpoints; expected 1 to %d", path, keep,
                    TSI_CHECKPOINT_KEPT);
  const size_t size = strlen(path) + sizeof ".part";
  char *aside = malloc(size), *head = malloc(TSI_CHECKPOINT_BLOCK);
  int64_t offset[TSI_CHECKPOINT_ARRAYS];
  int status = 0;
  if (!aside || !head) {
    status = tsi_fail(TS_ERR_MEMORY, "%s: no memory to write it", path);
  } else {
    snprintf(aside, size, "%s.part", path);
    const int64_t block = block_for(checkpoint, head);
    status = write_arrays(checkpoint, aside, block, offset);
    if (!status) status = seal(checkpoint, aside, block, offset, head);
    if (!status) status = move_older(path, keep);
    if (!status) status = tsi_file_rename(aside, path);
    if (status) unlink(aside);
  }
  free(aside);
  free(head);
  return status;
}
