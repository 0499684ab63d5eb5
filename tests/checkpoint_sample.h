/* SPDX-License-Identifier: MIT
 *
 * Systems and checkpoints to test with, and a folder for their files. */
#ifndef TS_TESTS_CHECKPOINT_SAMPLE_H
#define TS_TESTS_CHECKPOINT_SAMPLE_H

#include "comm/peers.h"
#include "md/checkpoint.h"
#include "md/ts_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_KINDS = 3 };

static const ts_ranks alone = {.comm = MPI_COMM_NULL, .size = 1, .hosted = 1};

/** n atoms: 0 isolated and at rest, 1 triclinic and moving, 2 a charged slab. */
static inline ts_system *sample_system(ts_lidx n, int kind)
{
  ts_system *s = NULL;
  const double h[3][3] = {{11, 0.1, 0}, {3, 12, 0}, {-4, 2, 9}};
  const bool periodic[3] = {true, true, kind == 1};
  if (ts_system_create(n, n, &s)) abort();
  if (kind && ts_cell_init(&s->cell, h, periodic)) abort();
  for (ts_lidx i = 0; i < n; ++i) {
    s->z[i] = (uint8_t)(1 + i % TS_ELEMENTS);
    s->mass[i] = ts_element_mass(s->z[i]) * (1.0 + 0.01 * sin(i));
    for (int k = 0; k < 3; ++k) {
      s->x[i][k] = 31.7 * sin(i + 2.1 * k); /* also outside the cell */
      s->v[i][k] = kind ? 0.01 * cos(3 * i + k) : 0.0;
      s->image[i][k] = kind ? i - 7 * k : 0;
    }
  }
  s->has_velocities = kind != 0;
  s->has_charge = kind == 2;
  s->charge = kind == 2 ? -3 : 0;
  s->multiplicity = kind == 2 ? 2 : 1;
  if (kind) snprintf(s->title, sizeof s->title, "a sample of kind %d", kind);
  return s;
}

/** Everything that a run would store: "f" is x, "flag" counts the atoms as they stand. */
static inline ts_checkpoint *sample_checkpoint(const ts_system *s, int64_t step)
{
  ts_checkpoint *cp = NULL;
  const int64_t seed = 42;
  double *flag = malloc((size_t)s->n * sizeof *flag);
  for (ts_lidx i = 0; flag && i < s->n; ++i)
    flag[i] = i;
  if (!flag || ts_checkpoint_create(&alone, step, 0.1 * (double)step, &cp) ||
      ts_checkpoint_put_system(cp, s) ||
      ts_checkpoint_put_atoms_double(cp, s, "f", 3, &s->x[0][0]) ||
      ts_checkpoint_put_atoms_double(cp, s, "flag", 1, flag) ||
      ts_checkpoint_put_int64(cp, "seed", 1, &seed) || ts_checkpoint_put_text(cp, "model", "abc"))
    abort();
  free(flag);
  return cp;
}

/** A new folder, and the path of a checkpoint in it. */
static inline void sample_folder(char folder[64], char path[96])
{
  snprintf(folder, 64, "/tmp/tessera-test-XXXXXX");
  if (!mkdtemp(folder)) abort();
  snprintf(path, 96, "%s/checkpoint.h5", folder);
}

static inline void sample_remove(const char *folder)
{
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) abort();
}

/** A whole file; returns its size. */
static inline long sample_load(const char *path, char **data)
{
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) abort();
  const long size = ftell(file);
  rewind(file);
  *data = malloc((size_t)size);
  if (!*data || fread(*data, 1, (size_t)size, file) != (size_t)size) abort();
  fclose(file);
  return size;
}

static inline void sample_store(const char *path, const char *data, long size)
{
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, (size_t)size, file) != (size_t)size || fclose(file)) abort();
}

#endif
