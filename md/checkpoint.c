/* SPDX-License-Identifier: MIT
 *
 * Named arrays that are the same on all ranks: putting them in and getting them out.  (Those of the
 * atoms: md/checkpoint_atoms.c.) */
#include "md/checkpoint.h"

#include "comm/sparse.h"
#include "comm/world.h"
#include "md/checkpoint_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const tsi_checkpoint_types[4] = {"double", "int64", "int32", "uint8"};

size_t tsi_checkpoint_size(tsi_h5_type type)
{
  static const size_t sizes[] = {8, 8, 4, 1};
  return sizes[type];
}

bool tsi_checkpoint_name(const char *name)
{
  const size_t length = strlen(name);
  return length > 0 && length < TS_CHECKPOINT_NAME &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

const tsi_checkpoint_array *tsi_checkpoint_find(const ts_checkpoint *checkpoint, const char *name)
{
  for (int i = 0; i < checkpoint->count; ++i)
    if (!strcmp(checkpoint->array[i].name, name)) return &checkpoint->array[i];
  return NULL;
}

int tsi_checkpoint_add(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t rows,
                       int64_t width, tsi_checkpoint_array **out)
{
  if (!tsi_checkpoint_name(name) || tsi_checkpoint_find(checkpoint, name))
    return tsi_fail(TS_ERR_ARG, "checkpoint: the name '%.60s' is malformed or taken", name);
  if (rows < 1 || width < 1 || rows > INT64_MAX / 8 / width)
    return tsi_fail(TS_ERR_ARG, "checkpoint: %s has %ld x %ld values", name, (long)rows,
                    (long)width);
  if (checkpoint->count == TSI_CHECKPOINT_ARRAYS)
    return tsi_fail(TS_ERR_ARG, "checkpoint: more than %d arrays", TSI_CHECKPOINT_ARRAYS);
  *out = &checkpoint->array[checkpoint->count++];
  **out = (tsi_checkpoint_array){.type = type, .rows = rows, .width = width, .here = rows};
  memcpy((*out)->name, name, strlen(name) + 1);
  return 0;
}

void tsi_checkpoint_drop(ts_checkpoint *checkpoint)
{
  free(checkpoint->array[--checkpoint->count].data);
}

bool tsi_checkpoint_finite(tsi_h5_type type, int64_t count, const void *data)
{
  const double *value = data;
  if (type != TSI_H5_DOUBLE) return true;
  for (int64_t i = 0; i < count; ++i)
    if (!isfinite(value[i])) return false;
  return true;
}

int tsi_checkpoint_join(const ts_ranks *ranks, uint64_t *word)
{
  if (ranks->comm != MPI_COMM_NULL && ranks->size > 1)
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, word, 1, MPI_UINT64_T, MPI_BXOR, ranks->comm));
  return 0;
}

/* ---- the object ---- */

int ts_checkpoint_create(const ts_ranks *ranks, int64_t step, double time, ts_checkpoint **out)
{
  *out = calloc(1, sizeof **out);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "no memory for a checkpoint");
  **out = (ts_checkpoint){.ranks = *ranks, .step = step, .time = time, .fd = -1};
  int status = ts_checkpoint_put_int64(*out, "step", 1, &step);
  if (!status) status = ts_checkpoint_put_double(*out, "time", 1, &time);
  if (status) ts_checkpoint_destroy(out);
  return status;
}

void ts_checkpoint_destroy(ts_checkpoint **checkpoint)
{
  ts_checkpoint *c = *checkpoint;
  if (!c) return;
  while (c->count)
    tsi_checkpoint_drop(c);
  if (c->fd >= 0) close(c->fd);
  free(c->path);
  free(c);
  *checkpoint = NULL;
}

int64_t ts_checkpoint_step(const ts_checkpoint *checkpoint)
{
  return checkpoint->step;
}

double ts_checkpoint_time(const ts_checkpoint *checkpoint)
{
  return checkpoint->time;
}

const char *ts_checkpoint_path(const ts_checkpoint *checkpoint)
{
  return checkpoint->path ? checkpoint->path : "";
}

bool ts_checkpoint_has(const ts_checkpoint *checkpoint, const char *name)
{
  return tsi_checkpoint_find(checkpoint, name) != NULL;
}

/* ---- putting ---- */

static int put(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t count,
               const void *data)
{
  tsi_checkpoint_array *array;
  if (count > 0 && !tsi_checkpoint_finite(type, count, data))
    return tsi_fail(TS_ERR_SIMULATION, "checkpoint: %s is not finite; nothing is stored", name);
  TS_TRY(tsi_checkpoint_add(checkpoint, name, type, count, 1, &array));
  const int status = tsi_alloc((size_t)count, tsi_checkpoint_size(type), &array->data);
  if (status)
    tsi_checkpoint_drop(checkpoint);
  else
    memcpy(array->data, data, (size_t)count * tsi_checkpoint_size(type));
  return status;
}

int ts_checkpoint_put_double(ts_checkpoint *checkpoint, const char *name, int64_t count,
                             const double *data)
{
  return put(checkpoint, name, TSI_H5_DOUBLE, count, data);
}

int ts_checkpoint_put_int64(ts_checkpoint *checkpoint, const char *name, int64_t count,
                            const int64_t *data)
{
  return put(checkpoint, name, TSI_H5_INT64, count, data);
}

int ts_checkpoint_put_text(ts_checkpoint *checkpoint, const char *name, const char *text)
{
  const size_t length = strlen(text);
  if (length >= TSI_CHECKPOINT_TEXT)
    return tsi_fail(TS_ERR_ARG, "checkpoint: %s has %zu characters; at most %d are stored", name,
                    length, TSI_CHECKPOINT_TEXT - 1);
  return put(checkpoint, name, TSI_H5_UINT8, (int64_t)length + 1, text);
}

/* ---- getting ---- */

int tsi_checkpoint_expect(const ts_checkpoint *checkpoint, const char *name, tsi_h5_type type,
                          int64_t rows, int64_t width, const tsi_checkpoint_array **out)
{
  const tsi_checkpoint_array *array = tsi_checkpoint_find(checkpoint, name);
  if (!array)
    return tsi_fail(TS_ERR_INPUT, "%s: there is no '%s'", ts_checkpoint_path(checkpoint), name);
  if (array->type != type || array->rows != rows || array->width != width)
    return tsi_fail(TS_ERR_INPUT, "%s: '%s' is %s %ld x %ld; expected %s %ld x %ld",
                    ts_checkpoint_path(checkpoint), name, tsi_checkpoint_types[array->type],
                    (long)array->rows, (long)array->width, tsi_checkpoint_types[type], (long)rows,
                    (long)width);
  *out = array;
  return 0;
}

int tsi_checkpoint_fetch(const ts_checkpoint *checkpoint, const tsi_checkpoint_array *array,
                         int64_t first, int64_t rows, void *out)
{
  const int64_t row = array->width * (int64_t)tsi_checkpoint_size(array->type);
  TS_TRY(tsi_checkpoint_pread(checkpoint->path, checkpoint->fd, out, rows * row,
                              array->offset + first * row));
  if (tsi_checkpoint_finite(array->type, rows * array->width, out)) return 0;
  return tsi_fail(TS_ERR_INPUT, "%s: '%s' is not finite", checkpoint->path, array->name);
}

int tsi_checkpoint_fetch_text(const ts_checkpoint *checkpoint, const char *name,
                              char out[TSI_CHECKPOINT_TEXT])
{
  const tsi_checkpoint_array *array = tsi_checkpoint_find(checkpoint, name);
  bool is_text = array && array->type == TSI_H5_UINT8 && array->width == 1 &&
                 array->rows <= TSI_CHECKPOINT_TEXT;
  if (is_text) {
    TS_TRY(tsi_checkpoint_fetch(checkpoint, array, 0, array->rows, out));
    is_text = memchr(out, '\0', (size_t)array->rows) == out + array->rows - 1;
  }
  if (is_text) return 0;
  return tsi_fail(TS_ERR_INPUT, "%s: there is no text '%s'", ts_checkpoint_path(checkpoint), name);
}

static int get(const ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t count,
               void *data)
{
  const tsi_checkpoint_array *array;
  int status = tsi_checkpoint_expect(checkpoint, name, type, count, 1, &array);
  if (!status) status = tsi_checkpoint_fetch(checkpoint, array, 0, count, data);
  return tsi_ranks_agree(&checkpoint->ranks, status);
}

int ts_checkpoint_get_double(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                             double *data)
{
  return get(checkpoint, name, TSI_H5_DOUBLE, count, data);
}

int ts_checkpoint_get_int64(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                            int64_t *data)
{
  return get(checkpoint, name, TSI_H5_INT64, count, data);
}

int ts_checkpoint_expect_text(const ts_checkpoint *checkpoint, const char *name, const char *value,
                              const char *hint)
{
  char stored[TSI_CHECKPOINT_TEXT];
  const int status = tsi_checkpoint_fetch_text(checkpoint, name, stored);
  TS_TRY(tsi_ranks_agree(&checkpoint->ranks, status));
  if (!strcmp(stored, value)) return 0;
  return tsi_fail(TS_ERR_INPUT, "%s: its %s is '%.200s', this job's is '%.200s'; %s",
                  ts_checkpoint_path(checkpoint), name, stored, value, hint);
}

int ts_checkpoint_expect_int64(const ts_checkpoint *checkpoint, const char *name, int64_t value,
                               const char *hint)
{
  int64_t stored;
  TS_TRY(ts_checkpoint_get_int64(checkpoint, name, 1, &stored));
  if (stored == value) return 0;
  return tsi_fail(TS_ERR_INPUT, "%s: its %s is %ld, this job's is %ld; %s",
                  ts_checkpoint_path(checkpoint), name, (long)stored, (long)value, hint);
}
