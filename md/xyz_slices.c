/* SPDX-License-Identifier: MIT
 *
 * Reading a structure on many ranks.  Lines differ in length, so where a rank's first line begins
 * is found by counting: a window of the file is dealt to the ranks in pieces, each counts the line
 * ends of its piece, and who meets a line that some rank begins with notes the offset.  Windows
 * follow until all are found, so a long trajectory is not read beyond its first frame.  Then
 * everybody parses its own lines.  The file is read twice, once to count, but by all together. */
#include "md/xyz_impl.h"

#include "comm/blocks.h"
#include "comm/sparse.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 18 }; /* bytes of a window that one rank counts, at most */

typedef struct search {
  const ts_ranks *ranks;
  const tsi_xyz_reader *reader;
  ts_gidx natoms;
  char *piece;
  int64_t *start; /* [ranks] offset of a rank's first line; 0: not met by this one */
} search;

static int64_t count_ends(const char *text, int64_t size)
{
  int64_t ends = 0;
  const char *end = text + size;
  while (text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
    ++ends;
    ++text;
  }
  return ends;
}

/* The piece's line ends are those of lines after `before` others: note where ranks begin. */
static void note_starts(search *s, int64_t offset, int64_t size, int64_t before)
{
  const int ranks = s->ranks->size;
  const char *text = s->piece, *end = text + size;
  int rank = before < s->natoms ? ts_block_rank(s->natoms, ranks, before) + 1 : ranks;
  for (int64_t line = before; rank < ranks; ++text) {
    text = memchr(text, '\n', (size_t)(end - text));
    if (!text) return;
    ++line;
    for (; rank < ranks && ts_block_first(s->natoms, ranks, rank) == line; ++rank)
      s->start[rank] = offset + (text + 1 - s->piece);
  }
}

static int read_piece(const search *s, int64_t offset, int64_t size)
{
  for (int64_t at = 0; at < size;) {
    const ssize_t got =
        pread(fileno(s->reader->stream), s->piece + at, (size_t)(size - at), offset + at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return tsi_fail(TS_ERR_INPUT, "%s: cannot be read: %s", s->reader->origin,
                      got ? strerror(errno) : "it ends early");
    at += got;
  }
  return 0;
}

/* All ranks stay in step, also when one cannot read. */
static int search_windows(search *s)
{
  const int ranks = s->ranks->size, rank = s->ranks->first;
  const int64_t size = s->reader->size, last = ts_block_first(s->natoms, ranks, ranks - 1);
  int64_t at = s->reader->used, lines = 0; /* of the atoms, before the window */
  int status = 0;
  while (at < size && lines < last) {
    int64_t piece = (size - at) / ranks + 1;
    if (piece > PIECE) piece = PIECE;
    int64_t mine = size - at - rank * piece, counted[2] = {0, 0}, before = 0;
    if (mine > piece) mine = piece;
    if (mine > 0 && !status) status = read_piece(s, at + rank * piece, mine);
    if (mine > 0 && !status) counted[0] = counted[1] = count_ends(s->piece, mine);
    TS_TRY_MPI(MPI_Exscan(&counted[0], &before, 1, MPI_INT64_T, MPI_SUM, s->ranks->comm));
    if (rank == 0) before = 0; /* which MPI leaves undefined */
    if (counted[0]) note_starts(s, at + rank * piece, mine, lines + before);
    TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &counted[1], 1, MPI_INT64_T, MPI_SUM, s->ranks->comm));
    lines += counted[1];
    at += ranks * piece;
  }
  return tsi_ranks_agree(s->ranks, status);
}

/* Put the reader before this rank's first line: at the end of the file if there is none. */
static int find_start(const ts_ranks *ranks, tsi_xyz_reader *reader, ts_gidx natoms)
{
  search s = {.ranks = ranks, .reader = reader, .natoms = natoms};
  const ts_gidx first = ts_block_first(natoms, ranks->size, ranks->first);
  int status = TSI_NEW(s.start, ranks->size);
  if (!status) status = tsi_alloc(PIECE, 1, (void **)&s.piece);
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = search_windows(&s);
  if (!status && MPI_Allreduce(MPI_IN_PLACE, s.start, ranks->size, MPI_INT64_T, MPI_MAX,
                               ranks->comm) != MPI_SUCCESS)
    status = tsi_fail(TS_ERR_MPI, "%s: the ranks cannot share it", reader->origin);
  if (!status && first > 0) {
    const int64_t start = s.start[ranks->first] ? s.start[ranks->first] : reader->size;
    if (fseeko(reader->stream, start, SEEK_SET))
      status = tsi_fail(TS_ERR_INPUT, "%s: cannot be read: %s", reader->origin, strerror(errno));
    reader->number += first;
  }
  free(s.start);
  free(s.piece);
  return tsi_ranks_agree(ranks, status);
}

/* Line of the next frame, found by the last rank, which has read up to there. */
static int share_rest(const ts_ranks *ranks, int64_t next, int64_t *out)
{
  TS_TRY_MPI(MPI_Allreduce(&next, out, 1, MPI_INT64_T, MPI_MAX, ranks->comm));
  return 0;
}

static int read_slice(const ts_ranks *ranks, tsi_xyz_reader *reader, ts_system **out)
{
  const int rank = ranks->first;
  tsi_xyz_header header;
  ts_gidx natoms = 0;
  int64_t next = 0;
  int status = tsi_xyz_read_count(reader, &natoms);
  if (!status) {
    const ts_gidx first = ts_block_first(natoms, ranks->size, rank),
                  end = ts_block_first(natoms, ranks->size, rank + 1);
    status = tsi_xyz_read_header(reader, natoms, first, (ts_lidx)(end - first), &header, out);
  }
  TS_TRY(tsi_ranks_agree(ranks, status));
  TS_TRY(find_start(ranks, reader, natoms));
  status = tsi_xyz_read_rows(reader, &header, *out);
  if (!status && rank == ranks->size - 1) status = tsi_xyz_read_rest(reader, &next);
  TS_TRY(tsi_ranks_agree(ranks, status));
  TS_TRY(share_rest(ranks, next, &next));
  tsi_xyz_log_rest(reader->origin, next);
  return 0;
}

static int open_file(const char *path, tsi_xyz_reader *reader)
{
  struct stat info;
  reader->stream = fopen(path, "rbe");
  if (!reader->stream || fstat(fileno(reader->stream), &info))
    return tsi_fail(TS_ERR_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
  reader->size = info.st_size;
  return S_ISREG(info.st_mode) ? 0 : tsi_fail(TS_ERR_INPUT, "%s: not a regular file", path);
}

int ts_xyz_read(const ts_ranks *ranks, const char *path, ts_system **out)
{
  tsi_xyz_reader reader = {.origin = path};
  *out = NULL;
  int status = tsi_ranks_agree(ranks, open_file(path, &reader));
  if (!status && ranks->size == 1)
    status = tsi_xyz_read_stream(reader.stream, reader.size, path, out);
  else if (!status)
    status = read_slice(ranks, &reader, out);
  if (reader.stream) fclose(reader.stream);
  free(reader.line);
  if (status) ts_system_destroy(out);
  return status;
}
