/* SPDX-License-Identifier: MIT
 *
 * Named arrays: putting them in, in the order of the structure file, and getting them out. */
#include "md/checkpoint.h"

#include "md/checkpoint_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_TEXT = 4096 };

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

static const tsi_checkpoint_array *find(const ts_checkpoint *checkpoint, const char *name)
{
  for (int i = 0; i < checkpoint->count; ++i)
    if (!strcmp(checkpoint->array[i].name, name)) return &checkpoint->array[i];
  return NULL;
}

int tsi_checkpoint_add(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t rows,
                       int64_t width, tsi_checkpoint_array **out)
{
  if (!tsi_checkpoint_name(name) || find(checkpoint, name))
    return tsi_fail(TS_ERR_ARG, "checkpoint: the name '%.60s' is malformed or taken", name);
  if (rows < 1 || width < 1 || rows > INT64_MAX / 8 / width)
    return tsi_fail(TS_ERR_ARG, "checkpoint: %s has %ld x %ld values", name, (long)rows,
                    (long)width);
  if (checkpoint->count == TSI_CHECKPOINT_ARRAYS)
    return tsi_fail(TS_ERR_ARG, "checkpoint: more than %d arrays", TSI_CHECKPOINT_ARRAYS);
  tsi_checkpoint_array *array = &checkpoint->array[checkpoint->count];
  TS_TRY(tsi_alloc((size_t)(rows * width), tsi_checkpoint_size(type), &array->data));
  memcpy(array->name, name, strlen(name) + 1);
  array->type = type;
  array->rows = rows;
  array->width = width;
  ++checkpoint->count;
  *out = array;
  return 0;
}

bool tsi_checkpoint_finite(const tsi_checkpoint_array *array)
{
  if (array->type != TSI_H5_DOUBLE) return true;
  const double *data = array->data;
  for (int64_t i = 0; i < array->rows * array->width; ++i)
    if (!isfinite(data[i])) return false;
  return true;
}

/* ---- the object ---- */

int ts_checkpoint_create(int64_t step, double time, ts_checkpoint **out)
{
  *out = calloc(1, sizeof **out);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "no memory for a checkpoint");
  int status = ts_checkpoint_put_int64(*out, "step", 1, &step);
  if (!status) status = ts_checkpoint_put_double(*out, "time", 1, &time);
  if (status) ts_checkpoint_destroy(out);
  return status;
}

void ts_checkpoint_destroy(ts_checkpoint **checkpoint)
{
  if (!*checkpoint) return;
  for (int i = 0; i < (*checkpoint)->count; ++i)
    free((*checkpoint)->array[i].data);
  free((*checkpoint)->path);
  free(*checkpoint);
  *checkpoint = NULL;
}

int64_t ts_checkpoint_step(const ts_checkpoint *checkpoint)
{
  return *(const int64_t *)find(checkpoint, "step")->data;
}

double ts_checkpoint_time(const ts_checkpoint *checkpoint)
{
  return *(const double *)find(checkpoint, "time")->data;
}

const char *ts_checkpoint_path(const ts_checkpoint *checkpoint)
{
  return checkpoint->path ? checkpoint->path : "";
}

bool ts_checkpoint_has(const ts_checkpoint *checkpoint, const char *name)
{
  return find(checkpoint, name) != NULL;
}

/* ---- putting ---- */

/* The last array again, if it must not stay. */
static int put_back(ts_checkpoint *checkpoint, int status)
{
  free(checkpoint->array[--checkpoint->count].data);
  return status;
}

static int put(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t count,
               const void *data)
{
  tsi_checkpoint_array *array;
  TS_TRY(tsi_checkpoint_add(checkpoint, name, type, count, 1, &array));
  memcpy(array->data, data, (size_t)count * tsi_checkpoint_size(type));
  if (tsi_checkpoint_finite(array)) return 0;
  return put_back(checkpoint, tsi_fail(TS_ERR_SIMULATION,
                                       "checkpoint: %s is not finite; nothing is stored", name));
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
  if (length >= LONGEST_TEXT)
    return tsi_fail(TS_ERR_ARG, "checkpoint: %s has %zu characters; at most %d are stored", name,
                    length, LONGEST_TEXT - 1);
  return put(checkpoint, name, TSI_H5_UINT8, (int64_t)length + 1, text);
}

/* Rows of the atoms in the order of the structure file. */
static int put_atoms(ts_checkpoint *checkpoint, const ts_system *system, const char *name,
                     tsi_h5_type type, int width, const void *data)
{
  tsi_checkpoint_array *array;
  if (system->n != system->natoms)
    return tsi_fail(TS_ERR_UNSUPPORTED, "checkpoint: %ld of %ld atoms are here; expected all",
                    (long)system->n, (long)system->natoms);
  TS_TRY(tsi_checkpoint_add(checkpoint, name, type, system->natoms, width, &array));
  const size_t row = (size_t)width * tsi_checkpoint_size(type);
  for (ts_lidx i = 0; i < system->n; ++i)
    memcpy((char *)array->data + (size_t)system->gid[i] * row, (const char *)data + (size_t)i * row,
           row);
  if (tsi_checkpoint_finite(array)) return 0;
  return put_back(checkpoint, tsi_fail(TS_ERR_SIMULATION,
                                       "checkpoint: %s is not finite; nothing is stored", name));
}

int ts_checkpoint_put_atoms_double(ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, const double *data)
{
  return put_atoms(checkpoint, system, name, TSI_H5_DOUBLE, width, data);
}

/* What a system is besides its atoms. */
enum { FACT_VELOCITIES, FACT_CHARGED, FACT_CHARGE, FACT_MULTIPLICITY, FACT_PBC, FACTS = 7 };

int ts_checkpoint_put_system(ts_checkpoint *checkpoint, const ts_system *system)
{
  const ts_system *s = system;
  const bool *pbc = s->cell.periodic;
  const int64_t facts[FACTS] = {
      s->has_velocities, s->has_charge, s->charge, s->multiplicity, pbc[0], pbc[1], pbc[2]};
  TS_TRY(ts_system_check(s));
  TS_TRY(ts_checkpoint_put_double(checkpoint, "cell", 9, &s->cell.h[0][0]));
  TS_TRY(ts_checkpoint_put_int64(checkpoint, "system", FACTS, facts));
  TS_TRY(ts_checkpoint_put_text(checkpoint, "title", s->title));
  TS_TRY(put_atoms(checkpoint, s, "x", TSI_H5_DOUBLE, 3, s->x));
  TS_TRY(put_atoms(checkpoint, s, "image", TSI_H5_INT32, 3, s->image));
  TS_TRY(put_atoms(checkpoint, s, "v", TSI_H5_DOUBLE, 3, s->v));
  TS_TRY(put_atoms(checkpoint, s, "mass", TSI_H5_DOUBLE, 1, s->mass));
  return put_atoms(checkpoint, s, "z", TSI_H5_UINT8, 1, s->z);
}

/* ---- getting ---- */

/* The array of that name if it has this type and shape. */
static int get(const ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t rows,
               int64_t width, const void **data)
{
  const tsi_checkpoint_array *array = find(checkpoint, name);
  if (!array)
    return tsi_fail(TS_ERR_INPUT, "%s: there is no '%s'", ts_checkpoint_path(checkpoint), name);
  if (array->type != type || array->rows != rows || array->width != width)
    return tsi_fail(TS_ERR_INPUT, "%s: '%s' is %s %ld x %ld; expected %s %ld x %ld",
                    ts_checkpoint_path(checkpoint), name, tsi_checkpoint_types[array->type],
                    (long)array->rows, (long)array->width, tsi_checkpoint_types[type], (long)rows,
                    (long)width);
  *data = array->data;
  return 0;
}

int ts_checkpoint_get_double(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                             double *data)
{
  const void *found;
  TS_TRY(get(checkpoint, name, TSI_H5_DOUBLE, count, 1, &found));
  memcpy(data, found, (size_t)count * sizeof *data);
  return 0;
}

int ts_checkpoint_get_int64(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                            int64_t *data)
{
  const void *found;
  TS_TRY(get(checkpoint, name, TSI_H5_INT64, count, 1, &found));
  memcpy(data, found, (size_t)count * sizeof *data);
  return 0;
}

static int get_atoms(const ts_checkpoint *checkpoint, const ts_system *system, const char *name,
                     tsi_h5_type type, int width, void *data)
{
  const void *found;
  const size_t row = (size_t)width * tsi_checkpoint_size(type);
  TS_TRY(get(checkpoint, name, type, system->natoms, width, &found));
  for (ts_lidx i = 0; i < system->n; ++i)
    memcpy((char *)data + (size_t)i * row, (const char *)found + (size_t)system->gid[i] * row, row);
  return 0;
}

int ts_checkpoint_get_atoms_double(const ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, double *data)
{
  return get_atoms(checkpoint, system, name, TSI_H5_DOUBLE, width, data);
}

/* A text that ends where its array does. */
static int get_text(const ts_checkpoint *checkpoint, const char *name, const char **text)
{
  const tsi_checkpoint_array *array = find(checkpoint, name);
  const bool is_text =
      array && array->type == TSI_H5_UINT8 && array->width == 1 &&
      memchr(array->data, '\0', (size_t)array->rows) == (const char *)array->data + array->rows - 1;
  if (!is_text)
    return tsi_fail(TS_ERR_INPUT, "%s: there is no text '%s'", ts_checkpoint_path(checkpoint),
                    name);
  *text = array->data;
  return 0;
}

/* A failure inside this file's data: the message with the path, and the fault is the input's. */
static int blame(const ts_checkpoint *checkpoint)
{
  char what[512];
  snprintf(what, sizeof what, "%s", ts_error_message());
  return tsi_fail(TS_ERR_INPUT, "%s: %s", ts_checkpoint_path(checkpoint), what);
}

static int get_facts(const ts_checkpoint *checkpoint, ts_system *s)
{
  int64_t facts[FACTS];
  double h[3][3];
  const char *title;
  TS_TRY(ts_checkpoint_get_double(checkpoint, "cell", 9, &h[0][0]));
  TS_TRY(ts_checkpoint_get_int64(checkpoint, "system", FACTS, facts));
  TS_TRY(get_text(checkpoint, "title", &title));
  if (facts[FACT_CHARGE] < INT_MIN || facts[FACT_CHARGE] > INT_MAX ||
      facts[FACT_MULTIPLICITY] < 1 || facts[FACT_MULTIPLICITY] > INT_MAX)
    return tsi_fail(TS_ERR_INPUT, "%s: charge or multiplicity is out of range",
                    ts_checkpoint_path(checkpoint));
  const bool periodic[3] = {facts[FACT_PBC] != 0, facts[FACT_PBC + 1] != 0,
                            facts[FACT_PBC + 2] != 0};
  if (ts_cell_init(&s->cell, h, periodic)) return blame(checkpoint);
  s->has_velocities = facts[FACT_VELOCITIES] != 0;
  s->has_charge = facts[FACT_CHARGED] != 0;
  s->charge = (int)facts[FACT_CHARGE];
  s->multiplicity = (int)facts[FACT_MULTIPLICITY];
  snprintf(s->title, sizeof s->title, "%s", title);
  return 0;
}

int ts_checkpoint_get_system(const ts_checkpoint *checkpoint, ts_system **out)
{
  *out = NULL;
  const tsi_checkpoint_array *z = find(checkpoint, "z");
  if (!z || z->rows > INT32_MAX)
    return tsi_fail(TS_ERR_INPUT, "%s: there are no atoms, or too many",
                    ts_checkpoint_path(checkpoint));
  ts_system *s = NULL;
  TS_TRY(ts_system_create(z->rows, (ts_lidx)z->rows, &s));
  int status;
  TS_TRY_GOTO(status, get_facts(checkpoint, s), fail);
  TS_TRY_GOTO(status, get_atoms(checkpoint, s, "x", TSI_H5_DOUBLE, 3, s->x), fail);
  TS_TRY_GOTO(status, get_atoms(checkpoint, s, "image", TSI_H5_INT32, 3, s->image), fail);
  TS_TRY_GOTO(status, get_atoms(checkpoint, s, "v", TSI_H5_DOUBLE, 3, s->v), fail);
  TS_TRY_GOTO(status, get_atoms(checkpoint, s, "mass", TSI_H5_DOUBLE, 1, s->mass), fail);
  TS_TRY_GOTO(status, get_atoms(checkpoint, s, "z", TSI_H5_UINT8, 1, s->z), fail);
  if (ts_system_check(s)) {
    status = blame(checkpoint);
    goto fail;
  }
  *out = s;
  return 0;
fail:
  ts_system_destroy(&s);
  return status;
}

int ts_checkpoint_expect_text(const ts_checkpoint *checkpoint, const char *name, const char *value,
                              const char *hint)
{
  const char *stored;
  TS_TRY(get_text(checkpoint, name, &stored));
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
