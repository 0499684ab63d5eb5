/* SPDX-License-Identifier: MIT
 *
 * Identifiers live as long as one call: a file has a dozen datasets and gets a few rows a second,
 * so opening by name costs nothing that anyone could measure. */
#include "md/h5.h"

#include "runtime/error.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsi_h5 {
  hid_t id;
  char *path;
};

/* ---- errors ---- */

/* HDF5's reason for the newest failure.  It is noted when the failing call returns, because any
 * later one, such as closing a dataset, forgets it. */
static char reason[256];

/* From the innermost error outwards: keep the first.  Of a failed write HDF5 tells addresses and
 * the time of day, too; the system's own words are in quotes. */
static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *data)
{
  static const char words[] = "error message = '";
  const char *text = error->desc ? error->desc : "", *quoted = strstr(text, words);
  (void)data;
  if (n > 0) return 0;
  if (quoted) text = quoted + strlen(words);
  snprintf(reason, sizeof reason, "%.*s", (int)(quoted ? strcspn(text, "'") : strlen(text)), text);
  return 0;
}

static herr_t note(hid_t stack, void *data)
{
  return H5Ewalk2(stack, H5E_WALK_UPWARD, keep_first, data);
}

static int fail(const char *path, const char *object, const char *what)
{
  return tsi_fail(TS_ERR_HDF5, "%s%s%s: cannot %s: %s", path, *object ? ", " : "", object, what,
                  *reason ? reason : "no reason given");
}

/* ---- files ---- */

static hid_t access_list(void)
{
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  if (list < 0) return list;
  herr_t bad = H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  bad |= H5Pset_file_locking(list, 0, 1); /* readers may look while we write */
#endif
  if (bad < 0) {
    H5Pclose(list);
    return -1;
  }
  return list;
}

static hid_t creation_list(int64_t user_block)
{
  const hid_t list = H5Pcreate(H5P_FILE_CREATE);
  if (list >= 0 && user_block && H5Pset_userblock(list, (hsize_t)user_block) < 0) {
    H5Pclose(list);
    return -1;
  }
  return list;
}

static hid_t open_id(const char *path, bool create, int64_t user_block, hid_t access)
{
  if (!create) return H5Fopen(path, H5F_ACC_RDWR, access);
  const hid_t creation = creation_list(user_block);
  if (creation < 0) return creation;
  const hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
  H5Pclose(creation);
  return id;
}

static int open_file(const char *path, bool create, int64_t user_block, tsi_h5 **out)
{
  *out = NULL;
  *reason = '\0';
  H5Eset_auto2(H5E_DEFAULT, note, NULL);
  tsi_h5 *file = calloc(1, sizeof *file);
  if (!file || !(file->path = strdup(path))) {
    free(file);
    return tsi_fail(TS_ERR_MEMORY, "%s: no memory to open it", path);
  }
  const hid_t access = access_list();
  file->id = access < 0 ? access : open_id(path, create, user_block, access);
  int status = 0;
  if (file->id < 0) status = fail(path, "", create ? "create it" : "open it");
  if (access >= 0) H5Pclose(access);
  if (status) {
    tsi_h5_close(&file);
    return status;
  }
  *out = file;
  return 0;
}

int tsi_h5_create(const char *path, int64_t user_block, tsi_h5 **out)
{
  return open_file(path, true, user_block, out);
}

int tsi_h5_open(const char *path, tsi_h5 **out)
{
  return open_file(path, false, 0, out);
}

int tsi_h5_flush(tsi_h5 *file)
{
  return H5Fflush(file->id, H5F_SCOPE_LOCAL) < 0 ? fail(file->path, "", "flush it") : 0;
}

static bool broken;

bool tsi_h5_is_broken(void)
{
  return broken;
}

int tsi_h5_close(tsi_h5 **file)
{
  tsi_h5 *f = *file;
  if (!f) return 0;
  int status = 0;
  if (f->id >= 0 && H5Fclose(f->id) < 0) {
    status = fail(f->path, "", "close it");
    broken = true;
  }
  free(f->path);
  free(f);
  *file = NULL;
  return status;
}

/* ---- groups, links, attributes ---- */

bool tsi_h5_has(tsi_h5 *file, const char *path)
{
  char part[256];
  for (size_t end = 1; end < sizeof part; ++end) { /* every parent first, as HDF5 wants it */
    if (path[end] && path[end] != '/') continue;
    snprintf(part, sizeof part, "%.*s", (int)end, path);
    if (H5Lexists(file->id, part, H5P_DEFAULT) <= 0) return false;
    if (!path[end]) return true;
  }
  return false;
}

int tsi_h5_group(tsi_h5 *file, const char *path)
{
  const hid_t id = H5Gcreate2(file->id, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  return id < 0 || H5Gclose(id) < 0 ? fail(file->path, path, "create the group") : 0;
}

int tsi_h5_link(tsi_h5 *file, const char *target, const char *path)
{
  const herr_t bad = H5Lcreate_hard(file->id, target, file->id, path, H5P_DEFAULT, H5P_DEFAULT);
  return bad < 0 ? fail(file->path, path, "create the link") : 0;
}

/* An attribute of `count` values (a single one for 0) of memory and file type `type`. */
static int put_attribute(tsi_h5 *file, const char *path, const char *name, hid_t type, int count,
                         const void *data)
{
  const hsize_t dim = (hsize_t)count;
  const hid_t object = H5Oopen(file->id, path, H5P_DEFAULT);
  const hid_t space = count ? H5Screate_simple(1, &dim, NULL) : H5Screate(H5S_SCALAR);
  const hid_t id = object < 0 || space < 0
                       ? -1
                       : H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  int status = 0;
  if (id < 0 || H5Awrite(id, type, data) < 0) status = fail(file->path, path, "write an attribute");
  if (id >= 0) H5Aclose(id);
  if (space >= 0) H5Sclose(space);
  if (object >= 0) H5Oclose(object);
  return status;
}

/* Strings of variable length in UTF-8, because h5py shows others as bytes, which readers that look
 * for a unit by name do not find. */
static hid_t string_type(void)
{
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

int tsi_h5_put_text(tsi_h5 *file, const char *path, const char *name, const char *text)
{
  return tsi_h5_put_texts(file, path, name, 0, &text);
}

int tsi_h5_put_texts(tsi_h5 *file, const char *path, const char *name, int count,
                     const char *const *texts)
{
  const hid_t type = string_type();
  const int status = put_attribute(file, path, name, type, count, texts);
  H5Tclose(type);
  return status;
}

int tsi_h5_put_ints(tsi_h5 *file, const char *path, const char *name, int count,
                    const int32_t *values)
{
  return put_attribute(file, path, name, H5T_NATIVE_INT32, count, values);
}

/* ---- datasets ---- */

static hid_t native(tsi_h5_type type)
{
  switch (type) {
    case TSI_H5_DOUBLE:
      return H5T_NATIVE_DOUBLE;
    case TSI_H5_INT64:
      return H5T_NATIVE_INT64;
    case TSI_H5_INT32:
      return H5T_NATIVE_INT32;
    case TSI_H5_UINT8:
      return H5T_NATIVE_UINT8;
  }
  return -1;
}

tsi_h5_block tsi_h5_whole(int rank, int64_t dim0, int64_t dim1, int64_t dim2)
{
  return (tsi_h5_block){rank, {dim0, dim1, dim2}, {0, 0, 0}, {dim0, dim1, dim2}};
}

static void sizes(const int64_t *from, hsize_t *to)
{
  for (int k = 0; k < TSI_H5_RANK; ++k)
    to[k] = (hsize_t)from[k];
}

/* No time stamps, no fill values, space at once: equal contents give equal bytes. */
static hid_t dataset_list(void)
{
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(list, 0);
  H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
  return list;
}

static hid_t open_dataset(tsi_h5 *file, const char *path)
{
  const hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
  H5Pset_chunk_cache(list, 0, 0, 0.0);
  const hid_t id = H5Dopen2(file->id, path, list);
  H5Pclose(list);
  return id;
}

/* Move a block between memory and the open dataset. */
static herr_t transfer(hid_t dataset, tsi_h5_type type, const tsi_h5_block *block, void *get,
                       const void *put)
{
  hsize_t start[TSI_H5_RANK], count[TSI_H5_RANK];
  sizes(block->start, start);
  sizes(block->count, count);
  const hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(block->rank, count, NULL);
  herr_t bad = space < 0 || memory < 0 ? -1 : 0;
  if (!bad) bad = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  if (!bad && put) bad = H5Dwrite(dataset, native(type), memory, space, H5P_DEFAULT, put);
  if (!bad && get) bad = H5Dread(dataset, native(type), memory, space, H5P_DEFAULT, get);
  if (space >= 0) H5Sclose(space);
  if (memory >= 0) H5Sclose(memory);
  return bad;
}

static int create_dataset(tsi_h5 *file, const char *path, tsi_h5_type type, int rank,
                          const hsize_t *dim, const hsize_t *most, hid_t list, hid_t *out)
{
  const hid_t space = H5Screate_simple(rank, dim, most);
  *out = space < 0
             ? -1
             : H5Dcreate2(file->id, path, native(type), space, H5P_DEFAULT, list, H5P_DEFAULT);
  if (space >= 0) H5Sclose(space);
  H5Pclose(list);
  return *out < 0 ? fail(file->path, path, "create it") : 0;
}

int tsi_h5_put(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
               const void *data)
{
  hid_t id;
  hsize_t dim[TSI_H5_RANK];
  sizes(block->dim, dim);
  TS_TRY(create_dataset(file, path, type, block->rank, dim, NULL, dataset_list(), &id));
  const herr_t bad = data ? transfer(id, type, block, NULL, data) : 0;
  int status = bad < 0 ? fail(file->path, path, "write it") : 0;
  H5Dclose(id);
  return status;
}

int tsi_h5_grow(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
                int64_t depth)
{
  /* a chunk holds less than 4 GiB; larger rows are cut along the atoms */
  enum { WIDEST = 1 << 25 };
  hid_t id;
  hsize_t dim[TSI_H5_RANK], most[TSI_H5_RANK], chunk[TSI_H5_RANK];
  sizes(block->dim, dim);
  memcpy(most, dim, sizeof most);
  memcpy(chunk, dim, sizeof chunk);
  dim[0] = 0;
  most[0] = H5S_UNLIMITED;
  chunk[0] = (hsize_t)depth;
  if (chunk[1] > WIDEST) chunk[1] = WIDEST;
  const hid_t list = dataset_list();
  H5Pset_chunk(list, block->rank, chunk);
  TS_TRY(create_dataset(file, path, type, block->rank, dim, most, list, &id));
  H5Dclose(id);
  return 0;
}

/* Set the number of rows; the other dimensions stay. */
static herr_t set_rows(hid_t dataset, int64_t rows)
{
  hsize_t dim[TSI_H5_RANK];
  const hid_t space = H5Dget_space(dataset);
  if (space < 0) return -1;
  const bool fits = H5Sget_simple_extent_ndims(space) <= TSI_H5_RANK &&
                    H5Sget_simple_extent_dims(space, dim, NULL) > 0;
  H5Sclose(space);
  dim[0] = (hsize_t)rows;
  return fits ? H5Dset_extent(dataset, dim) : -1;
}

int tsi_h5_append(tsi_h5 *file, const char *path, tsi_h5_type type, int64_t row,
                  const tsi_h5_block *block, const void *data)
{
  tsi_h5_block at = *block;
  at.start[0] = row;
  at.count[0] = 1;
  const hid_t id = open_dataset(file, path);
  if (id < 0) return fail(file->path, path, "open it");
  herr_t bad = set_rows(id, row + 1);
  if (bad >= 0) bad = transfer(id, type, &at, NULL, data);
  if (bad >= 0) bad = H5Dflush(id);
  const int status = bad < 0 ? fail(file->path, path, "append to it") : 0;
  H5Dclose(id);
  return status;
}

int tsi_h5_resize(tsi_h5 *file, const char *path, int64_t rows, bool now)
{
  const hid_t id = open_dataset(file, path);
  if (id < 0) return fail(file->path, path, "open it");
  herr_t bad = set_rows(id, rows);
  if (bad >= 0 && now) bad = H5Dflush(id);
  const int status = bad < 0 ? fail(file->path, path, "resize it") : 0;
  H5Dclose(id);
  return status;
}

int tsi_h5_shape(tsi_h5 *file, const char *path, tsi_h5_block *out)
{
  hsize_t dim[TSI_H5_RANK] = {1, 1, 1};
  const hid_t id = open_dataset(file, path), space = id < 0 ? -1 : H5Dget_space(id);
  const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
  const bool fits =
      rank >= 1 && rank <= TSI_H5_RANK && H5Sget_simple_extent_dims(space, dim, NULL) == rank;
  int status = 0;
  if (!fits) status = fail(file->path, path, "read its shape");
  *out = tsi_h5_whole(rank, (int64_t)dim[0], (int64_t)dim[1], (int64_t)dim[2]);
  if (space >= 0) H5Sclose(space);
  if (id >= 0) H5Dclose(id);
  return status;
}

int tsi_h5_get(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
               void *data)
{
  const hid_t id = open_dataset(file, path);
  if (id < 0) return fail(file->path, path, "open it");
  const int status =
      transfer(id, type, block, data, NULL) < 0 ? fail(file->path, path, "read it") : 0;
  H5Dclose(id);
  return status;
}

/* ---- where raw data lie ---- */

static int add_span(tsi_h5_span **spans, int64_t *count, haddr_t offset, hsize_t size)
{
  if (offset == HADDR_UNDEF || !size) return 0;
  if ((*count & (*count - 1)) == 0) { /* room doubles at powers of two */
    tsi_h5_span *more = realloc(*spans, sizeof **spans * (size_t)(*count ? 2 * *count : 1));
    if (!more) return tsi_fail(TS_ERR_MEMORY, "no memory for %ld parts of a file", (long)*count);
    *spans = more;
  }
  (*spans)[(*count)++] = (tsi_h5_span){(int64_t)offset, (int64_t)size};
  return 0;
}

/* Shape of an open dataset's chunks. */
static int chunk_shape(tsi_h5 *file, const char *path, hid_t id, hsize_t chunk[TSI_H5_RANK])
{
  for (int k = 0; k < TSI_H5_RANK; ++k)
    chunk[k] = 1;
  const hid_t list = H5Dget_create_plist(id);
  const int rank = H5Pget_chunk(list, TSI_H5_RANK, chunk);
  H5Pclose(list);
  return rank < 1 ? fail(file->path, path, "read its chunks") : 0;
}

int tsi_h5_chunk(tsi_h5 *file, const char *path, int64_t *depth, int64_t *width)
{
  hsize_t chunk[TSI_H5_RANK];
  const hid_t id = open_dataset(file, path);
  if (id < 0) return fail(file->path, path, "open it");
  const int status = chunk_shape(file, path, id, chunk);
  *depth = (int64_t)chunk[0];
  *width = (int64_t)chunk[1];
  H5Dclose(id);
  return status;
}

/* The chunks of all rows from `first` on. */
static int chunk_spans(tsi_h5 *file, const char *path, hid_t id, const tsi_h5_block *shape,
                       int64_t first, tsi_h5_span **spans, int64_t *count)
{
  hsize_t chunk[TSI_H5_RANK], at[TSI_H5_RANK], size = 0;
  TS_TRY(chunk_shape(file, path, id, chunk));
  const hsize_t rows = (hsize_t)shape->dim[0], columns = (hsize_t)shape->dim[1];
  for (at[0] = (hsize_t)first / chunk[0] * chunk[0]; at[0] < rows; at[0] += chunk[0])
    for (at[1] = at[2] = 0; at[1] < columns; at[1] += chunk[1]) {
      unsigned filters;
      haddr_t offset = HADDR_UNDEF;
      if (H5Dget_chunk_info_by_coord(id, at, &filters, &offset, &size) < 0)
        return fail(file->path, path, "find its chunks");
      TS_TRY(add_span(spans, count, offset, size));
    }
  return 0;
}

int tsi_h5_spans(tsi_h5 *file, const char *path, int64_t first, tsi_h5_span **spans, int64_t *count)
{
  tsi_h5_block shape;
  TS_TRY(tsi_h5_shape(file, path, &shape));
  const hid_t id = open_dataset(file, path);
  if (id < 0) return fail(file->path, path, "open it");
  const hid_t list = H5Dget_create_plist(id);
  const H5D_layout_t layout = H5Pget_layout(list);
  H5Pclose(list);
  const int status = layout == H5D_CHUNKED
                         ? chunk_spans(file, path, id, &shape, first, spans, count)
                         : add_span(spans, count, H5Dget_offset(id), H5Dget_storage_size(id));
  H5Dclose(id);
  return status;
}
