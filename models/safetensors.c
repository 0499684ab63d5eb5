/* SPDX-License-Identifier: MIT
 *
 * The set of tensors: sorted by name, so that a look-up bisects and writing has one order. */
#include "models/safetensors_impl.h"

#include "runtime/error.h"
#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>

int ts_weights_create(ts_weights **out)
{
  *out = NULL;
  return TSI_NEW(*out, 1);
}

void ts_weights_destroy(ts_weights **w)
{
  if (!*w) return;
  for (int i = 0; i < (*w)->count; ++i) {
    free((*w)->tensor[i].name);
    free((*w)->tensor[i].data);
  }
  for (int i = 0; i < (*w)->nmeta; ++i) {
    free((*w)->meta[i].key);
    free((*w)->meta[i].value);
  }
  free((*w)->tensor);
  free((*w)->meta);
  free(*w);
  *w = NULL;
}

/* Index of the first tensor whose name is not before `name`. */
static int lower_bound(const ts_weights *w, const char *name)
{
  int low = 0, high = w->count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (strcmp(w->tensor[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static tsi_tensor *find(const ts_weights *w, const char *name)
{
  const int at = lower_bound(w, name);
  return at < w->count && !strcmp(w->tensor[at].name, name) ? &w->tensor[at] : NULL;
}

static int check_tensor(const ts_weights *w, const char *name, int rank, const int64_t *dim,
                        int64_t *count)
{
  if (!*name || strlen(name) >= TS_TENSOR_NAME)
    return tsi_fail(TS_ERR_ARG, "tensor \"%.140s\": a name has 1 to %d bytes", name,
                    TS_TENSOR_NAME - 1);
  if (rank < 0 || rank > TS_TENSOR_RANK)
    return tsi_fail(TS_ERR_ARG, "tensor \"%s\": rank %d; at most %d", name, rank, TS_TENSOR_RANK);
  *count = 1;
  for (int i = 0; i < rank; ++i)
    if (dim[i] < 1 || __builtin_mul_overflow(*count, dim[i], count))
      return tsi_fail(TS_ERR_ARG,
                      "tensor \"%s\": dimension %d is %lld; expected 1 or more, and a"
                      " size that fits",
                      name, i, (long long)dim[i]);
  if (find(w, name)) return tsi_fail(TS_ERR_ARG, "tensor \"%s\" is there already", name);
  return 0;
}

int tsi_weights_reserve(ts_weights *w, int room)
{
  if (room <= w->room) return 0;
  if (room < 2 * w->room) room = 2 * w->room;
  tsi_tensor *tensor = realloc(w->tensor, (size_t)room * sizeof *tensor);
  if (!tensor) return tsi_fail(TS_ERR_MEMORY, "no memory for a list of %d tensors", room);
  w->tensor = tensor;
  w->room = room;
  return 0;
}

int ts_weights_add(ts_weights *w, const char *name, int rank, const int64_t *dim,
                   const double *data)
{
  tsi_tensor new = {.rank = rank, .dim = {1, 1, 1, 1}};
  TS_TRY(check_tensor(w, name, rank, dim, &new.count));
  TS_TRY(tsi_weights_reserve(w, w->count + 1));
  TS_TRY(TSI_NEW(new.data, new.count));
  new.name = strdup(name);
  if (!new.name) {
    free(new.data);
    return tsi_fail(TS_ERR_MEMORY, "no memory for the name of tensor \"%s\"", name);
  }
  for (int i = 0; i < rank; ++i)
    new.dim[i] = dim[i];
  if (data) memcpy(new.data, data, (size_t) new.count * sizeof *data);

  const int at = lower_bound(w, name);
  memmove(w->tensor + at + 1, w->tensor + at, (size_t)(w->count - at) * sizeof *w->tensor);
  w->tensor[at] = new;
  ++w->count;
  return 0;
}

int ts_weights_count(const ts_weights *w)
{
  return w->count;
}

ts_tensor_view ts_weights_at(const ts_weights *w, int index)
{
  const tsi_tensor *t = &w->tensor[index];
  ts_tensor_view view = {.name = t->name, .rank = t->rank, .count = t->count, .data = t->data};
  memcpy(view.dim, t->dim, sizeof view.dim);
  return view;
}

bool ts_weights_find(const ts_weights *w, const char *name, ts_tensor_view *out)
{
  const tsi_tensor *t = find(w, name);
  if (t) *out = ts_weights_at(w, (int)(t - w->tensor));
  return t != NULL;
}

const double *ts_weights_data(const ts_weights *w, const char *name)
{
  const tsi_tensor *t = find(w, name);
  return t ? t->data : NULL;
}

const char *ts_weights_metadata(const ts_weights *w, const char *key)
{
  for (int i = 0; i < w->nmeta; ++i)
    if (!strcmp(w->meta[i].key, key)) return w->meta[i].value;
  return NULL;
}

static int add_metadata(ts_weights *w, const char *key, char *value)
{
  tsi_meta *meta = realloc(w->meta, (size_t)(w->nmeta + 1) * sizeof *meta);
  if (meta) w->meta = meta;
  char *copy = meta ? strdup(key) : NULL;
  if (!copy) return tsi_fail(TS_ERR_MEMORY, "no memory for metadata \"%s\"", key);
  int at = w->nmeta;
  while (at > 0 && strcmp(meta[at - 1].key, key) > 0) {
    meta[at] = meta[at - 1];
    --at;
  }
  meta[at] = (tsi_meta){.key = copy, .value = value};
  ++w->nmeta;
  return 0;
}

int ts_weights_set_metadata(ts_weights *w, const char *key, const char *value)
{
  char *copy = strdup(value);
  if (!copy) return tsi_fail(TS_ERR_MEMORY, "no memory for metadata \"%s\"", key);
  for (int i = 0; i < w->nmeta; ++i)
    if (!strcmp(w->meta[i].key, key)) {
      free(w->meta[i].value);
      w->meta[i].value = copy;
      return 0;
    }
  const int status = add_metadata(w, key, copy);
  if (status) free(copy);
  return status;
}
