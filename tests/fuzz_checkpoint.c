/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: checkpoints.  An input that begins with 'r' is a file as it stands, which the
 * checksum turns away; any other becomes the index (up to a NUL byte) and the data of a file whose
 * seal is in order, so that everything behind the checksum is reached.
 *
 * fuzz-sources: md/checkpoint.c md/checkpoint_atoms.c md/checkpoint_read.c md/system.c
 * fuzz-sources: md/elements.c neighbor/cell.c comm/blocks.c comm/share.c comm/sparse.c comm/world.c
 * fuzz-sources: runtime/crc64.c runtime/number.c runtime/memory.c runtime/log.c runtime/error.c
 * fuzz-needs: mpi
 * fuzz-libs: -lm */
#include "md/checkpoint_impl.h"
#include "runtime/crc64.h"
#include "runtime/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ts_ranks alone = {.comm = MPI_COMM_NULL, .size = 1, .hosted = 1};

enum { BLOCK = 4096 };

/* A sealed file of an index and data; its size. */
static size_t compose(const uint8_t *data, size_t size, char *file)
{
  const uint8_t *nul = memchr(data, 0, size);
  size_t index = nul ? (size_t)(nul - data) : size, lines = 0;
  for (size_t i = 0; i < index; ++i)
    lines += data[i] == '\n';
  const size_t rest = nul ? size - index - 1 : 0, bytes = BLOCK + rest;
  memset(file, 0, BLOCK);
  const int head = snprintf(file, BLOCK, "%sblock %d\nbytes %zu%s%016d\narrays %zu\n",
                            TSI_CHECKPOINT_MAGIC, BLOCK, bytes, TSI_CHECKPOINT_CRC, 0, lines);
  if (index > BLOCK - (size_t)head) index = BLOCK - (size_t)head;
  memcpy(file + head, data, index);
  if (rest) memcpy(file + BLOCK, nul + 1, rest);
  tsi_crc64 crc;
  char digits[17];
  tsi_crc64_begin(&crc);
  tsi_crc64_add(&crc, file, bytes);
  snprintf(digits, sizeof digits, "%016lx", (unsigned long)tsi_crc64_value(&crc));
  memcpy(strstr(file, TSI_CHECKPOINT_CRC) + strlen(TSI_CHECKPOINT_CRC), digits, 16);
  return bytes;
}

static void use(const ts_checkpoint *cp)
{
  ts_system *s = NULL;
  double values[9];
  int64_t whole[4];
  if (ts_checkpoint_step(cp) < 0 || !isfinite(ts_checkpoint_time(cp))) abort();
  int status = ts_checkpoint_get_system(cp, &s);
  if (status != 0 && status != TS_ERR_INPUT) abort();
  if (s && ts_system_check(s)) abort();
  if (s) {
    double(*f)[3] = calloc((size_t)s->n, sizeof *f);
    status = ts_checkpoint_get_atoms_double(cp, s, "f", 3, &f[0][0]);
    if (status != 0 && status != TS_ERR_INPUT) abort();
    free(f);
  }
  ts_system_destroy(&s);
  if (!ts_checkpoint_get_double(cp, "cell", 9, values) && !isfinite(values[8])) abort();
  if (!ts_checkpoint_get_int64(cp, "seed", 1, whole) && !ts_checkpoint_has(cp, "seed")) abort();
  status = ts_checkpoint_expect_text(cp, "model", "m", "hint");
  if (status != 0 && status != TS_ERR_INPUT) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char path[64];
  ts_checkpoint *cp = NULL;
  char *file = malloc(BLOCK + size + 1);
  const bool raw = size && data[0] == 'r';
  const size_t bytes = raw ? size - 1 : compose(data, size, file);
  if (raw) memcpy(file, data + 1, bytes);
  const int fd = memfd_create("checkpoint", 0);
  if (!file || fd < 0 || write(fd, file, bytes) != (ssize_t)bytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int status = ts_checkpoint_read_file(&alone, path, &cp);
  if (status != 0 && status != TS_ERR_INPUT) abort();
  if ((status == 0) != (cp != NULL)) abort();
  if (cp) use(cp);
  ts_checkpoint_destroy(&cp);
  close(fd);
  free(file);
  return 0;
}
