/* SPDX-License-Identifier: MIT
 *
 * Named tensors and the file that holds them.  The file is safetensors: 8 bytes header length
 * (little endian), a JSON header, raw little-endian data.  Tensors are kept in double whatever the
 * file's type was: this is load-time data, kernels pack their own copies.
 *
 * A file from elsewhere is hostile until checked: every offset and product is checked against the
 * file's size before it is used, and a file that is not exactly header plus named data is refused
 * with the tensor's name. */
#ifndef TS_SAFETENSORS_H
#define TS_SAFETENSORS_H

#include "runtime/types.h"

enum { TS_TENSOR_RANK = 4, TS_TENSOR_NAME = 128 };

typedef struct ts_weights ts_weights;

typedef enum ts_dtype { TS_DTYPE_F32, TS_DTYPE_F64 } ts_dtype; /* what can be written */

/** A borrowed view of one tensor, valid until its set changes or is destroyed. */
typedef struct ts_tensor_view {
  const char *name;
  int rank;                    /* 0..4 */
  int64_t dim[TS_TENSOR_RANK]; /* 1 beyond the rank */
  int64_t count;               /* product of dim */
  const double *data;          /* C order */
} ts_tensor_view;

/** An empty set.  Not collective.  \return 0 or TS_ERR_MEMORY. */
int ts_weights_create(ts_weights **out);
void ts_weights_destroy(ts_weights **w);

/** Read a file of F32, F64, F16 or BF16 tensors.  Not collective (each caller reads).
 * \return 0, TS_ERR_INPUT (malformed; also: cannot be opened) or TS_ERR_MEMORY. */
int ts_weights_read(const char *path, ts_weights **out);

/** The same from memory: `size` bytes of a file; `origin` names them in messages. */
int ts_weights_parse(const void *bytes, size_t size, const char *origin, ts_weights **out);

/** Write a file: tensors in order of name, so equal sets give equal bytes.  Written aside, flushed
 * and renamed.  Not collective.  \return 0, TS_ERR_IO or TS_ERR_MEMORY. */
int ts_weights_write(const ts_weights *w, const char *path, ts_dtype dtype);

/** Add a tensor; the data is copied.
 * \param [in] data  [dim[0], ..., dim[rank-1]] double, or NULL for zeros.
 * \return 0, TS_ERR_ARG (name taken or too long, a dimension below 1) or TS_ERR_MEMORY. */
int ts_weights_add(ts_weights *w, const char *name, int rank, const int64_t *dim,
                   const double *data);

/** How many tensors, and the i-th in order of name. */
int ts_weights_count(const ts_weights *w);
ts_tensor_view ts_weights_at(const ts_weights *w, int index);

/** Find a tensor; false (and *out untouched) when there is none. */
bool ts_weights_find(const ts_weights *w, const char *name, ts_tensor_view *out);

/** The data of a tensor in C order, NULL when there is none; borrowed. */
const double *ts_weights_data(const ts_weights *w, const char *name);

/** The file's `__metadata__` value, NULL when absent; borrowed. */
const char *ts_weights_metadata(const ts_weights *w, const char *key);

/** Set a metadata value (both copied), replacing an earlier one.  \return 0 or TS_ERR_MEMORY. */
int ts_weights_set_metadata(ts_weights *w, const char *key, const char *value);

#endif
