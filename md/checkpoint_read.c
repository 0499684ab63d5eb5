/* SPDX-License-Identifier: MIT
 *
 * Reading a checkpoint.  Nothing is believed before the checksum is confirmed, to which each rank
 * contributes a slice of the file; then the file stays open, and arrays are read when they are
 * asked for.  Nothing is read or allocated beyond the file's size even if a seal was made on
 * purpose, and the HDF5 library takes no part. */
#include "comm/blocks.h"
#include "comm/share.h"
#include "comm/sparse.h"
#include "md/checkpoint_impl.h"
#include "runtime/crc64.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static int bad(const char *path, const char *what)
{
  return tsi_fail(TS_ERR_INPUT, "%s: not a sound checkpoint: %s", path, what);
}

int tsi_checkpoint_pread(const char *path, int fd, void *data, int64_t size, int64_t offset)
{
  for (char *at = data; size > 0;) {
    const ssize_t got = pread(fd, at, (size_t)size, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return tsi_fail(TS_ERR_INPUT, "%s: cannot be read: %s", path,
                      got ? strerror(errno) : "it ends early");
    at += got;
    size -= got;
    offset += got;
  }
  return 0;
}

int tsi_checkpoint_part(const char *path, int fd, const char *head, int64_t block, int64_t from,
                        int64_t to, int64_t bytes, uint64_t *out)
{
  const int64_t room = to - from < PIECE ? to - from : PIECE;
  tsi_crc64 *crc = malloc(sizeof *crc + (size_t)room);
  if (!crc) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its checksum", path);
  char *piece = (char *)(crc + 1);
  int64_t at = from;
  int status = 0;
  tsi_crc64_begin_part(crc);
  if (at < block) {
    const int64_t end = to < block ? to : block;
    tsi_crc64_add(crc, head + at, (size_t)(end - at));
    at = end;
  }
  for (; at < to && !status; at += room) {
    const int64_t size = to - at < room ? to - at : room;
    status = tsi_checkpoint_pread(path, fd, piece, size, at);
    if (!status) tsi_crc64_add(crc, piece, (size_t)size);
  }
  *out = tsi_crc64_part(crc, (uint64_t)(bytes - to));
  free(crc);
  return status;
}

char *tsi_checkpoint_numbered(const char *path, int number)
{
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  if (!dot || (slash && dot < slash) || dot == path || dot[-1] == '/') dot = path + strlen(path);
  const size_t size = strlen(path) + 16;
  char *name = malloc(size);
  if (name && number)
    snprintf(name, size, "%.*s.%d%s", (int)(dot - path), path, number, dot);
  else if (name)
    snprintf(name, size, "%s", path);
  return name;
}

/* The words of a line of the seal; false at the end of the text. */
static bool next_line(char **text, char **line)
{
  *line = *text;
  char *end = strchr(*text, '\n');
  if (!end) return false;
  *end = '\0';
  *text = end + 1;
  return true;
}

static bool next_word(char **line, char **word)
{
  *word = *line;
  if (!**line) return false;
  char *end = strchrnul(*line, ' ');
  *line = *end ? end + 1 : end;
  *end = '\0';
  return true;
}

static bool next_int(char **line, int64_t *out)
{
  char *word;
  return next_word(line, &word) && tsi_number_int64(word, strlen(word), out) && *out >= 0;
}

/* A line `key value`. */
static bool next_fact(char **text, const char *key, int64_t *value)
{
  char *line, *word;
  return next_line(text, &line) && next_word(&line, &word) && !strcmp(word, key) &&
         next_int(&line, value) && !*line;
}

/* The seal of a file: the text of its user block (owned), and what stands in it. */
typedef struct seal {
  char *text, *index; /* index: the lines of the arrays */
  int64_t block, bytes, arrays;
  uint64_t sum;
} seal;

/* The size of the user block, from the beginning of the file; 0 if it is no seal. */
static int64_t parse_block(char first[TSI_CHECKPOINT_FIRST])
{
  int64_t block = 0;
  char *text = first + sizeof TSI_CHECKPOINT_MAGIC - 1;
  first[TSI_CHECKPOINT_FIRST - 1] = '\0';
  if (memcmp(first, TSI_CHECKPOINT_MAGIC, sizeof TSI_CHECKPOINT_MAGIC - 1) ||
      !next_fact(&text, "block", &block))
    return 0;
  const bool power =
      block >= TSI_CHECKPOINT_FIRST && block <= TSI_CHECKPOINT_BLOCK && !(block & (block - 1));
  return power ? block : 0;
}

static int read_block(const char *path, int fd, int64_t size, seal *s)
{
  char first[TSI_CHECKPOINT_FIRST];
  if (size < TSI_CHECKPOINT_FIRST) return bad(path, "it is too short");
  TS_TRY(tsi_checkpoint_pread(path, fd, first, TSI_CHECKPOINT_FIRST, 0));
  s->block = parse_block(first);
  if (!s->block) return bad(path, "it does not begin like one");
  if (size < s->block) return bad(path, "it is too short");
  s->text = calloc((size_t)s->block + 1, 1);
  if (!s->text) return tsi_fail(TS_ERR_MEMORY, "%s: no memory to read it", path);
  return tsi_checkpoint_pread(path, fd, s->text, s->block, 0);
}

/* Take the checksum out of the seal: its digits become zeros, as they were when it was made. */
static int take_sum(const char *path, seal *s)
{
  char digits[17] = "", *at = strstr(s->text, TSI_CHECKPOINT_CRC);
  if (!at) return bad(path, "its first lines are damaged");
  at += strlen(TSI_CHECKPOINT_CRC);
  if (strspn(at, "0123456789abcdef") != 16) return bad(path, "its first lines are damaged");
  memcpy(digits, at, 16);
  memset(at, '0', 16);
  s->sum = strtoull(digits, NULL, 16);
  return 0;
}

/* Compare the checksum, in which all ranks take part.  Collective. */
static int confirm(const ts_checkpoint *cp, const seal *s, int64_t size)
{
  const ts_ranks *ranks = &cp->ranks;
  uint64_t sum = 0;
  const int status = tsi_checkpoint_part(
      cp->path, cp->fd, s->text, s->block, ts_block_first(size, ranks->size, ranks->first),
      ts_block_first(size, ranks->size, ranks->first + 1), size, &sum);
  TS_TRY(tsi_ranks_agree(ranks, status));
  TS_TRY(tsi_checkpoint_join(ranks, &sum));
  sum = tsi_crc64_join(sum, (uint64_t)size);
  return sum == s->sum ? 0 : bad(cp->path, "its checksum is wrong");
}

static int parse_head(const char *path, int64_t size, seal *s)
{
  char *line;
  int64_t block = 0;
  s->index = s->text + sizeof TSI_CHECKPOINT_MAGIC - 1;
  if (!next_fact(&s->index, "block", &block) || !next_fact(&s->index, "bytes", &s->bytes) ||
      !next_line(&s->index, &line) || !next_fact(&s->index, "arrays", &s->arrays) ||
      block != s->block)
    return bad(path, "its first lines are damaged");
  return s->bytes == size ? 0 : bad(path, "it has another size than it says");
}

/* One array: its line in the seal. */
static int parse_array(ts_checkpoint *cp, char *line, const seal *s)
{
  const char *path = cp->path;
  char *name, *type;
  int64_t rows, width, offset;
  int kind = 0;
  if (!next_word(&line, &name) || !next_word(&line, &type) || !next_int(&line, &rows) ||
      !next_int(&line, &width) || !next_int(&line, &offset) || *line || !tsi_checkpoint_name(name))
    return bad(path, "a line of its index is damaged");
  while (kind < 4 && strcmp(type, tsi_checkpoint_types[kind]))
    ++kind;
  if (kind == 4) return bad(path, "its index names an unknown type");
  const int64_t size = (int64_t)tsi_checkpoint_size((tsi_h5_type)kind);
  if (rows < 1 || width < 1 || rows > s->bytes / size / width || offset < s->block ||
      offset > s->bytes || rows * width * size > s->bytes - offset)
    return bad(path, "its index points outside the file");
  tsi_checkpoint_array *array;
  if (tsi_checkpoint_add(cp, name, (tsi_h5_type)kind, rows, width, &array))
    return bad(path, "its index has a name twice");
  array->offset = offset;
  return 0;
}

static int parse_arrays(ts_checkpoint *cp, seal *s)
{
  const tsi_checkpoint_array *step, *time;
  char *line;
  for (int64_t i = 0; i < s->arrays; ++i) {
    if (!next_line(&s->index, &line)) return bad(cp->path, "its index is too short");
    TS_TRY(parse_array(cp, line, s));
  }
  if (*s->index) return bad(cp->path, "its index is too long");
  if (tsi_checkpoint_expect(cp, "step", TSI_H5_INT64, 1, 1, &step) ||
      tsi_checkpoint_expect(cp, "time", TSI_H5_DOUBLE, 1, 1, &time) ||
      tsi_checkpoint_fetch(cp, step, 0, 1, &cp->step) || cp->step < 0 ||
      tsi_checkpoint_fetch(cp, time, 0, 1, &cp->time))
    return bad(cp->path, "it has no step or time");
  return 0;
}

static int open_file(ts_checkpoint *cp, int64_t *size)
{
  struct stat info;
  cp->fd = open(cp->path, O_RDONLY | O_CLOEXEC);
  if (cp->fd < 0 || fstat(cp->fd, &info))
    return tsi_fail(TS_ERR_INPUT, "%s: cannot be opened: %s", cp->path, strerror(errno));
  *size = info.st_size;
  return S_ISREG(info.st_mode) ? 0 : bad(cp->path, "it is not a file");
}

static int read_file(ts_checkpoint *cp)
{
  seal s = {0};
  int64_t size = 0;
  int status = open_file(cp, &size);
  if (!status) status = read_block(cp->path, cp->fd, size, &s);
  if (!status) status = take_sum(cp->path, &s);
  status = tsi_ranks_agree(&cp->ranks, status);
  if (!status) status = confirm(cp, &s, size);
  if (!status) {
    status = parse_head(cp->path, size, &s);
    if (!status) status = parse_arrays(cp, &s);
    status = tsi_ranks_agree(&cp->ranks, status);
  }
  free(s.text);
  return status;
}

int ts_checkpoint_read_file(const ts_ranks *ranks, const char *path, ts_checkpoint **out)
{
  *out = NULL;
  ts_checkpoint *cp = calloc(1, sizeof *cp);
  int status = 0;
  if (cp) *cp = (ts_checkpoint){.ranks = *ranks, .fd = -1, .path = strdup(path)};
  if (!cp || !cp->path) status = tsi_fail(TS_ERR_MEMORY, "%s: no memory to read it", path);
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = read_file(cp);
  if (status)
    ts_checkpoint_destroy(&cp);
  else
    *out = cp;
  return status;
}

/* Read one of the files; *there (the same on all ranks) says whether it exists. */
static int read_numbered(const ts_ranks *ranks, const char *path, int number, bool *there,
                         ts_checkpoint **out)
{
  char *name = tsi_checkpoint_numbered(path, number);
  int status = name ? 0 : tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  status = tsi_ranks_agree(ranks, status);
  *there = !status && access(name, F_OK) == 0;
  if (!status) status = ts_ranks_share(ranks, there, sizeof *there);
  if (!status && *there) status = ts_checkpoint_read_file(ranks, name, out);
  free(name);
  return status;
}

int ts_checkpoint_read(const ts_ranks *ranks, const char *path, ts_checkpoint **out)
{
  char newest[512] = "";
  *out = NULL;
  for (int k = 0; k < TSI_CHECKPOINT_KEPT; ++k) {
    bool there = false;
    const int status = read_numbered(ranks, path, k, &there, out);
    if (*out || (status && status != TS_ERR_INPUT)) return status;
    if (!there) continue;
    if (ranks->first == 0)
      ts_log(TS_LOG_WARNING, "%s; looking for an older one", ts_error_message());
    if (!*newest) snprintf(newest, sizeof newest, "%s", ts_error_message());
  }
  if (*newest) return tsi_fail(TS_ERR_INPUT, "no sound checkpoint; the newest: %s", newest);
  return tsi_fail(TS_ERR_INPUT, "%s: there is no checkpoint to resume from", path);
}
