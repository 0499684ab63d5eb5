/* SPDX-License-Identifier: MIT
 *
 * H5MD 1.1 trajectories (de Buyl, Colberg and Höfling, Comput. Phys. Commun. 185, 1546 (2014)):
 *
 *   /particles/trajectory/{position,image,velocity,force}/{step,time,value}   value [T,N,3]
 *   /particles/trajectory/box/edges/{step,time,value}                         value [T,3,3]
 *   /particles/trajectory/{species,id,mass}                                   [N]
 *   /observables/{potential_energy,kinetic_energy,temperature,pressure}/...   value [T]
 *   /observables/stress/...                                                   value [T,3,3]
 *
 * The group is called `trajectory` because MDAnalysis then needs no topology file, and forces are
 * in kJ/(mol Å) because it knows no eV.  Step and time are one dataset each, linked wherever a
 * reader looks for them.
 *
 * Chunks hold a power of two of frames, so that all datasets begin a chunk at the same frames, and
 * only those frames change HDF5's tables: before them the undo copy is made.
 *
 * One rank has the file open in HDF5; where a chunk of the atoms lies is known to all, and each
 * writes the rows of its block of ids there.  So no frame passes through one rank, the file is the
 * same to the byte for any number of ranks, and a rank that dies leaves what a kill leaves.  (HDF5
 * on MPI-IO would change its tables from several ranks, at moments of its own choice.)  Within a
 * chunk a frame's data are written first and the number of rows of each dataset behind them, that
 * of `position` last, because readers count frames there. */
#include "comm/share.h"
#include "comm/sparse.h"
#include "md/h5_undo.h"
#include "md/h5md_impl.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/file.h"
#include "runtime/log.h"
#include "runtime/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP TSI_H5MD_STEP
#define TIME TSI_H5MD_TIME
#define KJ_PER_MOL (TS_ELEMENTARY_CHARGE * 6.02214076e23 / 1000.0) /* in one eV */

enum { CHUNK_BYTES = 1 << 20 }; /* about so much of the positions in a chunk */

typedef tsi_h5md h5md;
typedef tsi_h5md_element element;

static bool is_first(const h5md *t)
{
  return t->base.ranks.first == 0;
}

static int agree(const h5md *t, int status)
{
  return tsi_ranks_agree(&t->base.ranks, status);
}

static bool has_atoms(const h5md *t, int e)
{
  return tsi_h5md_about[e].shape == 'a' && tsi_h5md_is_written(t, (element)e);
}

/* ---- rank 0: where raw data lie, and changes of the tables ---- */

/* Learn where the raw data lie, from the chunk of frame `first` on. */
static int learn_spans(h5md *t, int64_t first)
{
  char path[96];
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e)
    if (tsi_h5md_is_written(t, (element)e))
      TS_TRY(tsi_h5_spans(t->file, tsi_h5md_value((element)e, path), first, &t->spans, &t->nspans));
  TS_TRY(tsi_h5_spans(t->file, STEP, first, &t->spans, &t->nspans));
  return tsi_h5_spans(t->file, TIME, first, &t->spans, &t->nspans);
}

static int learn_all_spans(h5md *t)
{
  free(t->spans);
  t->spans = NULL;
  t->nspans = 0;
  TS_TRY(learn_spans(t, 0));
  for (int k = 0; k < TSI_H5MD_FIXED; ++k)
    TS_TRY(tsi_h5_spans(t->file, tsi_h5md_fixed_path[k], 0, &t->spans, &t->nspans));
  return 0;
}

/* The pieces of the atoms' chunks that hold frame `frame`, which is there. */
static int learn_pieces(h5md *t, int64_t frame)
{
  char path[96];
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e) {
    if (!has_atoms(t, e)) continue;
    tsi_h5_span *span = NULL;
    int64_t count = 0;
    const int status =
        tsi_h5_spans(t->file, tsi_h5md_value((element)e, path), frame, &span, &count);
    for (int64_t k = 0; k < count && k < TSI_H5MD_PIECES; ++k)
      t->shared.piece[e][k] = span[k].offset;
    free(span);
    if (status) return status;
  }
  return 0;
}

static int change_begin(h5md *t)
{
  TS_TRY(tsi_h5_flush(t->file));
  return tsi_h5_undo_begin(t->base.path, t->spans, &t->nspans);
}

static int change_end(h5md *t)
{
  TS_TRY(tsi_h5_flush(t->file));
  return tsi_h5_undo_end(t->base.path);
}

/* ---- rank 0: a frame without the atoms ---- */

static const void *data_of(const ts_frame *frame, element e, double room[9])
{
  static const ts_frame_values nothing = {NAN, NAN, NAN, NAN, {NAN, NAN, NAN, NAN, NAN, NAN}};
  static const int voigt[9] = {0, 5, 4, 5, 1, 3, 4, 3, 2};
  const ts_frame_values *values = frame->values ? frame->values : &nothing;
  switch (e) {
    case TSI_H5MD_EDGES:
      return frame->system->cell.h;
    case TSI_H5MD_POTENTIAL:
      return &values->potential_energy;
    case TSI_H5MD_KINETIC:
      return &values->kinetic_energy;
    case TSI_H5MD_TEMPERATURE:
      return &values->temperature;
    case TSI_H5MD_PRESSURE:
      return &values->pressure;
    default:
      break;
  }
  for (int k = 0; k < 9; ++k) /* the stress */
    room[k] = values->stress[voigt[k]];
  return room;
}

/* One more row of every dataset; `now`: known to the operating system, one after the other. */
static int append(h5md *t, const ts_frame *frame, bool now)
{
  char path[96];
  double room[9];
  const int64_t row = t->shared.frames;
  const tsi_h5_block one = tsi_h5_whole(1, 1, 1, 1);
  TS_TRY(tsi_h5_append(t->file, STEP, TSI_H5_INT64, row, &one, &frame->step));
  TS_TRY(tsi_h5_append(t->file, TIME, TSI_H5_DOUBLE, row, &one, &frame->time));
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e) {
    if (!tsi_h5md_is_written(t, (element)e)) continue;
    const tsi_h5_block block = tsi_h5md_block(t, tsi_h5md_about[e].shape);
    tsi_h5md_value((element)e, path);
    if (has_atoms(t, e))
      TS_TRY(tsi_h5_resize(t->file, path, row + 1, now));
    else
      TS_TRY(tsi_h5_append(t->file, path, tsi_h5md_about[e].type, row, &block,
                           data_of(frame, (element)e, room)));
  }
  return 0;
}

/* The first frame of a chunk: room for it, and where that is. */
static int open_chunk(h5md *t, const ts_frame *frame)
{
  TS_TRY(change_begin(t));
  TS_TRY(append(t, frame, false));
  return learn_pieces(t, t->shared.frames);
}

static int close_chunk(h5md *t)
{
  TS_TRY(change_end(t));
  return learn_spans(t, t->shared.frames);
}

/* ---- all ranks: the atoms of a frame ---- */

static const void *rows_of(const h5md *t, int e)
{
  const tsi_rows *rows = &t->base.rows;
  return e == TSI_H5MD_IMAGE      ? (const void *)rows->image
         : e == TSI_H5MD_VELOCITY ? (const void *)rows->v
         : e == TSI_H5MD_FORCE    ? (const void *)t->force
                                  : (const void *)rows->x;
}

/* This rank's rows of one dataset: in the pieces of the chunk that they fall into. */
static int write_rows(const h5md *t, int e)
{
  const tsi_h5md_shared *s = &t->shared;
  const int64_t row = 3 * (tsi_h5md_about[e].type == TSI_H5_INT32 ? 4 : 8),
                end = t->base.rows.first + t->base.rows.n;
  for (int64_t at = t->base.rows.first; at < end;) {
    const int64_t piece = at / s->width;
    int64_t next = (piece + 1) * s->width;
    if (next > end) next = end;
    const char *data = (const char *)rows_of(t, e) + (at - t->base.rows.first) * row;
    const int64_t offset =
        s->piece[e][piece] + (s->frames % s->depth * s->width + at % s->width) * row;
    TS_TRY(tsi_file_write(t->base.path, t->fd, data, (size_t)((next - at) * row), offset));
    at = next;
  }
  return 0;
}

static int write_atoms(h5md *t, bool sync)
{
  if (t->force)
    for (ts_lidx i = 0; i < t->base.rows.n; ++i)
      for (int k = 0; k < 3; ++k)
        t->force[i][k] = t->base.rows.f[i][k] * KJ_PER_MOL;
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e)
    if (has_atoms(t, e)) TS_TRY(write_rows(t, e));
  if (sync && fsync(t->fd) && errno != EINVAL)
    return tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", t->base.path, strerror(errno));
  return 0;
}

static int write_frame(ts_trajectory *trajectory, const ts_frame *frame)
{
  h5md *t = (h5md *)trajectory;
  const bool begins = t->shared.frames % t->shared.depth == 0, first = is_first(t);
  int status = 0;
  if (begins) {
    TS_TRY(agree(t, first ? open_chunk(t, frame) : 0));
    TS_TRY(ts_ranks_share(&t->base.ranks, t->shared.piece, sizeof t->shared.piece));
  }
  TS_TRY(agree(t, write_atoms(t, begins && !first))); /* rank 0's are forced with the tables */
  if (first) status = begins ? close_chunk(t) : append(t, frame, true);
  TS_TRY(agree(t, status));
  ++t->shared.frames;
  return 0;
}

static int sync_own(h5md *t)
{
  if (t->file) TS_TRY(tsi_h5_flush(t->file));
  if (t->fd >= 0 && fsync(t->fd) && errno != EINVAL)
    return tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", t->base.path, strerror(errno));
  return 0;
}

static int sync_file(ts_trajectory *trajectory)
{
  h5md *t = (h5md *)trajectory;
  return agree(t, sync_own(t));
}

/* Not collective: the part of this rank. */
static int close_own(h5md *t)
{
  int status = sync_own(t);
  const int closed = tsi_h5_close(&t->file);
  if (!status) status = closed;
  if (t->fd >= 0) close(t->fd);
  free(t->spans);
  free(t->force);
  tsi_trajectory_end(&t->base);
  return status;
}

static int close_file(ts_trajectory *trajectory)
{
  const ts_ranks ranks = trajectory->ranks;
  return tsi_ranks_agree(&ranks, close_own((h5md *)trajectory));
}

static const tsi_trajectory_ops ops = {write_frame, sync_file, close_file};

/* ---- going on ---- */

static int other_run(const h5md *t, const char *what)
{
  return tsi_fail(TS_ERR_INPUT, "%s: it is not this run's trajectory (%s); move it away",
                  t->base.path, what);
}

/* Rank 0: as many atoms and the same datasets as this run would write. */
static int check_layout(h5md *t)
{
  char path[96];
  tsi_h5_block shape;
  const char *species = tsi_h5md_fixed_path[TSI_H5MD_SPECIES];
  if (!tsi_h5_has(t->file, species) || !tsi_h5_has(t->file, STEP))
    return other_run(t, "another layout");
  TS_TRY(tsi_h5_shape(t->file, species, &shape));
  if (shape.rank != 1 || shape.dim[0] != t->base.natoms) return other_run(t, "number of atoms");
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e)
    if (tsi_h5_has(t->file, tsi_h5md_value((element)e, path)) != tsi_h5md_is_written(t, (element)e))
      return other_run(t, path);
  return 0;
}

/* Frames with increasing steps up to `resume`, as far as every dataset has them. */
static int count_frames(h5md *t, int64_t resume)
{
  char path[96];
  tsi_h5md_shared *s = &t->shared;
  tsi_h5_block shape, least;
  TS_TRY(tsi_h5_shape(t->file, STEP, &least));
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e) {
    if (!tsi_h5md_is_written(t, (element)e)) continue;
    TS_TRY(tsi_h5_shape(t->file, tsi_h5md_value((element)e, path), &shape));
    if (shape.dim[0] < least.dim[0]) least.dim[0] = least.count[0] = shape.dim[0];
  }
  int64_t *step = NULL;
  TS_TRY(TSI_NEW(step, least.dim[0]));
  int status = least.dim[0] ? tsi_h5_get(t->file, STEP, TSI_H5_INT64, &least, step) : 0;
  for (s->frames = 0; !status && s->frames < least.dim[0]; ++s->frames) {
    if (step[s->frames] > resume || step[s->frames] <= s->last_step) break;
    s->last_step = step[s->frames];
  }
  free(step);
  return status;
}

/* Drop what lies behind the frames that stay. */
static int cut(h5md *t)
{
  char path[96];
  TS_TRY(change_begin(t));
  for (int e = 0; e < TSI_H5MD_ELEMENTS; ++e)
    if (tsi_h5md_is_written(t, (element)e))
      TS_TRY(tsi_h5_resize(t->file, tsi_h5md_value((element)e, path), t->shared.frames, false));
  TS_TRY(tsi_h5_resize(t->file, STEP, t->shared.frames, false));
  TS_TRY(tsi_h5_resize(t->file, TIME, t->shared.frames, false));
  TS_TRY(change_end(t));
  return learn_all_spans(t);
}

static int restore(const h5md *t)
{
  bool applied;
  TS_TRY(tsi_h5_undo_apply(t->base.path, &applied));
  if (applied)
    ts_log(TS_LOG_WARNING, "%s: was being changed when the last run was killed; restored",
           t->base.path);
  return 0;
}

/* Rank 0: open the file; `resumes`: as this run's, put in order after a kill. */
static int open_first(h5md *t, bool resumes)
{
  const char *position = TSI_H5MD_GROUP "/position/value";
  tsi_h5_span *species = NULL;
  int64_t count = 0;
  if (resumes) TS_TRY(restore(t));
  TS_TRY(tsi_h5_open(t->base.path, &t->file));
  if (resumes) TS_TRY(check_layout(t));
  TS_TRY(tsi_h5_chunk(t->file, position, &t->shared.depth, &t->shared.width));
  if (t->base.natoms / t->shared.width >= TSI_H5MD_PIECES)
    return tsi_fail(TS_ERR_UNSUPPORTED, "%s: too many atoms for an H5MD file", t->base.path);
  int status = tsi_h5_spans(t->file, tsi_h5md_fixed_path[TSI_H5MD_SPECIES], 0, &species, &count);
  if (!status) t->shared.species = species[0].offset;
  free(species);
  return status ? status : learn_all_spans(t);
}

static int open_own(h5md *t)
{
  t->fd = open(t->base.path, O_RDWR | O_CLOEXEC);
  if (t->fd < 0)
    return tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", t->base.path, strerror(errno));
  return 0;
}

/* The elements of this rank's block are those in the file. */
static int check_species(const h5md *t)
{
  const tsi_rows *rows = &t->base.rows;
  int32_t *species = NULL;
  TS_TRY(TSI_NEW(species, rows->n));
  const size_t size = (size_t)rows->n * sizeof *species;
  int status = 0;
  if (rows->n && pread(t->fd, species, size,
                       t->shared.species + rows->first * (int64_t)sizeof *species) != (ssize_t)size)
    status = tsi_fail(TS_ERR_INPUT, "%s: cannot be read", t->base.path);
  for (ts_lidx i = 0; i < rows->n && !status; ++i)
    if (species[i] != rows->z[i]) status = other_run(t, "elements");
  free(species);
  return status;
}

/* Rank 0: keep the frames up to `resume`. */
static int go_on(h5md *t, int64_t resume)
{
  TS_TRY(count_frames(t, resume));
  TS_TRY(cut(t));
  const int64_t frames = t->shared.frames;
  return frames % t->shared.depth ? learn_pieces(t, frames - 1) : 0;
}

static int open_file(h5md *t, const ts_trajectory_params *params, const ts_system *s)
{
  const bool first = is_first(t);
  const int64_t frame = t->base.natoms * (int64_t)sizeof *s->x;
  bool resumes;
  TS_TRY(tsi_trajectory_resumes(&t->base, params, &resumes));
  if (t->base.forces) TS_TRY(agree(t, TSI_NEW(t->force, t->base.rows.n)));
  t->shared.depth = TSI_H5MD_DEEPEST;
  while (t->shared.depth > 1 && t->shared.depth * frame > CHUNK_BYTES)
    t->shared.depth /= 2;
  if (!resumes) TS_TRY(tsi_h5md_create(t, s));
  TS_TRY(agree(t, first ? open_first(t, resumes) : 0));
  TS_TRY(ts_ranks_share(&t->base.ranks, &t->shared, sizeof t->shared));
  TS_TRY(agree(t, open_own(t)));
  if (!resumes) return 0;
  TS_TRY(agree(t, check_species(t)));
  TS_TRY(agree(t, first ? go_on(t, params->resume) : 0));
  TS_TRY(ts_ranks_share(&t->base.ranks, &t->shared, sizeof t->shared));
  t->base.last_step = t->shared.last_step;
  return 0;
}

int tsi_h5md_open(const ts_ranks *ranks, const ts_trajectory_params *params,
                  const ts_system *system, ts_trajectory **out)
{
  *out = NULL;
  h5md *t = calloc(1, sizeof *t);
  int status = t ? 0 : tsi_fail(TS_ERR_MEMORY, "%s: no memory to open it", params->path);
  if (t) {
    const bool *periodic = system->cell.periodic;
    t->base.ops = &ops;
    t->fd = -1;
    t->is_periodic = periodic[0] || periodic[1] || periodic[2];
    t->shared.last_step = -1;
  }
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = tsi_trajectory_begin(&t->base, ranks, params, system);
  if (!status) status = open_file(t, params, system);
  if (!status) {
    *out = &t->base;
    return 0;
  }
  if (t) {
    char message[1024]; /* closing must not replace it */
    snprintf(message, sizeof message, "%s", ts_error_message());
    tsi_h5_close(&t->file);
    close_own(t);
    tsi_fail(status, "%s", message);
  }
  return status;
}
