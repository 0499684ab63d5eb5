/* SPDX-License-Identifier: MIT
 *
 * The only door to HDF5.  Objects are named by path; types and shapes are those that trajectories
 * and checkpoints need.  One rank has a file open; where raw data lie is known (tsi_h5_spans), and
 * other ranks write theirs there without HDF5.  HDF5 is not thread-safe: one thread at a time.
 *
 * Datasets either have a fixed size (written once) or grow along their first dimension by one row
 * at a time.  A growing dataset keeps several rows in one chunk, and HDF5's own cache of chunks is
 * off, so a new row inside a chunk is one write of data and one small rewrite of the dataset's
 * header. Only a row that begins a new chunk changes more (see md/h5_undo.h).
 *
 * All functions return 0, TS_ERR_HDF5 with HDF5's own reason, or TS_ERR_MEMORY. */
#ifndef TS_H5_H
#define TS_H5_H

#include "md/h5_type.h"
#include "runtime/types.h"

typedef struct tsi_h5 tsi_h5;

enum { TSI_H5_RANK = 3 };

/** A part of the file that holds raw data. */
typedef struct tsi_h5_span {
  int64_t offset, size;
} tsi_h5_span;

/** Shape and place of what one call touches; unused dimensions are 1. */
typedef struct tsi_h5_block {
  int rank;
  int64_t dim[TSI_H5_RANK];   /* of the whole dataset (growing ones: dim[0] is ignored) */
  int64_t start[TSI_H5_RANK]; /* of the part that is given or taken */
  int64_t count[TSI_H5_RANK];
} tsi_h5_block;

/** A block that is the whole of a dataset of these dimensions. */
tsi_h5_block tsi_h5_whole(int rank, int64_t dim0, int64_t dim1, int64_t dim2);

/** Create a file, replacing an old one; `user_block` bytes in front are left to the caller (0, or a
 * power of two from 512).
 * \param [out] out  Owned by the caller: tsi_h5_close(); NULL on failure. */
int tsi_h5_create(const char *path, int64_t user_block, tsi_h5 **out);

/** Open a file for reading and writing; other programs may read it meanwhile. */
int tsi_h5_open(const char *path, tsi_h5 **out);

/** Hand everything to the operating system. */
int tsi_h5_flush(tsi_h5 *file);

/** Accepts NULL, sets *file to NULL. */
int tsi_h5_close(tsi_h5 **file);

/** A file could not be closed, as on a full disk.  HDF5 then may crash when MPI or the process ends
 * (1.10: H5F__close_cb): end the process by ts_world_abort(). */
bool tsi_h5_is_broken(void);

bool tsi_h5_has(tsi_h5 *file, const char *path);
int tsi_h5_group(tsi_h5 *file, const char *path);
/** A second name for an object. */
int tsi_h5_link(tsi_h5 *file, const char *target, const char *path);

/** Attributes of an object: text, several texts, int32 numbers; count 0: a single one, not a list.
 */
int tsi_h5_put_text(tsi_h5 *file, const char *path, const char *name, const char *text);
int tsi_h5_put_texts(tsi_h5 *file, const char *path, const char *name, int count,
                     const char *const *texts);
int tsi_h5_put_ints(tsi_h5 *file, const char *path, const char *name, int count,
                    const int32_t *values);

/** Create a dataset of fixed size and write a block of it; NULL: nothing yet. */
int tsi_h5_put(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
               const void *data);

/** Create a growing dataset of no rows, `depth` rows to a chunk. */
int tsi_h5_grow(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
                int64_t depth);

/** Write row `row` of a growing dataset, the first one behind its end; block->start[0] and count[0]
 * are ignored.  The operating system has the row when this returns. */
int tsi_h5_append(tsi_h5 *file, const char *path, tsi_h5_type type, int64_t row,
                  const tsi_h5_block *block, const void *data);

/** Set the number of rows of a growing dataset: cut it, or make room, the contents of which are
 * open.  `now`: the operating system knows it when this returns, not only after a flush. */
int tsi_h5_resize(tsi_h5 *file, const char *path, int64_t rows, bool now);

/** Shape of a dataset; block->start is 0 and count is dim. */
int tsi_h5_shape(tsi_h5 *file, const char *path, tsi_h5_block *out);

/** Rows in a chunk of a growing dataset, and how many values of its second dimension. */
int tsi_h5_chunk(tsi_h5 *file, const char *path, int64_t *depth, int64_t *width);

/** Read a block (start, count) of a dataset, converted to `type`. */
int tsi_h5_get(tsi_h5 *file, const char *path, tsi_h5_type type, const tsi_h5_block *block,
               void *data);

/** Where a dataset's raw data lie in the file: its chunks from the one of row `first` on, or the
 * whole of a fixed dataset.
 * \param [in,out] spans  [*count] array from malloc (NULL at first); the new ones are added. */
int tsi_h5_spans(tsi_h5 *file, const char *path, int64_t first, tsi_h5_span **spans,
                 int64_t *count);

#endif
