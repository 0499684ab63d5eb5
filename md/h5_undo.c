/* SPDX-License-Identifier: MIT
 *
 * The copy: magic, size of the file, number of parts; for each part its offset, size and bytes; the
 * checksum of all this. */
#include "md/h5_undo.h"

#include "runtime/aside.h"
#include "runtime/crc64.h"
#include "runtime/error.h"
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[16] = "tessera undo 1\n";

/* PATH.undo, from malloc. */
static int name_copy(const char *path, char **out)
{
  const size_t size = strlen(path) + sizeof ".undo";
  *out = malloc(size);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  snprintf(*out, size, "%s.undo", path);
  return 0;
}

static int compare_spans(const void *a, const void *b)
{
  const tsi_h5_span *p = a, *q = b;
  return (p->offset > q->offset) - (p->offset < q->offset);
}

static void merge(tsi_h5_span *spans, int64_t *count)
{
  int64_t kept = 0;
  if (*count) qsort(spans, (size_t)*count, sizeof *spans, compare_spans);
  for (int64_t i = 0; i < *count; ++i) {
    tsi_h5_span *last = kept ? &spans[kept - 1] : NULL;
    const int64_t end = spans[i].offset + spans[i].size;
    if (!last || spans[i].offset > last->offset + last->size)
      spans[kept++] = spans[i];
    else if (end > last->offset + last->size)
      last->size = end - last->offset;
  }
  *count = kept;
}

typedef struct writer {
  const char *path;
  int from;
  FILE *to;
  tsi_crc64 crc;
} writer;

static void put(writer *w, const void *data, size_t size)
{
  tsi_crc64_add(&w->crc, data, size);
  fwrite(data, 1, size, w->to); /* a failure shows at the commit */
}

static int put_part(writer *w, int64_t offset, int64_t size)
{
  char piece[1 << 14];
  put(w, &offset, sizeof offset);
  put(w, &size, sizeof size);
  while (size > 0) {
    const size_t want = size < (int64_t)sizeof piece ? (size_t)size : sizeof piece;
    const ssize_t got = pread(w->from, piece, want, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return tsi_fail(TS_ERR_IO, "%s: cannot be read: %s", w->path,
                      got ? strerror(errno) : "it ends early");
    put(w, piece, (size_t)got);
    offset += got;
    size -= got;
  }
  return 0;
}

/* What lies between the spans (merged), up to the end of the file. */
static int put_parts(writer *w, int64_t bytes, const tsi_h5_span *spans, int64_t count)
{
  int64_t at = 0, parts = 0;
  for (int pass = 0; pass < 2; ++pass) { /* count, then copy */
    if (pass) put(w, &parts, sizeof parts);
    at = 0;
    for (int64_t i = 0; i <= count; ++i) {
      const int64_t end = i < count && spans[i].offset < bytes ? spans[i].offset : bytes;
      if (end > at && !pass) ++parts;
      if (end > at && pass) TS_TRY(put_part(w, at, end - at));
      at = i < count ? spans[i].offset + spans[i].size : end;
    }
  }
  return 0;
}

static int write_copy(writer *w, const tsi_h5_span *spans, int64_t count)
{
  struct stat info;
  if (fstat(w->from, &info))
    return tsi_fail(TS_ERR_IO, "%s: has no size: %s", w->path, strerror(errno));
  const int64_t bytes = info.st_size;
  tsi_crc64_begin(&w->crc);
  put(w, magic, sizeof magic);
  put(w, &bytes, sizeof bytes);
  TS_TRY(put_parts(w, bytes, spans, count));
  const uint64_t sum = tsi_crc64_value(&w->crc);
  fwrite(&sum, sizeof sum, 1, w->to);
  return 0;
}

int tsi_h5_undo_begin(const char *path, tsi_h5_span *spans, int64_t *count)
{
  char *copy;
  ts_aside aside = {0};
  TS_TRY(name_copy(path, &copy));
  int status = ts_aside_open(copy, &aside);
  free(copy);
  if (status) return status;
  merge(spans, count);
  writer *w = malloc(sizeof *w);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (!w || fd < 0) {
    status = w ? tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno))
               : tsi_fail(TS_ERR_MEMORY, "%s: no memory to copy it", path);
  } else {
    w->path = path;
    w->from = fd;
    w->to = aside.file;
    status = write_copy(w, spans, *count);
  }
  if (fd >= 0) close(fd);
  free(w);
  if (!status) return ts_aside_commit(&aside);
  ts_aside_abandon(&aside);
  return status;
}

int tsi_h5_undo_end(const char *path)
{
  TS_TRY(tsi_file_sync(path));
  tsi_h5_undo_drop(path);
  return 0;
}

void tsi_h5_undo_drop(const char *path)
{
  char *copy;
  if (name_copy(path, &copy)) return;
  unlink(copy);
  free(copy);
}

/* ---- putting it back ---- */

/* The whole copy, from malloc, with its checksum confirmed. */
static int load(const char *copy, char **out, int64_t *size)
{
  struct stat info;
  FILE *file = fopen(copy, "rbe");
  *out = NULL;
  if (!file || fstat(fileno(file), &info)) {
    if (file) fclose(file);
    return tsi_fail(TS_ERR_INPUT, "%s: cannot be read: %s", copy, strerror(errno));
  }
  *size = info.st_size;
  *out = malloc((size_t)*size + 1);
  const bool got = *out && fread(*out, 1, (size_t)*size, file) == (size_t)*size;
  fclose(file);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "%s: no memory to read it", copy);
  tsi_crc64 *crc = malloc(sizeof *crc);
  uint64_t sum = 0;
  bool sound = got && crc && *size >= (int64_t)(sizeof magic + 3 * sizeof(int64_t)) &&
               !memcmp(*out, magic, sizeof magic);
  if (sound) {
    *size -= (int64_t)sizeof sum;
    memcpy(&sum, *out + *size, sizeof sum);
    tsi_crc64_begin(crc);
    tsi_crc64_add(crc, *out, (size_t)*size);
    sound = tsi_crc64_value(crc) == sum;
  }
  free(crc);
  return sound ? 0 : tsi_fail(TS_ERR_INPUT, "%s: damaged", copy);
}

static int64_t take_int(const char **at)
{
  int64_t value;
  memcpy(&value, *at, sizeof value);
  *at += sizeof value;
  return value;
}

/* Write the parts over the file; the checksum has vouched for the copy. */
static int restore(const char *path, const char *data)
{
  const char *at = data + sizeof magic;
  const int64_t bytes = take_int(&at), parts = take_int(&at);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0;
  for (int64_t i = 0; i < parts && done; ++i) {
    int64_t offset = take_int(&at), size = take_int(&at);
    while (size > 0 && done) {
      const ssize_t put = pwrite(fd, at, (size_t)size, offset);
      done = put >= 0 || errno == EINTR;
      if (put < 0) continue;
      at += put;
      offset += put;
      size -= put;
    }
  }
  done = done && !ftruncate(fd, bytes) && !fsync(fd);
  const int why = errno;
  if (fd >= 0) close(fd);
  return done ? 0 : tsi_fail(TS_ERR_IO, "%s: cannot be restored: %s", path, strerror(why));
}

int tsi_h5_undo_apply(const char *path, bool *applied)
{
  char *copy, *data = NULL;
  int64_t size = 0;
  *applied = false;
  TS_TRY(name_copy(path, &copy));
  int status = 0;
  if (access(copy, F_OK) == 0) {
    status = load(copy, &data, &size);
    if (!status) status = restore(path, data);
    if (!status) unlink(copy);
    *applied = !status;
  }
  free(data);
  free(copy);
  return status;
}
