/* SPDX-License-Identifier: MIT
 *
 * What the parts of a checkpoint share: the arrays in memory (checkpoint.c) and the file
 * (checkpoint_write.c, checkpoint_read.c).  The file is HDF5; in front of it, in the user block of
 * HDF5, stands the seal:
 *
 *   tessera checkpoint 1
 *   block 4096                  size of the user block
 *   bytes 123456                size of the file
 *   crc64 0123456789abcdef      of the whole file, with these 16 digits as zeros
 *   arrays 12
 *   x double 632 3 16384        name, type, rows, width, offset of the data (little-endian)
 *   ...                         then NUL bytes up to the end of the block
 *
 * The reader needs nothing but the seal. */
#ifndef TS_CHECKPOINT_IMPL_H
#define TS_CHECKPOINT_IMPL_H

#include "md/checkpoint.h"
#include "md/h5_type.h"

#define TSI_CHECKPOINT_MAGIC "tessera checkpoint 1\n"
#define TSI_CHECKPOINT_CRC "\ncrc64 "

enum {
  TSI_CHECKPOINT_ARRAYS = 256,    /* at most */
  TSI_CHECKPOINT_FIRST = 512,     /* smallest user block: holds the first lines */
  TSI_CHECKPOINT_BLOCK = 1 << 16, /* largest one: a line is shorter than 128 characters */
  TSI_CHECKPOINT_KEPT = 100       /* files kept, at most */
};

/** Names of the types in the seal, by tsi_h5_type. */
extern const char *const tsi_checkpoint_types[4];

typedef struct tsi_checkpoint_array {
  char name[TS_CHECKPOINT_NAME];
  tsi_h5_type type; /* text is TSI_H5_UINT8 without an end */
  int64_t rows, width;
  void *data; /* [rows,width]; owned */
} tsi_checkpoint_array;

struct ts_checkpoint {
  char *path; /* where it was read, or NULL; owned */
  int count;
  tsi_checkpoint_array array[TSI_CHECKPOINT_ARRAYS];
};

/** Bytes of one value. */
size_t tsi_checkpoint_size(tsi_h5_type type);

/** True for a name that an array may have. */
bool tsi_checkpoint_name(const char *name);

/** Add an array of zeros; data[0..rows*width) is the caller's to fill.
 * \return 0, TS_ERR_ARG or TS_ERR_MEMORY. */
int tsi_checkpoint_add(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t rows,
                       int64_t width, tsi_checkpoint_array **out);

/** Every double of an array is finite. */
bool tsi_checkpoint_finite(const tsi_checkpoint_array *array);

/** Read `size` bytes at `offset`.  \return 0 or TS_ERR_INPUT (also when the file ends early). */
int tsi_checkpoint_pread(const char *path, int fd, void *data, int64_t size, int64_t offset);

/** Checksum of a file of `bytes` bytes: `head` [block], then what stands behind it on the disk.
 * \return 0, TS_ERR_INPUT or TS_ERR_MEMORY. */
int tsi_checkpoint_sum(const char *path, int fd, const char *head, int64_t block, int64_t bytes,
                       uint64_t *out);

/** checkpoint.h5 -> checkpoint.3.h5; 0 is the path itself.  From malloc, or NULL. */
char *tsi_checkpoint_numbered(const char *path, int number);

#endif
