/* SPDX-License-Identifier: MIT
 *
 * What the parts of a checkpoint share: the arrays (checkpoint.c, checkpoint_atoms.c) and the file
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

#include "comm/peers.h"
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

enum { TSI_CHECKPOINT_TEXT = 4096 }; /* longest text, with its NUL */

typedef struct tsi_checkpoint_array {
  char name[TS_CHECKPOINT_NAME];
  tsi_h5_type type; /* text is TSI_H5_UINT8 with its NUL */
  int64_t rows, width;
  bool dealt;          /* of the atoms: each rank has a block of the rows */
  int64_t first, here; /* rows in data */
  void *data;          /* [here,width]; owned; NULL in a checkpoint that was read */
  int64_t offset;      /* in the file that was read */
} tsi_checkpoint_array;

struct ts_checkpoint {
  ts_ranks ranks;
  int64_t step;
  double time;
  char *path; /* where it was read, or NULL; owned */
  int fd;     /* of that file, or -1 */
  int count;
  tsi_checkpoint_array array[TSI_CHECKPOINT_ARRAYS];
};

/** Bytes of one value. */
size_t tsi_checkpoint_size(tsi_h5_type type);

/** True for a name that an array may have. */
bool tsi_checkpoint_name(const char *name);

/** Add an array without data.  \return 0 or TS_ERR_ARG. */
int tsi_checkpoint_add(ts_checkpoint *checkpoint, const char *name, tsi_h5_type type, int64_t rows,
                       int64_t width, tsi_checkpoint_array **out);

/** Take the last array out again. */
void tsi_checkpoint_drop(ts_checkpoint *checkpoint);

/** The array of that name, or NULL. */
const tsi_checkpoint_array *tsi_checkpoint_find(const ts_checkpoint *checkpoint, const char *name);

/** The array of that name if it has this type and shape.  \return 0 or TS_ERR_INPUT. */
int tsi_checkpoint_expect(const ts_checkpoint *checkpoint, const char *name, tsi_h5_type type,
                          int64_t rows, int64_t width, const tsi_checkpoint_array **out);

/** Rows of an array from the file.  Not collective.  \return 0 or TS_ERR_INPUT. */
int tsi_checkpoint_fetch(const ts_checkpoint *checkpoint, const tsi_checkpoint_array *array,
                         int64_t first, int64_t rows, void *out);

/** A text from the file.  Not collective.  \return 0 or TS_ERR_INPUT. */
int tsi_checkpoint_fetch_text(const ts_checkpoint *checkpoint, const char *name,
                              char out[TSI_CHECKPOINT_TEXT]);

/** Every double among these values is finite. */
bool tsi_checkpoint_finite(tsi_h5_type type, int64_t count, const void *data);

/** Read `size` bytes at `offset`.  \return 0 or TS_ERR_INPUT (also when the file ends early). */
int tsi_checkpoint_pread(const char *path, int fd, void *data, int64_t size, int64_t offset);

/** What bytes from .. to of a file of `bytes` bytes contribute to its checksum; those of the first
 * `block` are in `head`, the others on the disk.  \return 0, TS_ERR_INPUT or TS_ERR_MEMORY. */
int tsi_checkpoint_part(const char *path, int fd, const char *head, int64_t block, int64_t from,
                        int64_t to, int64_t bytes, uint64_t *out);

/** XOR of a word of each rank, on all.  Collective.  \return 0 or TS_ERR_MPI. */
int tsi_checkpoint_join(const ts_ranks *ranks, uint64_t *word);

/** checkpoint.h5 -> checkpoint.3.h5; 0 is the path itself.  From malloc, or NULL. */
char *tsi_checkpoint_numbered(const char *path, int number);

#endif
