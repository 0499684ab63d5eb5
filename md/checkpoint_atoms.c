/* SPDX-License-Identifier: MIT
 *
 * The atoms of a checkpoint: between the order and the ranks of a run and the order of the
 * structure file, of which each rank has one block. */
#include "comm/blocks.h"
#include "comm/sparse.h"
#include "md/checkpoint_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This rank's block of the ids of natoms atoms. */
static ts_gidx block_first(const ts_ranks *ranks, ts_gidx natoms)
{
  return ts_block_first(natoms, ranks->size, ranks->first);
}

static ts_lidx block_size(const ts_ranks *ranks, ts_gidx natoms)
{
  return (ts_lidx)(ts_block_first(natoms, ranks->size, ranks->first + 1) -
                   block_first(ranks, natoms));
}

static int find_blocks(const ts_checkpoint *checkpoint, const ts_system *s, ts_blocks **out)
{
  const ts_gidx *id = s->gid;
  return ts_blocks_create(&checkpoint->ranks, s->natoms, &s->n, &id, out);
}

/* ---- putting ---- */

/* Room for this rank's rows of a new array. */
static int add_rows(ts_checkpoint *checkpoint, ts_gidx natoms, const char *name, tsi_h5_type type,
                    int width, tsi_checkpoint_array **out)
{
  TS_TRY(tsi_checkpoint_add(checkpoint, name, type, natoms, width, out));
  (*out)->dealt = true;
  (*out)->first = block_first(&checkpoint->ranks, natoms);
  (*out)->here = block_size(&checkpoint->ranks, natoms);
  const int status =
      tsi_alloc((size_t)((*out)->here * width), tsi_checkpoint_size(type), &(*out)->data);
  if (status) tsi_checkpoint_drop(checkpoint);
  return status;
}

static int put_rows(ts_checkpoint *checkpoint, const ts_blocks *blocks, ts_gidx natoms,
                    const char *name, tsi_h5_type type, int width, const void *data)
{
  const ts_ranks *ranks = &checkpoint->ranks;
  const int count = checkpoint->count;
  tsi_checkpoint_array *array = NULL;
  int status = add_rows(checkpoint, natoms, name, type, width, &array);
  status = tsi_ranks_agree(ranks, status);
  if (!status)
    status =
        ts_blocks_collect(blocks, (size_t)width * tsi_checkpoint_size(type), &data, &array->data);
  if (!status) {
    if (!tsi_checkpoint_finite(type, array->here * width, array->data))
      status = tsi_fail(TS_ERR_SIMULATION, "checkpoint: %s is not finite; nothing is stored", name);
    status = tsi_ranks_agree(ranks, status);
  }
  if (status && checkpoint->count > count) tsi_checkpoint_drop(checkpoint);
  return status;
}

static int put_atoms(ts_checkpoint *checkpoint, const ts_system *system, const char *name,
                     tsi_h5_type type, int width, const void *data)
{
  ts_blocks *blocks;
  TS_TRY(find_blocks(checkpoint, system, &blocks));
  const int status = put_rows(checkpoint, blocks, system->natoms, name, type, width, data);
  ts_blocks_destroy(&blocks);
  return status;
}

int ts_checkpoint_put_atoms_double(ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, const double *data)
{
  return put_atoms(checkpoint, system, name, TSI_H5_DOUBLE, width, data);
}

int ts_checkpoint_put_atoms_int64(ts_checkpoint *checkpoint, const ts_system *system,
                                  const char *name, int width, const int64_t *data)
{
  return put_atoms(checkpoint, system, name, TSI_H5_INT64, width, data);
}

/* What a system is besides its atoms. */
enum { FACT_VELOCITIES, FACT_CHARGED, FACT_CHARGE, FACT_MULTIPLICITY, FACT_PBC, FACTS = 7 };

static int put_facts(ts_checkpoint *checkpoint, const ts_system *s)
{
  const bool *pbc = s->cell.periodic;
  const int64_t facts[FACTS] = {
      s->has_velocities, s->has_charge, s->charge, s->multiplicity, pbc[0], pbc[1], pbc[2]};
  TS_TRY(ts_system_check(s));
  TS_TRY(ts_checkpoint_put_double(checkpoint, "cell", 9, &s->cell.h[0][0]));
  TS_TRY(ts_checkpoint_put_int64(checkpoint, "system", FACTS, facts));
  return ts_checkpoint_put_text(checkpoint, "title", s->title);
}

int ts_checkpoint_put_system(ts_checkpoint *checkpoint, const ts_system *system)
{
  const struct {
    const char *name;
    tsi_h5_type type;
    int width;
    const void *data;
  } rows[] = {{"x", TSI_H5_DOUBLE, 3, system->x},
              {"image", TSI_H5_INT32, 3, system->image},
              {"v", TSI_H5_DOUBLE, 3, system->v},
              {"mass", TSI_H5_DOUBLE, 1, system->mass},
              {"z", TSI_H5_UINT8, 1, system->z}};
  ts_blocks *blocks;
  TS_TRY(tsi_ranks_agree(&checkpoint->ranks, put_facts(checkpoint, system)));
  TS_TRY(find_blocks(checkpoint, system, &blocks));
  int status = 0;
  for (size_t k = 0; k < sizeof rows / sizeof *rows && !status; ++k)
    status = put_rows(checkpoint, blocks, system->natoms, rows[k].name, rows[k].type, rows[k].width,
                      rows[k].data);
  ts_blocks_destroy(&blocks);
  return status;
}

/* ---- getting ---- */

/* The rows of this rank's block. */
static int get_rows(const ts_checkpoint *checkpoint, ts_gidx natoms, const char *name,
                    tsi_h5_type type, int width, void *data)
{
  const tsi_checkpoint_array *array;
  TS_TRY(tsi_checkpoint_expect(checkpoint, name, type, natoms, width, &array));
  return tsi_checkpoint_fetch(checkpoint, array, block_first(&checkpoint->ranks, natoms),
                              block_size(&checkpoint->ranks, natoms), data);
}

static int get_atoms(const ts_checkpoint *checkpoint, const ts_system *system, const char *name,
                     tsi_h5_type type, int width, void *data)
{
  const ts_ranks *ranks = &checkpoint->ranks;
  const ts_gidx natoms = system->natoms;
  const size_t row = (size_t)width * tsi_checkpoint_size(type);
  ts_blocks *blocks = NULL;
  void *rows = NULL;
  int status = tsi_alloc((size_t)block_size(ranks, natoms), row, &rows);
  if (!status) status = get_rows(checkpoint, natoms, name, type, width, rows);
  TS_TRY_GOTO(status, tsi_ranks_agree(ranks, status), done);
  TS_TRY_GOTO(status, find_blocks(checkpoint, system, &blocks), done);
  TS_TRY_GOTO(status, ts_blocks_return(blocks, row, (const void *const *)&rows, &data), done);
done:
  ts_blocks_destroy(&blocks);
  free(rows);
  return status;
}

int ts_checkpoint_get_atoms_double(const ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, double *data)
{
  return get_atoms(checkpoint, system, name, TSI_H5_DOUBLE, width, data);
}

int ts_checkpoint_get_atoms_int64(const ts_checkpoint *checkpoint, const ts_system *system,
                                  const char *name, int width, int64_t *data)
{
  return get_atoms(checkpoint, system, name, TSI_H5_INT64, width, data);
}

/* A failure inside this file's data: the message with the path, and the fault is the input's. */
static int blame(const ts_checkpoint *checkpoint)
{
  char what[512];
  snprintf(what, sizeof what, "%s", ts_error_message());
  return tsi_fail(TS_ERR_INPUT, "%s: %s", ts_checkpoint_path(checkpoint), what);
}

/* Not collective. */
static int get_facts(const ts_checkpoint *checkpoint, ts_system *s)
{
  const tsi_checkpoint_array *cell, *system;
  int64_t facts[FACTS];
  double h[3][3];
  char title[TSI_CHECKPOINT_TEXT];
  TS_TRY(tsi_checkpoint_expect(checkpoint, "cell", TSI_H5_DOUBLE, 9, 1, &cell));
  TS_TRY(tsi_checkpoint_fetch(checkpoint, cell, 0, 9, &h[0][0]));
  TS_TRY(tsi_checkpoint_expect(checkpoint, "system", TSI_H5_INT64, FACTS, 1, &system));
  TS_TRY(tsi_checkpoint_fetch(checkpoint, system, 0, FACTS, facts));
  TS_TRY(tsi_checkpoint_fetch_text(checkpoint, "title", title));
  if (facts[FACT_CHARGE] < INT_MIN || facts[FACT_CHARGE] > INT_MAX ||
      facts[FACT_MULTIPLICITY] < 1 || facts[FACT_MULTIPLICITY] > INT_MAX)
    return tsi_fail(TS_ERR_INPUT, "%s: charge or multiplicity is out of range",
                    ts_checkpoint_path(checkpoint));
  const bool periodic[3] = {facts[FACT_PBC] != 0, facts[FACT_PBC + 1] != 0,
                            facts[FACT_PBC + 2] != 0};
  if (ts_cell_init(&s->cell, h, periodic)) return blame(checkpoint);
  s->has_velocities = facts[FACT_VELOCITIES] != 0;
  s->has_charge = facts[FACT_CHARGED] != 0;
  s->charge = (int)facts[FACT_CHARGE];
  s->multiplicity = (int)facts[FACT_MULTIPLICITY];
  snprintf(s->title, sizeof s->title, "%.*s", (int)sizeof s->title - 1, title);
  return 0;
}

/* Not collective. */
static int get_block(const ts_checkpoint *checkpoint, ts_gidx natoms, ts_system **out)
{
  TS_TRY(ts_system_create(natoms, block_size(&checkpoint->ranks, natoms), out));
  ts_system *s = *out;
  for (ts_lidx i = 0; i < s->n; ++i)
    s->gid[i] += block_first(&checkpoint->ranks, natoms);
  TS_TRY(get_facts(checkpoint, s));
  TS_TRY(get_rows(checkpoint, natoms, "x", TSI_H5_DOUBLE, 3, s->x));
  TS_TRY(get_rows(checkpoint, natoms, "image", TSI_H5_INT32, 3, s->image));
  TS_TRY(get_rows(checkpoint, natoms, "v", TSI_H5_DOUBLE, 3, s->v));
  TS_TRY(get_rows(checkpoint, natoms, "mass", TSI_H5_DOUBLE, 1, s->mass));
  TS_TRY(get_rows(checkpoint, natoms, "z", TSI_H5_UINT8, 1, s->z));
  return ts_system_check(s) ? blame(checkpoint) : 0;
}

int ts_checkpoint_get_system(const ts_checkpoint *checkpoint, ts_system **out)
{
  *out = NULL;
  const tsi_checkpoint_array *z = tsi_checkpoint_find(checkpoint, "z");
  if (!z || z->rows > INT32_MAX)
    return tsi_fail(TS_ERR_INPUT, "%s: there are no atoms, or too many",
                    ts_checkpoint_path(checkpoint));
  const int status = tsi_ranks_agree(&checkpoint->ranks, get_block(checkpoint, z->rows, out));
  if (status) ts_system_destroy(out);
  return status;
}
