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
 * only those frames change HDF5's tables: before them the undo copy is made.  Within a chunk a
 * frame's data are written first and the number of rows of each dataset behind them, that of
 * `position` last, because readers count frames there. */
#include "md/h5.h"
#include "md/h5_undo.h"
#include "md/trajectory_impl.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/file.h"
#include "runtime/log.h"
#include "runtime/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "/particles/trajectory"
#define STEP GROUP "/position/step"
#define TIME GROUP "/position/time"
#define KJ_PER_MOL (TS_ELEMENTARY_CHARGE * 6.02214076e23 / 1000.0) /* in one eV */

enum {
  CHUNK_BYTES = 1 << 20, /* about so much of the positions in a chunk */
  DEEPEST = 256          /* frames in a chunk, at most; always of the small datasets */
};

typedef struct h5md {
  ts_trajectory base;
  tsi_h5 *file;
  int64_t frames, depth; /* frames in the file, frames in a chunk of the large datasets */
  tsi_h5_span *spans;    /* [nspans] raw data in the file; owned */
  int64_t nspans;
  double (*force)[3]; /* [n,3] in the file's unit; owned */
} h5md;

/* ---- the datasets that grow ---- */

typedef enum element {
  EDGES,
  IMAGE,
  VELOCITY,
  FORCE,
  POTENTIAL,
  KINETIC,
  TEMPERATURE,
  PRESSURE,
  STRESS,
  POSITION, /* last: see above */
  ELEMENTS
} element;

static const struct {
  const char *group, *unit;
  tsi_h5_type type;
  char shape; /* a: [N,3] of the atoms; m: [3,3]; s: one number */
} elements[ELEMENTS] = {
    [EDGES] = {GROUP "/box/edges", "Angstrom", TSI_H5_DOUBLE, 'm'},
    [IMAGE] = {GROUP "/image", NULL, TSI_H5_INT32, 'a'},
    [VELOCITY] = {GROUP "/velocity", "Angstrom fs-1", TSI_H5_DOUBLE, 'a'},
    [FORCE] = {GROUP "/force", "kJ mol-1 Angstrom-1", TSI_H5_DOUBLE, 'a'},
    [POTENTIAL] = {"/observables/potential_energy", "eV", TSI_H5_DOUBLE, 's'},
    [KINETIC] = {"/observables/kinetic_energy", "eV", TSI_H5_DOUBLE, 's'},
    [TEMPERATURE] = {"/observables/temperature", "K", TSI_H5_DOUBLE, 's'},
    [PRESSURE] = {"/observables/pressure", "bar", TSI_H5_DOUBLE, 's'},
    [STRESS] = {"/observables/stress", "eV Angstrom-3", TSI_H5_DOUBLE, 'm'},
    [POSITION] = {GROUP "/position", "Angstrom", TSI_H5_DOUBLE, 'a'},
};

static bool is_periodic(const ts_system *s)
{
  return s->cell.periodic[0] || s->cell.periodic[1] || s->cell.periodic[2];
}

static bool is_written(const h5md *t, const ts_system *s, element e)
{
  if (e == VELOCITY) return t->base.velocities;
  if (e == FORCE) return t->base.forces;
  if (e == EDGES) return is_periodic(s); /* a box would be taken for periodic */
  return true;
}

static const char *value_of(element e, char path[96])
{
  snprintf(path, 96, "%s/value", elements[e].group);
  return path;
}

/* The part of a row that this rank writes. */
static tsi_h5_block block_of(const h5md *t, char shape)
{
  const tsi_rows *rows = &t->base.rows;
  if (shape == 's') return tsi_h5_whole(1, 1, 1, 1);
  if (shape == 'm') return tsi_h5_whole(3, 1, 3, 3);
  tsi_h5_block block = tsi_h5_whole(3, 1, t->base.natoms, 3);
  block.start[1] = rows->first;
  block.count[1] = rows->n;
  return block;
}

/* ---- a new file ---- */

static int put_about(tsi_h5 *file, const ts_system *s)
{
  static const int32_t version[2] = {1, 1}, dimension[1] = {3};
  const char *author = getenv("USER"), *boundary[3];
  for (int k = 0; k < 3; ++k)
    boundary[k] = s->cell.periodic[k] ? "periodic" : "none";
  TS_TRY(tsi_h5_group(file, "/h5md"));
  TS_TRY(tsi_h5_group(file, "/h5md/author"));
  TS_TRY(tsi_h5_group(file, "/h5md/creator"));
  TS_TRY(tsi_h5_group(file, "/particles"));
  TS_TRY(tsi_h5_group(file, GROUP));
  TS_TRY(tsi_h5_group(file, GROUP "/box"));
  TS_TRY(tsi_h5_group(file, "/observables"));
  TS_TRY(tsi_h5_put_ints(file, "/h5md", "version", 2, version));
  TS_TRY(tsi_h5_put_text(file, "/h5md/author", "name", author && *author ? author : "unknown"));
  TS_TRY(tsi_h5_put_text(file, "/h5md/creator", "name", "tessera"));
  TS_TRY(tsi_h5_put_text(file, "/h5md/creator", "version", PACKAGE_VERSION));
  TS_TRY(tsi_h5_put_ints(file, GROUP "/box", "dimension", 0, dimension));
  return tsi_h5_put_texts(file, GROUP "/box", "boundary", 3, boundary);
}

/* Elements, ids and masses in the order of the ids. */
static int put_atoms(const h5md *t, tsi_h5 *file, const ts_system *s)
{
  const tsi_rows *rows = &t->base.rows;
  int32_t *species = NULL;
  int64_t *id = NULL;
  double *mass = NULL;
  tsi_h5_block block = tsi_h5_whole(1, s->natoms, 1, 1);
  block.start[0] = rows->first;
  block.count[0] = rows->n;
  int status;
  TS_TRY_GOTO(status, TSI_NEW(species, s->n), done);
  TS_TRY_GOTO(status, TSI_NEW(id, s->n), done);
  TS_TRY_GOTO(status, TSI_NEW(mass, s->n), done);
  for (ts_lidx i = 0; i < s->n; ++i) {
    const ts_gidx k = s->gid[i] - rows->first;
    species[k] = s->z[i];
    id[k] = s->gid[i] + 1;
    mass[k] = s->mass[i] / TS_ATOMIC_MASS;
  }
  TS_TRY_GOTO(status, tsi_h5_put(file, GROUP "/species", TSI_H5_INT32, &block, species), done);
  TS_TRY_GOTO(status, tsi_h5_put(file, GROUP "/id", TSI_H5_INT64, &block, id), done);
  TS_TRY_GOTO(status, tsi_h5_put(file, GROUP "/mass", TSI_H5_DOUBLE, &block, mass), done);
  status = tsi_h5_put_text(file, GROUP "/mass", "unit", "u");
done:
  free(species);
  free(id);
  free(mass);
  return status;
}

static int put_element(const h5md *t, tsi_h5 *file, element e)
{
  char path[96], step[96], time[96];
  const tsi_h5_block block = block_of(t, elements[e].shape);
  snprintf(step, sizeof step, "%s/step", elements[e].group);
  snprintf(time, sizeof time, "%s/time", elements[e].group);
  TS_TRY(tsi_h5_group(file, elements[e].group));
  TS_TRY(tsi_h5_grow(file, value_of(e, path), elements[e].type, &block,
                     elements[e].shape == 'a' ? t->depth : DEEPEST));
  if (elements[e].unit) TS_TRY(tsi_h5_put_text(file, path, "unit", elements[e].unit));
  if (e == POSITION) return 0;
  TS_TRY(tsi_h5_link(file, STEP, step));
  return tsi_h5_link(file, TIME, time);
}

static int put_layout(const h5md *t, tsi_h5 *file, const ts_system *s)
{
  const tsi_h5_block one = tsi_h5_whole(1, 1, 1, 1);
  TS_TRY(put_about(file, s));
  TS_TRY(put_atoms(t, file, s));
  TS_TRY(put_element(t, file, POSITION));
  TS_TRY(tsi_h5_grow(file, STEP, TSI_H5_INT64, &one, DEEPEST));
  TS_TRY(tsi_h5_grow(file, TIME, TSI_H5_DOUBLE, &one, DEEPEST));
  TS_TRY(tsi_h5_put_text(file, TIME, "unit", "fs"));
  for (int e = 0; e < POSITION; ++e)
    if (is_written(t, s, (element)e)) TS_TRY(put_element(t, file, (element)e));
  return 0;
}

/* The empty file appears whole, in place of an old one. */
static int create(h5md *t, const ts_system *s)
{
  const char *path = t->base.path;
  const size_t size = strlen(path) + sizeof ".part";
  tsi_h5 *file = NULL;
  char *aside = malloc(size);
  if (!aside) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", path);
  snprintf(aside, size, "%s.part", path);
  int status = tsi_h5_create(aside, t->base.comm, 0, &file);
  if (!status) status = put_layout(t, file, s);
  const int closed = tsi_h5_close(&file);
  if (!status) status = closed;
  if (!status && t->base.rank == 0) {
    tsi_h5_undo_drop(path); /* of a file that is no more */
    status = tsi_file_sync(aside);
    if (!status) status = tsi_file_rename(aside, path);
  }
  free(aside);
  return status;
}

/* ---- all ranks ---- */

/* What rank 0 did alone, known to all before anyone goes on. */
static int share(const h5md *t, int status)
{
  if (t->base.ranks == 1) return status;
  int known = status;
  MPI_Bcast(&known, 1, MPI_INT, 0, t->base.comm);
  if (known && !status) return tsi_fail(known, "%s: the first rank has failed", t->base.path);
  return known;
}

/* Learn where the raw data lie, from the chunk of frame `first` on. */
static int learn_spans(h5md *t, const ts_system *s, int64_t first)
{
  char path[96];
  for (int e = 0; e < ELEMENTS; ++e)
    if (is_written(t, s, (element)e))
      TS_TRY(tsi_h5_spans(t->file, value_of((element)e, path), first, &t->spans, &t->nspans));
  TS_TRY(tsi_h5_spans(t->file, STEP, first, &t->spans, &t->nspans));
  return tsi_h5_spans(t->file, TIME, first, &t->spans, &t->nspans);
}

static int learn_all_spans(h5md *t, const ts_system *s)
{
  free(t->spans);
  t->spans = NULL;
  t->nspans = 0;
  TS_TRY(learn_spans(t, s, 0));
  TS_TRY(tsi_h5_spans(t->file, GROUP "/species", 0, &t->spans, &t->nspans));
  TS_TRY(tsi_h5_spans(t->file, GROUP "/id", 0, &t->spans, &t->nspans));
  return tsi_h5_spans(t->file, GROUP "/mass", 0, &t->spans, &t->nspans);
}

static int change_begin(h5md *t)
{
  TS_TRY(tsi_h5_flush(t->file));
  return share(t, t->base.rank ? 0 : tsi_h5_undo_begin(t->base.path, t->spans, &t->nspans));
}

static int change_end(h5md *t)
{
  TS_TRY(tsi_h5_flush(t->file));
  return share(t, t->base.rank ? 0 : tsi_h5_undo_end(t->base.path));
}

/* ---- writing ---- */

static const void *data_of(const h5md *t, const ts_frame *frame, element e, double room[9])
{
  static const ts_frame_values nothing = {NAN, NAN, NAN, NAN, {NAN, NAN, NAN, NAN, NAN, NAN}};
  static const int voigt[9] = {0, 5, 4, 5, 1, 3, 4, 3, 2};
  const ts_frame_values *values = frame->values ? frame->values : &nothing;
  switch (e) {
    case EDGES:
      return frame->system->cell.h;
    case IMAGE:
      return t->base.rows.image;
    case VELOCITY:
      return t->base.rows.v;
    case FORCE:
      return t->force;
    case POTENTIAL:
      return &values->potential_energy;
    case KINETIC:
      return &values->kinetic_energy;
    case TEMPERATURE:
      return &values->temperature;
    case PRESSURE:
      return &values->pressure;
    case STRESS:
      for (int k = 0; k < 9; ++k)
        room[k] = values->stress[voigt[k]];
      return room;
    case POSITION:
    case ELEMENTS:
      break;
  }
  return t->base.rows.x;
}

static int append(h5md *t, const ts_frame *frame)
{
  char path[96];
  double room[9];
  const tsi_h5_block one = tsi_h5_whole(1, 1, 1, 1);
  TS_TRY(tsi_h5_append(t->file, STEP, TSI_H5_INT64, t->frames, &one, &frame->step));
  TS_TRY(tsi_h5_append(t->file, TIME, TSI_H5_DOUBLE, t->frames, &one, &frame->time));
  for (int e = 0; e < ELEMENTS; ++e) {
    const tsi_h5_block block = block_of(t, elements[e].shape);
    if (is_written(t, frame->system, (element)e))
      TS_TRY(tsi_h5_append(t->file, value_of((element)e, path), elements[e].type, t->frames, &block,
                           data_of(t, frame, (element)e, room)));
  }
  return 0;
}

static int write_frame(ts_trajectory *trajectory, const ts_frame *frame)
{
  h5md *t = (h5md *)trajectory;
  const bool begins = t->frames % t->depth == 0;
  if (t->force)
    for (ts_lidx i = 0; i < t->base.rows.n; ++i)
      for (int k = 0; k < 3; ++k)
        t->force[i][k] = t->base.rows.f[i][k] * KJ_PER_MOL;
  if (begins) TS_TRY(change_begin(t));
  TS_TRY(append(t, frame));
  if (begins) TS_TRY(change_end(t));
  if (begins) TS_TRY(learn_spans(t, frame->system, t->frames));
  ++t->frames;
  return 0;
}

static int sync_file(ts_trajectory *trajectory)
{
  h5md *t = (h5md *)trajectory;
  TS_TRY(tsi_h5_flush(t->file));
  return share(t, t->base.rank ? 0 : tsi_file_sync(t->base.path));
}

static int close_file(ts_trajectory *trajectory)
{
  h5md *t = (h5md *)trajectory;
  int status = t->file ? sync_file(trajectory) : 0;
  const int closed = tsi_h5_close(&t->file);
  if (!status) status = closed;
  free(t->spans);
  free(t->force);
  tsi_trajectory_end(trajectory);
  return status;
}

static const tsi_trajectory_ops ops = {write_frame, sync_file, close_file};

/* ---- going on ---- */

static int other_run(const h5md *t, const char *what)
{
  return tsi_fail(TS_ERR_INPUT, "%s: it is not this run's trajectory (%s); move it away",
                  t->base.path, what);
}

/* The same atoms and the same datasets as this run would write. */
static int check_run(h5md *t, const ts_system *s)
{
  char path[96];
  tsi_h5_block shape, mine = tsi_h5_whole(1, s->natoms, 1, 1);
  if (!tsi_h5_has(t->file, GROUP "/species") || !tsi_h5_has(t->file, STEP))
    return other_run(t, "another layout");
  TS_TRY(tsi_h5_shape(t->file, GROUP "/species", &shape));
  if (shape.rank != 1 || shape.dim[0] != s->natoms) return other_run(t, "number of atoms");
  int32_t *species = NULL;
  TS_TRY(TSI_NEW(species, s->n));
  mine.start[0] = t->base.rows.first;
  mine.count[0] = t->base.rows.n;
  int status = tsi_h5_get(t->file, GROUP "/species", TSI_H5_INT32, &mine, species);
  for (ts_lidx i = 0; i < s->n && !status; ++i)
    if (species[s->gid[i] - t->base.rows.first] != s->z[i]) status = other_run(t, "elements");
  free(species);
  for (int e = 0; e < ELEMENTS && !status; ++e)
    if (tsi_h5_has(t->file, value_of((element)e, path)) != is_written(t, s, (element)e))
      status = other_run(t, path);
  return status;
}

/* Frames with increasing steps up to `resume`, as far as every dataset has them. */
static int count_frames(h5md *t, const ts_system *s, int64_t resume)
{
  char path[96];
  tsi_h5_block shape, least;
  TS_TRY(tsi_h5_shape(t->file, STEP, &least));
  for (int e = 0; e < ELEMENTS; ++e) {
    if (!is_written(t, s, (element)e)) continue;
    TS_TRY(tsi_h5_shape(t->file, value_of((element)e, path), &shape));
    if (shape.dim[0] < least.dim[0]) least.dim[0] = least.count[0] = shape.dim[0];
  }
  int64_t *step = NULL;
  TS_TRY(TSI_NEW(step, least.dim[0]));
  int status = least.dim[0] ? tsi_h5_get(t->file, STEP, TSI_H5_INT64, &least, step) : 0;
  for (t->frames = 0; !status && t->frames < least.dim[0]; ++t->frames) {
    if (step[t->frames] > resume || step[t->frames] <= t->base.last_step) break;
    t->base.last_step = step[t->frames];
  }
  free(step);
  return status;
}

/* Drop what lies behind the frames that stay. */
static int cut(h5md *t, const ts_system *s)
{
  char path[96];
  TS_TRY(change_begin(t));
  for (int e = 0; e < ELEMENTS; ++e)
    if (is_written(t, s, (element)e))
      TS_TRY(tsi_h5_cut(t->file, value_of((element)e, path), t->frames));
  TS_TRY(tsi_h5_cut(t->file, STEP, t->frames));
  TS_TRY(tsi_h5_cut(t->file, TIME, t->frames));
  TS_TRY(change_end(t));
  return learn_all_spans(t, s);
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

static int go_on(h5md *t, const ts_system *s, int64_t resume)
{
  TS_TRY(check_run(t, s));
  TS_TRY(tsi_h5_depth(t->file, GROUP "/position/value", &t->depth));
  TS_TRY(count_frames(t, s, resume));
  TS_TRY(learn_all_spans(t, s));
  return cut(t, s);
}

static int open_file(h5md *t, const ts_trajectory_params *params, const ts_system *s)
{
  const bool resumes = tsi_trajectory_resumes(&t->base, params);
  if (t->base.forces) TS_TRY(TSI_NEW(t->force, s->n));
  t->depth = DEEPEST;
  while (t->depth > 1 && t->depth * s->natoms * (int64_t)sizeof *s->x > CHUNK_BYTES)
    t->depth /= 2;
  if (resumes)
    TS_TRY(share(t, t->base.rank ? 0 : restore(t)));
  else
    TS_TRY(share(t, create(t, s)));
  TS_TRY(tsi_h5_open(t->base.path, t->base.comm, &t->file));
  return resumes ? go_on(t, s, params->resume) : learn_all_spans(t, s);
}

int tsi_h5md_open(MPI_Comm comm, const ts_trajectory_params *params, const ts_system *system,
                  ts_trajectory **out)
{
  *out = NULL;
  h5md *t = calloc(1, sizeof *t);
  if (!t) return tsi_fail(TS_ERR_MEMORY, "%s: no memory to open it", params->path);
  t->base.ops = &ops;
  int status = tsi_trajectory_begin(&t->base, comm, params, system);
  if (!status) status = open_file(t, params, system);
  if (status) {
    tsi_h5_close(&t->file);
    close_file(&t->base);
    return status;
  }
  *out = &t->base;
  return 0;
}
