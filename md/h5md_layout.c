/* SPDX-License-Identifier: MIT
 *
 * The datasets of an H5MD trajectory, and an empty file of them.  Rank 0 makes it with room for the
 * atoms' elements, ids and masses, and every rank writes those of its block. */
#include "md/h5md_impl.h"

#include "comm/share.h"
#include "comm/sparse.h"
#include "md/h5_undo.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/file.h"
#include "runtime/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP TSI_H5MD_GROUP

const struct tsi_h5md_about tsi_h5md_about[TSI_H5MD_ELEMENTS] = {
    [TSI_H5MD_EDGES] = {GROUP "/box/edges", "Angstrom", TSI_H5_DOUBLE, 'm'},
    [TSI_H5MD_IMAGE] = {GROUP "/image", NULL, TSI_H5_INT32, 'a'},
    [TSI_H5MD_VELOCITY] = {GROUP "/velocity", "Angstrom fs-1", TSI_H5_DOUBLE, 'a'},
    [TSI_H5MD_FORCE] = {GROUP "/force", "kJ mol-1 Angstrom-1", TSI_H5_DOUBLE, 'a'},
    [TSI_H5MD_POTENTIAL] = {"/observables/potential_energy", "eV", TSI_H5_DOUBLE, 's'},
    [TSI_H5MD_KINETIC] = {"/observables/kinetic_energy", "eV", TSI_H5_DOUBLE, 's'},
    [TSI_H5MD_TEMPERATURE] = {"/observables/temperature", "K", TSI_H5_DOUBLE, 's'},
    [TSI_H5MD_PRESSURE] = {"/observables/pressure", "bar", TSI_H5_DOUBLE, 's'},
    [TSI_H5MD_STRESS] = {"/observables/stress", "eV Angstrom-3", TSI_H5_DOUBLE, 'm'},
    [TSI_H5MD_POSITION] = {GROUP "/position", "Angstrom", TSI_H5_DOUBLE, 'a'},
};

const char *const tsi_h5md_fixed_path[TSI_H5MD_FIXED] = {GROUP "/species", GROUP "/id",
                                                         GROUP "/mass"};
static const tsi_h5_type fixed_type[TSI_H5MD_FIXED] = {TSI_H5_INT32, TSI_H5_INT64, TSI_H5_DOUBLE};

bool tsi_h5md_is_written(const tsi_h5md *t, tsi_h5md_element e)
{
  if (e == TSI_H5MD_VELOCITY) return t->base.velocities;
  if (e == TSI_H5MD_FORCE) return t->base.forces;
  if (e == TSI_H5MD_EDGES) return t->is_periodic; /* a box would be taken for periodic */
  return true;
}

const char *tsi_h5md_value(tsi_h5md_element e, char path[96])
{
  snprintf(path, 96, "%s/value", tsi_h5md_about[e].group);
  return path;
}

tsi_h5_block tsi_h5md_block(const tsi_h5md *t, char shape)
{
  if (shape == 's') return tsi_h5_whole(1, 1, 1, 1);
  if (shape == 'm') return tsi_h5_whole(3, 1, 3, 3);
  return tsi_h5_whole(3, 1, t->base.natoms, 3);
}

/* ---- rank 0: the layout ---- */

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

static int put_element(const tsi_h5md *t, tsi_h5 *file, tsi_h5md_element e)
{
  const struct tsi_h5md_about *about = &tsi_h5md_about[e];
  char path[96], step[96], time[96];
  const tsi_h5_block block = tsi_h5md_block(t, about->shape);
  snprintf(step, sizeof step, "%s/step", about->group);
  snprintf(time, sizeof time, "%s/time", about->group);
  TS_TRY(tsi_h5_group(file, about->group));
  TS_TRY(tsi_h5_grow(file, tsi_h5md_value(e, path), about->type, &block,
                     about->shape == 'a' ? t->shared.depth : TSI_H5MD_DEEPEST));
  if (about->unit) TS_TRY(tsi_h5_put_text(file, path, "unit", about->unit));
  if (e == TSI_H5MD_POSITION) return 0;
  TS_TRY(tsi_h5_link(file, TSI_H5MD_STEP, step));
  return tsi_h5_link(file, TSI_H5MD_TIME, time);
}

/* Room for elements, ids and masses. */
static int put_fixed(const tsi_h5md *t, tsi_h5 *file)
{
  const tsi_h5_block whole = tsi_h5_whole(1, t->base.natoms, 1, 1);
  for (int k = 0; k < TSI_H5MD_FIXED; ++k)
    TS_TRY(tsi_h5_put(file, tsi_h5md_fixed_path[k], fixed_type[k], &whole, NULL));
  return tsi_h5_put_text(file, tsi_h5md_fixed_path[TSI_H5MD_MASS], "unit", "u");
}

static int put_layout(const tsi_h5md *t, tsi_h5 *file, const ts_system *s)
{
  const tsi_h5_block one = tsi_h5_whole(1, 1, 1, 1);
  TS_TRY(put_about(file, s));
  TS_TRY(put_fixed(t, file));
  TS_TRY(put_element(t, file, TSI_H5MD_POSITION));
  TS_TRY(tsi_h5_grow(file, TSI_H5MD_STEP, TSI_H5_INT64, &one, TSI_H5MD_DEEPEST));
  TS_TRY(tsi_h5_grow(file, TSI_H5MD_TIME, TSI_H5_DOUBLE, &one, TSI_H5MD_DEEPEST));
  TS_TRY(tsi_h5_put_text(file, TSI_H5MD_TIME, "unit", "fs"));
  for (int e = 0; e < TSI_H5MD_POSITION; ++e)
    if (tsi_h5md_is_written(t, (tsi_h5md_element)e))
      TS_TRY(put_element(t, file, (tsi_h5md_element)e));
  return 0;
}

/* The file without the atoms, and where those belong. */
static int lay_out(const tsi_h5md *t, const ts_system *s, const char *path,
                   int64_t offset[TSI_H5MD_FIXED])
{
  tsi_h5 *file = NULL;
  tsi_h5_span *spans = NULL;
  int64_t count = 0;
  unlink(path); /* left by a kill */
  TS_TRY(tsi_h5_create(path, 0, &file));
  int status = put_layout(t, file, s);
  for (int k = 0; k < TSI_H5MD_FIXED && !status; ++k)
    status = tsi_h5_spans(file, tsi_h5md_fixed_path[k], 0, &spans, &count);
  for (int k = 0; k < TSI_H5MD_FIXED && !status; ++k)
    offset[k] = spans[k].offset;
  free(spans);
  const int closed = tsi_h5_close(&file);
  return status ? status : closed;
}

/* ---- all ranks ---- */

static int write_atoms(const tsi_rows *rows, const char *path, int fd,
                       const int64_t offset[TSI_H5MD_FIXED], int32_t *species, int64_t *id,
                       double *mass)
{
  const size_t n = (size_t)rows->n;
  for (size_t i = 0; i < n; ++i) {
    species[i] = rows->z[i];
    id[i] = rows->first + (int64_t)i + 1;
    mass[i] = rows->mass[i] / TS_ATOMIC_MASS;
  }
  TS_TRY(tsi_file_write(path, fd, species, n * sizeof *species,
                        offset[TSI_H5MD_SPECIES] + rows->first * (int64_t)sizeof *species));
  TS_TRY(tsi_file_write(path, fd, id, n * sizeof *id,
                        offset[TSI_H5MD_ID] + rows->first * (int64_t)sizeof *id));
  return tsi_file_write(path, fd, mass, n * sizeof *mass,
                        offset[TSI_H5MD_MASS] + rows->first * (int64_t)sizeof *mass);
}

/* Elements, ids and masses of this rank's block, on the disk. */
static int fill_in(const tsi_h5md *t, const char *path, const int64_t offset[TSI_H5MD_FIXED])
{
  const tsi_rows *rows = &t->base.rows;
  int32_t *species = NULL;
  int64_t *id = NULL;
  double *mass = NULL;
  int status, fd = -1;
  TS_TRY_GOTO(status, TSI_NEW(species, rows->n), done);
  TS_TRY_GOTO(status, TSI_NEW(id, rows->n), done);
  TS_TRY_GOTO(status, TSI_NEW(mass, rows->n), done);
  fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    status = tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  else
    status = write_atoms(rows, path, fd, offset, species, id, mass);
  if (!status && fsync(fd))
    status = tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", path, strerror(errno));
done:
  if (fd >= 0) close(fd);
  free(species);
  free(id);
  free(mass);
  return status;
}

static int create_aside(const tsi_h5md *t, const ts_system *s, const char *aside)
{
  const ts_ranks *ranks = &t->base.ranks;
  const bool first = ranks->first == 0;
  int64_t offset[TSI_H5MD_FIXED] = {0};
  TS_TRY(tsi_ranks_agree(ranks, first ? lay_out(t, s, aside, offset) : 0));
  TS_TRY(ts_ranks_share(ranks, offset, sizeof offset));
  TS_TRY(tsi_ranks_agree(ranks, fill_in(t, aside, offset)));
  if (first) tsi_h5_undo_drop(t->base.path); /* of a file that is no more */
  return tsi_ranks_agree(ranks, first ? tsi_file_rename(aside, t->base.path) : 0);
}

int tsi_h5md_create(tsi_h5md *t, const ts_system *system)
{
  const size_t size = strlen(t->base.path) + sizeof ".part";
  char *aside = malloc(size);
  int status = aside ? 0 : tsi_fail(TS_ERR_MEMORY, "%s: no memory for its name", t->base.path);
  status = tsi_ranks_agree(&t->base.ranks, status);
  if (!status) {
    snprintf(aside, size, "%s.part", t->base.path);
    status = create_aside(t, system, aside);
  }
  free(aside);
  return status;
}
