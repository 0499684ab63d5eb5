/* SPDX-License-Identifier: MIT
 *
 * Writing safetensors.  Tensors stand in order of name and the header is padded with blanks to
 * eight bytes, so equal sets give equal bytes and the data is aligned. */
#include "models/safetensors_impl.h"

#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/json_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_tensor(ts_json_writer *json, const tsi_tensor *t, ts_dtype dtype, int64_t *offset)
{
  double dim[TS_TENSOR_RANK], range[2] = {(double)*offset};
  for (int i = 0; i < t->rank; ++i)
    dim[i] = (double)t->dim[i];
  *offset += t->count * (dtype == TS_DTYPE_F32 ? 4 : 8);
  range[1] = (double)*offset;
  ts_json_open_object(json, t->name);
  ts_json_put_string(json, "dtype", dtype == TS_DTYPE_F32 ? "F32" : "F64");
  ts_json_put_numbers(json, "shape", t->rank, dim);
  ts_json_put_numbers(json, "data_offsets", 2, range);
  ts_json_close(json);
}

static void put_header(ts_json_writer *json, const ts_weights *w, ts_dtype dtype)
{
  int64_t offset = 0;
  if (w->nmeta) {
    ts_json_open_object(json, "__metadata__");
    for (int i = 0; i < w->nmeta; ++i)
      ts_json_put_string(json, w->meta[i].key, w->meta[i].value);
    ts_json_close(json);
  }
  for (int i = 0; i < w->count; ++i)
    put_tensor(json, &w->tensor[i], dtype, &offset);
}

static void write_tensor(FILE *file, const tsi_tensor *t, ts_dtype dtype)
{
  if (dtype == TS_DTYPE_F64) {
    fwrite(t->data, sizeof *t->data, (size_t)t->count, file);
    return;
  }
  for (int64_t i = 0; i < t->count; ++i) {
    const float value = (float)t->data[i];
    fwrite(&value, sizeof value, 1, file);
  }
}

/* Failed writes stay in the stream's error flag, which the commit reads. */
static void write_all(FILE *file, const ts_weights *w, const char *header, ts_dtype dtype)
{
  const size_t used = strlen(header);
  const uint64_t length = (used + 7) / 8 * 8;
  fwrite(&length, sizeof length, 1, file);
  fwrite(header, 1, used, file);
  for (uint64_t i = used; i < length; ++i)
    fputc(' ', file);
  for (int i = 0; i < w->count; ++i)
    write_tensor(file, &w->tensor[i], dtype);
}

/* What a reader would refuse is not written. */
static int check_values(const ts_weights *w, const char *path, ts_dtype dtype)
{
  for (int i = 0; i < w->count; ++i)
    for (int64_t k = 0; k < w->tensor[i].count; ++k) {
      const double value = w->tensor[i].data[k];
      if (!isfinite(dtype == TS_DTYPE_F32 ? (double)(float)value : value))
        return tsi_fail(TS_ERR_ARG,
                        "%s: tensor \"%s\": element %lld is %g, which the file cannot"
                        " hold",
                        path, w->tensor[i].name, (long long)k, value);
    }
  return 0;
}

int ts_weights_write(const ts_weights *w, const char *path, ts_dtype dtype)
{
  ts_json_writer *json = NULL;
  ts_aside aside = {0};
  int status = check_values(w, path, dtype);
  if (status) return status;
  TS_TRY_GOTO(status, ts_json_writer_create(&json), done);
  put_header(json, w, dtype);
  const char *header = ts_json_writer_text(json);
  if (!header) {
    status = tsi_fail(TS_ERR_MEMORY, "%s: no memory for the header", path);
    goto done;
  }
  TS_TRY_GOTO(status, ts_aside_open(path, &aside), done);
  write_all(aside.file, w, header, dtype);
  status = ts_aside_commit(&aside);
done:
  ts_aside_abandon(&aside);
  ts_json_writer_destroy(&json);
  return status;
}
