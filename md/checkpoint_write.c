/* SPDX-License-Identifier: MIT
 *
 * Writing a checkpoint: the HDF5 file aside, then the seal in front of it (md/checkpoint_impl.h),
 * then the disk, then the names.
 *
 * HDF5 on rank 0 lays the file out, with room for the atoms but without them.  An array's room is
 * one piece of the file, so every rank then writes its rows there itself, and works out what they
 * contribute to the checksum while it has them in memory.  So the file is the same to the byte for
 * any number of ranks, and it needs neither a collective write nor a rank that has all atoms. */
#include "comm/share.h"
#include "comm/sparse.h"
#include "md/checkpoint_impl.h"
#include "md/h5.h"
#include "runtime/crc64.h"
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

/* Where everything is in the file; made by rank 0, known to all. */
typedef struct layout {
  int64_t block, bytes;
  int64_t offset[TSI_CHECKPOINT_ARRAYS];
} layout;

/* The HDF5 file behind an empty user block, with room for the atoms; where its data are. */
static int write_arrays(const ts_checkpoint *cp, const char *path, layout *l)
{
  tsi_h5 *file = NULL;
  unlink(path); /* left by a kill; whoever still writes into it does not meet the new one */
  TS_TRY(tsi_h5_create(path, l->block, &file));
  tsi_h5_span *spans = NULL;
  int64_t nspans = 0;
  int status = 0;
  for (int i = 0; i < cp->count && !status; ++i) {
    const tsi_checkpoint_array *a = &cp->array[i];
    const tsi_h5_block whole = tsi_h5_whole(a->width > 1 ? 2 : 1, a->rows, a->width, 1);
    status = tsi_h5_put(file, a->name, a->type, &whole, a->dealt ? NULL : a->data);
    if (!status) status = tsi_h5_spans(file, a->name, 0, &spans, &nspans);
    if (!status) l->offset[i] = spans[i].offset;
  }
  free(spans);
  const int closed = tsi_h5_close(&file);
  return status ? status : closed;
}

static int lay_out(const ts_checkpoint *cp, const char *path, char head[TSI_CHECKPOINT_BLOCK],
                   layout *l)
{
  struct stat info;
  l->block = block_for(cp, head);
  TS_TRY(write_arrays(cp, path, l));
  if (stat(path, &info)) return tsi_fail(TS_ERR_IO, "%s: has no size: %s", path, strerror(errno));
  l->bytes = info.st_size;
  compose(cp, l->offset, l->block, l->bytes, head);
  return 0;
}

static int64_t row_size(const tsi_checkpoint_array *a)
{
  return a->width * (int64_t)tsi_checkpoint_size(a->type);
}

/* This rank's atoms, and what they contribute to the checksum. */
static int write_atoms(const ts_checkpoint *cp, const char *path, int fd, const layout *l,
                       uint64_t *sum)
{
  tsi_crc64 *crc = malloc(sizeof *crc);
  int status = crc ? 0 : tsi_fail(TS_ERR_MEMORY, "%s: no memory for its checksum", path);
  for (int i = 0; i < cp->count && !status; ++i) {
    const tsi_checkpoint_array *a = &cp->array[i];
    if (!a->dealt || !a->here) continue;
    const int64_t size = a->here * row_size(a), offset = l->offset[i] + a->first * row_size(a);
    status = tsi_file_write(path, fd, a->data, (size_t)size, offset);
    tsi_crc64_begin_part(crc);
    tsi_crc64_add(crc, a->data, (size_t)size);
    *sum ^= tsi_crc64_part(crc, (uint64_t)(l->bytes - offset - size));
  }
  free(crc);
  return status;
}

/* The array of the atoms that comes next in the file at or behind `at`; -1: none. */
static int next_array(const ts_checkpoint *cp, const layout *l, int64_t at)
{
  int next = -1;
  for (int i = 0; i < cp->count; ++i)
    if (cp->array[i].dealt && l->offset[i] >= at && (next < 0 || l->offset[i] < l->offset[next]))
      next = i;
  return next;
}

/* What everything but the atoms contributes to the checksum. */
static int add_rest(const ts_checkpoint *cp, const char *path, int fd, const char *head,
                    const layout *l, uint64_t *sum)
{
  for (int64_t at = 0; at < l->bytes;) {
    const int i = next_array(cp, l, at);
    const int64_t end = i < 0 ? l->bytes : l->offset[i];
    uint64_t part;
    TS_TRY(tsi_checkpoint_part(path, fd, head, l->block, at, end, l->bytes, &part));
    *sum ^= part;
    at = i < 0 ? end : end + cp->array[i].rows * row_size(&cp->array[i]);
  }
  return 0;
}

/* All ranks: the atoms, on the disk; the checksum of the whole file.  Collective. */
static int fill_in(const ts_checkpoint *cp, const char *path, const char *head, const layout *l,
                   uint64_t *sum)
{
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  int status = 0;
  *sum = 0;
  if (fd < 0) status = tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  if (!status) status = write_atoms(cp, path, fd, l, sum);
  if (!status && cp->ranks.first == 0) status = add_rest(cp, path, fd, head, l, sum);
  if (!status && fsync(fd))
    status = tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  TS_TRY(tsi_ranks_agree(&cp->ranks, status));
  TS_TRY(tsi_checkpoint_join(&cp->ranks, sum));
  *sum = tsi_crc64_join(*sum, (uint64_t)l->bytes);
  return 0;
}

/* Put the seal on a file that is complete. */
static int seal(const char *path, int64_t block, char *head, uint64_t sum)
{
  char digits[17];
  snprintf(digits, sizeof digits, "%016" PRIx64, sum);
  memcpy(strstr(head, TSI_CHECKPOINT_CRC) + strlen(TSI_CHECKPOINT_CRC), digits, 16);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool done = fd >= 0 && pwrite(fd, head, (size_t)block, 0) == block && !fsync(fd);
  const int why = errno;
  if (fd >= 0) close(fd);
  return done ? 0 : tsi_fail(TS_ERR_IO, "%s: cannot be sealed: %s", path, strerror(why));
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

/* The file `aside`, complete and sealed, takes its name. */
static int publish(const char *aside, const char *path, int keep, int64_t block, char *head,
                   uint64_t sum)
{
  TS_TRY(seal(aside, block, head, sum));
  TS_TRY(move_older(path, keep));
  return tsi_file_rename(aside, path);
}

static int write_aside(const ts_checkpoint *cp, const char *aside, const char *path, int keep,
                       char *head)
{
  const bool first = cp->ranks.first == 0; /* the rank that does what only one can do */
  layout l = {0};
  uint64_t sum;
  TS_TRY(tsi_ranks_agree(&cp->ranks, first ? lay_out(cp, aside, head, &l) : 0));
  TS_TRY(ts_ranks_share(&cp->ranks, &l, sizeof l));
  TS_TRY(fill_in(cp, aside, head, &l, &sum));
  return tsi_ranks_agree(&cp->ranks, first ? publish(aside, path, keep, l.block, head, sum) : 0);
}

int ts_checkpoint_write(const ts_checkpoint *checkpoint, const char *path, int keep)
{
  if (keep < 1 || keep > TSI_CHECKPOINT_KEPT)
    return tsi_fail(TS_ERR_ARG, "%s: keep %d checkpoints; expected 1 to %d", path, keep,
                    TSI_CHECKPOINT_KEPT);
  const size_t size = strlen(path) + sizeof ".part";
  char *aside = malloc(size), *head = malloc(TSI_CHECKPOINT_BLOCK);
  int status = 0;
  if (!aside || !head) status = tsi_fail(TS_ERR_MEMORY, "%s: no memory to write it", path);
  status = tsi_ranks_agree(&checkpoint->ranks, status);
  if (!status) {
    snprintf(aside, size, "%s.part", path);
    status = write_aside(checkpoint, aside, path, keep, head);
    if (status && checkpoint->ranks.first == 0) unlink(aside);
  }
  free(aside);
  free(head);
  return status;
}
