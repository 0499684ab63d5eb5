/* SPDX-License-Identifier: MIT
 *
 * Reading a checkpoint.  Nothing is believed before the checksum is confirmed, nothing is read or
 * allocated beyond the file's size even if a seal was made on purpose, and the HDF5 library takes
 * no part. */
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

int tsi_checkpoint_sum(const char *path, int fd, const char *head, int64_t block, int64_t bytes,
                       uint64_t *out)
{
  const int64_t room = bytes < PIECE ? bytes : PIECE;
  tsi_crc64 *crc = malloc(sizeof *crc + (size_t)room);
  if (!crc) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its checksum", path);
  char *piece = (char *)(crc + 1);
  int status = 0;
  tsi_crc64_begin(crc);
  tsi_crc64_add(crc, head, (size_t)block);
  for (int64_t at = block; at < bytes && !status; at += room) {
    const int64_t size = bytes - at < room ? bytes - at : room;
    status = tsi_checkpoint_pread(path, fd, piece, size, at);
    if (!status) tsi_crc64_add(crc, piece, (size_t)size);
  }
  *out = tsi_crc64_value(crc);
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

/* Compare the checksum; its digits become zeros, as they were when it was made. */
static int confirm(const char *path, int fd, int64_t size, seal *s)
{
  char digits[17] = "", *at = strstr(s->text, TSI_CHECKPOINT_CRC);
  if (!at) return bad(path, "its first lines are damaged");
  at += strlen(TSI_CHECKPOINT_CRC);
  if (strspn(at, "0123456789abcdef") != 16) return bad(path, "its first lines are damaged");
  memcpy(digits, at, 16);
  memset(at, '0', 16);
  uint64_t sum;
  TS_TRY(tsi_checkpoint_sum(path, fd, s->text, s->block, size, &sum));
  return sum == strtoull(digits, NULL, 16) ? 0 : bad(path, "its checksum is wrong");
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

/* One array: its line in the seal, its data from the file.  `left` bytes may still be read. */
static int read_array(const char *path, int fd, char *line, const seal *s, int64_t *left,
                      ts_checkpoint *cp)
{
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
  if (rows < 1 || width < 1 || rows > *left / size / width || offset < s->block ||
      offset > s->bytes || rows * width * size > s->bytes - offset)
    return bad(path, "its index points outside the file");
  *left -= rows * width * size;
  tsi_checkpoint_array *array;
  const int status = tsi_checkpoint_add(cp, name, (tsi_h5_type)kind, rows, width, &array);
  if (status) return status == TS_ERR_ARG ? bad(path, "its index has a name twice") : status;
  TS_TRY(tsi_checkpoint_pread(path, fd, array->data, rows * width * size, offset));
  return tsi_checkpoint_finite(array) ? 0 : bad(path, "a number in it is not finite");
}

static int read_arrays(const char *path, int fd, seal *s, ts_checkpoint *cp)
{
  int64_t left = s->bytes, step;
  double time;
  char *line;
  for (int64_t i = 0; i < s->arrays; ++i) {
    if (!next_line(&s->index, &line)) return bad(path, "its index is too short");
    TS_TRY(read_array(path, fd, line, s, &left, cp));
  }
  if (*s->index) return bad(path, "its index is too long");
  if (ts_checkpoint_get_int64(cp, "step", 1, &step) || step < 0 ||
      ts_checkpoint_get_double(cp, "time", 1, &time))
    return bad(path, "it has no step or time");
  return 0;
}

static int read_open(const char *path, int fd, int64_t size, ts_checkpoint *cp)
{
  seal s = {0};
  int status = read_block(path, fd, size, &s);
  if (!status) status = confirm(path, fd, size, &s);
  if (!status) status = parse_head(path, size, &s);
  if (!status) status = read_arrays(path, fd, &s, cp);
  free(s.text);
  return status;
}

int ts_checkpoint_read_file(const char *path, ts_checkpoint **out)
{
  struct stat info;
  *out = NULL;
  ts_checkpoint *cp = calloc(1, sizeof *cp);
  if (!cp || !(cp->path = strdup(path))) {
    free(cp);
    return tsi_fail(TS_ERR_MEMORY, "%s: no memory to read it", path);
  }
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  int status = 0;
  if (fd < 0 || fstat(fd, &info))
    status = tsi_fail(TS_ERR_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = bad(path, "it is not a file");
  else
    status = read_open(path, fd, info.st_size, cp);
  if (fd >= 0) close(fd);
  if (status)
    ts_checkpoint_destroy(&cp);
  else
    *out = cp;
  return status;
}

int ts_checkpoint_read(const char *path, ts_checkpoint **out)
{
  char newest[512] = "";
  *out = NULL;
  for (int k = 0; k < TSI_CHECKPOINT_KEPT; ++k) {
    char *name = tsi_checkpoint_numbered(path, k);
    if (!name) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
    const bool there = access(name, F_OK) == 0;
    const int status = there ? ts_checkpoint_read_file(name, out) : 0;
    free(name);
    if (*out || status == TS_ERR_MEMORY) return status;
    if (!there) continue;
    ts_log(TS_LOG_WARNING, "%s; looking for an older one", ts_error_message());
    if (!*newest) snprintf(newest, sizeof newest, "%s", ts_error_message());
  }
  if (*newest) return tsi_fail(TS_ERR_INPUT, "no sound checkpoint; the newest: %s", newest);
  return tsi_fail(TS_ERR_INPUT, "%s: there is no checkpoint to resume from", path);
}
