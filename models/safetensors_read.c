/* SPDX-License-Identifier: MIT
 *
 * Reading safetensors.  Three passes, so that nothing of a hostile size is ever allocated: the
 * header is checked by itself (lengths, types, products), then all ranges against each other and
 * the file's end, and only then are tensors made; each takes at most four times its bytes in the
 * file.  Values go through memcpy, because old files start their data at odd offsets. */
#include "models/safetensors_impl.h"

#include "runtime/error.h"
#include "runtime/json.h"
#include "runtime/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weight files are little endian and are read as they are"
#endif

enum { HEADER_LIMIT = 100000000, TENSOR_LIMIT = 65536 };

typedef enum file_type { FILE_F32, FILE_F64, FILE_F16, FILE_BF16, FILE_TYPES } file_type;

static const struct {
  const char *name;
  int64_t size;
} types[FILE_TYPES] = {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}};

/* One tensor of the header. */
typedef struct entry {
  const char *name; /* borrowed from the header */
  file_type type;
  int rank;
  int64_t dim[TS_TENSOR_RANK];
  int64_t count, begin, end; /* bytes of the data part */
} entry;

typedef struct reader {
  const char *origin;
  const unsigned char *bytes;
  int64_t data_start, data_size;
  ts_json *header;
  int count;
  entry *entries; /* [count] */
  entry **by_offset;
} reader;

/* ---- values ---------------------------------------------------------------------------------- */

static double from_half(uint16_t bits)
{
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  if (exponent == 31) value = fraction ? NAN : INFINITY;
  return bits >> 15 ? -value : value;
}

static double from_bfloat(uint16_t bits)
{
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

static double value_at(file_type type, const unsigned char *data, int64_t index)
{
  float single;
  double value;
  uint16_t bits;
  switch (type) {
    case FILE_F64:
      memcpy(&value, data + 8 * index, sizeof value);
      return value;
    case FILE_F32:
      memcpy(&single, data + 4 * index, sizeof single);
      return single;
    default:
      memcpy(&bits, data + 2 * index, sizeof bits);
      return type == FILE_F16 ? from_half(bits) : from_bfloat(bits);
  }
}

static int convert(const reader *r, const entry *e, double *out)
{
  const unsigned char *data = r->bytes + r->data_start + e->begin;
  for (int64_t i = 0; i < e->count; ++i) {
    out[i] = value_at(e->type, data, i);
    if (!isfinite(out[i]))
      return tsi_fail(TS_ERR_INPUT,
                      "%s: tensor \"%s\": element %lld is %g; expected a finite number", r->origin,
                      e->name, (long long)i, out[i]);
  }
  return 0;
}

/* ---- the header ------------------------------------------------------------------------------ */

static int refuse(const reader *r, const char *tensor, const ts_json_node *node,
                  const char *expected)
{
  char shown[80];
  return tsi_fail(TS_ERR_INPUT, "%s: tensor \"%s\": %s is %s; expected %s", r->origin, tensor,
                  ts_json_key(node), ts_json_show(node, shown, sizeof shown), expected);
}

static int read_type(const reader *r, const ts_json_node *node, entry *e)
{
  static const char expected[] = "\"F32\", \"F64\", \"F16\" or \"BF16\"";
  if (ts_json_node_kind(node) != TS_JSON_STRING) return refuse(r, e->name, node, expected);
  for (e->type = 0; e->type < FILE_TYPES; ++e->type)
    if (!strcmp(ts_json_string(node), types[e->type].name)) return 0;
  return refuse(r, e->name, node, expected);
}

/* An array of `most` integers at most, each `least` or more; returns how many, or -1. */
static int read_integers(const ts_json_node *node, int most, int64_t least, int64_t *out)
{
  if (ts_json_node_kind(node) != TS_JSON_ARRAY || ts_json_size(node) > most) return -1;
  for (int i = 0; i < ts_json_size(node); ++i) {
    const ts_json_node *item = ts_json_at(node, i);
    if (ts_json_node_kind(item) != TS_JSON_NUMBER || ts_json_int64(item, &out[i]) || out[i] < least)
      return -1;
  }
  return ts_json_size(node);
}

static int read_shape(const reader *r, const ts_json_node *node, entry *e)
{
  e->rank = read_integers(node, TS_TENSOR_RANK, 1, e->dim);
  if (e->rank < 0) return refuse(r, e->name, node, "at most 4 dimensions of 1 or more");
  e->count = 1;
  for (int i = 0; i < e->rank; ++i)
    if (__builtin_mul_overflow(e->count, e->dim[i], &e->count) || e->count > r->data_size)
      return tsi_fail(TS_ERR_INPUT,
                      "%s: tensor \"%s\": shape has more elements than the file's"
                      " %lld bytes of data",
                      r->origin, e->name, (long long)r->data_size);
  for (int i = e->rank; i < TS_TENSOR_RANK; ++i)
    e->dim[i] = 1;
  return 0;
}

static int read_range(const reader *r, const ts_json_node *node, entry *e)
{
  int64_t range[2];
  if (read_integers(node, 2, 0, range) != 2 || range[0] > range[1] || range[1] > r->data_size) {
    char expected[96];
    snprintf(expected, sizeof expected, "[begin, end] with 0 <= begin <= end <= %lld",
             (long long)r->data_size);
    return refuse(r, e->name, node, expected);
  }
  e->begin = range[0];
  e->end = range[1];
  if (e->end - e->begin != e->count * types[e->type].size)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: tensor \"%s\": data_offsets span %lld bytes; its shape and"
                    " dtype need %lld",
                    r->origin, e->name, (long long)(e->end - e->begin),
                    (long long)(e->count * types[e->type].size));
  return 0;
}

static int read_entry(const reader *r, const ts_json_node *node, entry *e)
{
  e->name = ts_json_key(node);
  if (!*e->name || strlen(e->name) >= TS_TENSOR_NAME)
    return tsi_fail(TS_ERR_INPUT, "%s: tensor \"%.140s\": expected a name of 1 to %d bytes",
                    r->origin, e->name, TS_TENSOR_NAME - 1);
  if (ts_json_node_kind(node) != TS_JSON_OBJECT) return refuse(r, e->name, node, "an object");
  const ts_json_node *dtype = ts_json_member(node, "dtype");
  const ts_json_node *shape = ts_json_member(node, "shape");
  const ts_json_node *range = ts_json_member(node, "data_offsets");
  if (!dtype || !shape || !range || ts_json_size(node) != 3)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: tensor \"%s\": expected exactly dtype, shape and"
                    " data_offsets",
                    r->origin, e->name);
  TS_TRY(read_type(r, dtype, e));
  TS_TRY(read_shape(r, shape, e));
  return read_range(r, range, e);
}

static int read_metadata(const reader *r, const ts_json_node *node, ts_weights *w)
{
  if (ts_json_node_kind(node) != TS_JSON_OBJECT)
    return tsi_fail(TS_ERR_INPUT, "%s: __metadata__ is not an object of strings", r->origin);
  for (int i = 0; i < ts_json_size(node); ++i) {
    const ts_json_node *item = ts_json_at(node, i);
    if (ts_json_node_kind(item) != TS_JSON_STRING)
      return tsi_fail(TS_ERR_INPUT, "%s: __metadata__: \"%s\" is not a string", r->origin,
                      ts_json_key(item));
    TS_TRY(ts_weights_set_metadata(w, ts_json_key(item), ts_json_string(item)));
  }
  return 0;
}

static int read_entries(reader *r, ts_weights *w)
{
  const ts_json_node *root = ts_json_root(r->header);
  if (ts_json_node_kind(root) != TS_JSON_OBJECT)
    return tsi_fail(TS_ERR_INPUT, "%s: the header is not a JSON object", r->origin);
  if (ts_json_size(root) > TENSOR_LIMIT)
    return tsi_fail(TS_ERR_INPUT, "%s: %d tensors; at most %d", r->origin, ts_json_size(root),
                    TENSOR_LIMIT);
  TS_TRY(TSI_NEW(r->entries, ts_json_size(root)));
  for (int i = 0; i < ts_json_size(root); ++i) {
    const ts_json_node *node = ts_json_at(root, i);
    if (!strcmp(ts_json_key(node), "__metadata__"))
      TS_TRY(read_metadata(r, node, w));
    else
      TS_TRY(read_entry(r, node, &r->entries[r->count++]));
  }
  return 0;
}

/* ---- ranges, tensors ------------------------------------------------------------------------- */

static int compare_offsets(const void *left, const void *right)
{
  const entry *a = *(entry *const *)left, *b = *(entry *const *)right;
  return (a->begin > b->begin) - (a->begin < b->begin);
}

static int check_ranges(reader *r)
{
  TS_TRY(TSI_NEW(r->by_offset, r->count));
  for (int i = 0; i < r->count; ++i)
    r->by_offset[i] = &r->entries[i];
  if (r->count) qsort(r->by_offset, (size_t)r->count, sizeof *r->by_offset, compare_offsets);
  for (int i = 1; i < r->count; ++i)
    if (r->by_offset[i]->begin < r->by_offset[i - 1]->end)
      return tsi_fail(TS_ERR_INPUT, "%s: tensors \"%s\" and \"%s\" overlap in the file", r->origin,
                      r->by_offset[i - 1]->name, r->by_offset[i]->name);
  const int64_t end = r->count ? r->by_offset[r->count - 1]->end : 0;
  if (end != r->data_size)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: %lld bytes after the last tensor; expected the file to end"
                    " there",
                    r->origin, (long long)(r->data_size - end));
  return 0;
}

static int make_tensors(const reader *r, ts_weights *w)
{
  TS_TRY(tsi_weights_reserve(w, r->count));
  for (int i = 0; i < r->count; ++i) {
    const entry *e = r->by_offset[i];
    tsi_tensor *t = &w->tensor[w->count];
    *t = (tsi_tensor){.rank = e->rank, .count = e->count};
    memcpy(t->dim, e->dim, sizeof t->dim);
    TS_TRY(TSI_NEW(t->data, e->count));
    ++w->count; /* from here on the set owns it */
    t->name = strdup(e->name);
    if (!t->name) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for names", r->origin);
    TS_TRY(convert(r, e, t->data));
  }
  return 0;
}

static int compare_names(const void *left, const void *right)
{
  return strcmp(((const tsi_tensor *)left)->name, ((const tsi_tensor *)right)->name);
}

static int find_header(reader *r, size_t size, uint64_t *length)
{
  if (size < 8)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: not a safetensors file, or cut: %zu bytes; expected 8 with the length of"
                    " a header, then the header",
                    r->origin, size);
  memcpy(length, r->bytes, sizeof *length);
  if (*length > size - 8 || *length > HEADER_LIMIT)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: not a safetensors file, or cut: its first 8 bytes tell of a header of"
                    " %llu bytes; expected at most the %zu that follow, and %d",
                    r->origin, (unsigned long long)*length, size - 8, HEADER_LIMIT);
  const unsigned char *nul = memchr(r->bytes + 8, 0, *length);
  if (nul)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: NUL byte in the header at offset %td; pad a header with"
                    " blanks",
                    r->origin, nul - r->bytes);
  r->data_start = 8 + (int64_t)*length;
  r->data_size = (int64_t)size - r->data_start;
  return 0;
}

static int read_all(reader *r, size_t size, ts_weights *w)
{
  uint64_t length = 0;
  char origin[512];
  TS_TRY(find_header(r, size, &length));
  snprintf(origin, sizeof origin, "%s: header", r->origin);
  TS_TRY(ts_json_parse((const char *)r->bytes + 8, (size_t)length, origin, &r->header));
  TS_TRY(read_entries(r, w));
  TS_TRY(check_ranges(r));
  TS_TRY(make_tensors(r, w));
  if (w->count) qsort(w->tensor, (size_t)w->count, sizeof *w->tensor, compare_names);
  return 0;
}

int ts_weights_parse(const void *bytes, size_t size, const char *origin, ts_weights **out)
{
  reader r = {.origin = origin, .bytes = bytes};
  TS_TRY(ts_weights_create(out));
  const int status = read_all(&r, size, *out);
  ts_json_destroy(&r.header);
  free(r.entries);
  free(r.by_offset);
  if (status) ts_weights_destroy(out);
  return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_bytes(int fd, const char *path, unsigned char **bytes, size_t *size)
{
  struct stat info;
  if (fstat(fd, &info)) return tsi_fail(TS_ERR_INPUT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return tsi_fail(TS_ERR_INPUT, "%s: not a regular file", path);
  *size = (size_t)info.st_size;
  TS_TRY(TSI_NEW(*bytes, *size));
  for (size_t done = 0; done < *size;) {
    const ssize_t got = read(fd, *bytes + done, *size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return tsi_fail(TS_ERR_INPUT, "%s: %s after %zu of %zu bytes", path,
                      got ? strerror(errno) : "the file ended", done, *size);
    done += (size_t)got;
  }
  return 0;
}

int ts_weights_read(const char *path, ts_weights **out)
{
  unsigned char *bytes = NULL;
  size_t size = 0;
  *out = NULL;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return tsi_fail(TS_ERR_INPUT, "%s: %s", path, strerror(errno));
  int status = read_bytes(fd, path, &bytes, &size);
  close(fd);
  if (!status) status = ts_weights_parse(bytes, size, path, out);
  free(bytes);
  return status;
}
