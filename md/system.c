/* SPDX-License-Identifier: MIT
 *
 * The life of a system's arrays, and their reordering. */
#include "md/system.h"

#include "runtime/error.h"
#include "runtime/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int allocate(ts_system *s, ts_lidx capacity)
{
  s->capacity = capacity;
  TS_TRY(TSI_NEW(s->x, capacity));
  TS_TRY(TSI_NEW(s->image, capacity));
  TS_TRY(TSI_NEW(s->v, capacity));
  TS_TRY(TSI_NEW(s->mass, capacity));
  TS_TRY(TSI_NEW(s->z, capacity));
  return TSI_NEW(s->gid, capacity);
}

static void release(ts_system *s)
{
  free(s->x);
  free(s->image);
  free(s->v);
  free(s->mass);
  free(s->z);
  free(s->gid);
}

int ts_system_create(ts_gidx natoms, ts_lidx n, ts_system **out)
{
  *out = NULL;
  if (n < 0 || n > natoms)
    return tsi_fail(TS_ERR_ARG, "a system of %ld atoms cannot have %ld of them here", (long)natoms,
                    (long)n);
  ts_system *s = NULL;
  TS_TRY(TSI_NEW(s, 1));
  s->natoms = natoms;
  s->n = n;
  s->multiplicity = 1;
  int status;
  TS_TRY_GOTO(status, ts_cell_init(&s->cell, NULL, NULL), fail);
  TS_TRY_GOTO(status, allocate(s, n), fail);
  for (ts_lidx i = 0; i < n; ++i)
    s->gid[i] = i;
  *out = s;
  return 0;
fail:
  ts_system_destroy(&s);
  return status;
}

void ts_system_destroy(ts_system **system)
{
  ts_system *s = *system;
  if (!s) return;
  release(s);
  free(s);
  *system = NULL;
}

int ts_system_reserve(ts_system *system, ts_lidx n)
{
  ts_system *s = system, more = *system;
  if (n < 0 || n > s->natoms)
    return tsi_fail(TS_ERR_ARG, "room for %ld atoms in a system of %ld", (long)n, (long)s->natoms);
  if (n <= s->capacity) return 0;
  more.x = NULL, more.image = NULL, more.v = NULL, more.mass = NULL, more.z = NULL, more.gid = NULL;
  const int64_t wished = n + (int64_t)n / 16;
  const int status = allocate(&more, (ts_lidx)(wished < s->natoms ? wished : s->natoms));
  if (status) {
    release(&more);
    return status;
  }
  if (s->n) {
    const size_t kept = (size_t)s->n;
    memcpy(more.x, s->x, kept * sizeof *s->x);
    memcpy(more.image, s->image, kept * sizeof *s->image);
    memcpy(more.v, s->v, kept * sizeof *s->v);
    memcpy(more.mass, s->mass, kept * sizeof *s->mass);
    memcpy(more.z, s->z, kept * sizeof *s->z);
    memcpy(more.gid, s->gid, kept * sizeof *s->gid);
  }
  release(s);
  *s = more;
  return 0;
}

static bool finite3(const double a[3])
{
  return isfinite(a[0]) && isfinite(a[1]) && isfinite(a[2]);
}

static int check_position(const ts_system *s, ts_lidx i)
{
  const double *x = s->x[i];
  if (finite3(x)) return 0;
  return tsi_fail(TS_ERR_SIMULATION, "atom %ld is at (%g, %g, %g) Å; expected finite positions",
                  (long)s->gid[i] + 1, x[0], x[1], x[2]);
}

static int check_atom(const ts_system *s, ts_lidx i)
{
  const long id = (long)s->gid[i] + 1;
  const double *v = s->v[i];
  if (id < 1 || id > s->natoms)
    return tsi_fail(TS_ERR_SIMULATION, "an atom has the id %ld; expected 1 to %ld", id,
                    (long)s->natoms);
  TS_TRY(check_position(s, i));
  if (!finite3(v))
    return tsi_fail(TS_ERR_SIMULATION,
                    "atom %ld has the velocity (%g, %g, %g) Å/fs; expected finite velocities", id,
                    v[0], v[1], v[2]);
  if (!(s->mass[i] > 0.0) || !isfinite(s->mass[i]))
    return tsi_fail(TS_ERR_SIMULATION, "atom %ld has the mass %g eV fs²/Å²; expected more than 0",
                    id, s->mass[i]);
  if (!ts_element_symbol(s->z[i]))
    return tsi_fail(TS_ERR_SIMULATION, "atom %ld has the atomic number %d; expected 1 to %d", id,
                    s->z[i], TS_ELEMENTS);
  return 0;
}

/* Every id from 1 to natoms once; all atoms are here. */
static int check_ids(const ts_system *s)
{
  bool *seen = NULL;
  TS_TRY(TSI_NEW(seen, s->n));
  int status = 0;
  for (ts_lidx i = 0; i < s->n && !status; ++i) {
    if (seen[s->gid[i]])
      status = tsi_fail(TS_ERR_SIMULATION, "two atoms have the id %ld", (long)s->gid[i] + 1);
    seen[s->gid[i]] = true;
  }
  free(seen);
  return status;
}

int ts_system_check(const ts_system *system)
{
  for (ts_lidx i = 0; i < system->n; ++i)
    TS_TRY(check_atom(system, i));
  return system->n == system->natoms ? check_ids(system) : 0;
}

static int check_permutation(ts_lidx n, const ts_lidx *order)
{
  bool *seen = NULL;
  TS_TRY(TSI_NEW(seen, n));
  int status = 0;
  for (ts_lidx k = 0; k < n && !status; ++k) {
    if (order[k] < 0 || order[k] >= n || seen[order[k]])
      status = tsi_fail(TS_ERR_ARG, "order[%ld] = %ld: not a permutation of 0 to %ld", (long)k,
                        (long)order[k], (long)n - 1);
    else
      seen[order[k]] = true;
  }
  free(seen);
  return status;
}

/* Gather rows of `size` bytes: aside[k] = rows[order[k]], then copy back. */
static void gather(ts_lidx n, const ts_lidx *order, size_t size, void *rows, char *aside)
{
  for (ts_lidx k = 0; k < n; ++k)
    memcpy(aside + (size_t)k * size, (const char *)rows + (size_t)order[k] * size, size);
  if (n) memcpy(rows, aside, (size_t)n * size);
}

int ts_system_permute(ts_system *system, const ts_lidx *order)
{
  TS_TRY(check_permutation(system->n, order));
  char *aside = NULL;
  TS_TRY(tsi_alloc((size_t)system->n, sizeof *system->x, (void **)&aside));
  gather(system->n, order, sizeof *system->x, system->x, aside);
  gather(system->n, order, sizeof *system->image, system->image, aside);
  gather(system->n, order, sizeof *system->v, system->v, aside);
  gather(system->n, order, sizeof *system->mass, system->mass, aside);
  gather(system->n, order, sizeof *system->z, system->z, aside);
  gather(system->n, order, sizeof *system->gid, system->gid, aside);
  free(aside);
  return 0;
}

int ts_system_wrap(ts_system *system)
{
  for (ts_lidx i = 0; i < system->n; ++i) /* here, where the atom's id is known */
    TS_TRY(check_position(system, i));
  return ts_cell_wrap(&system->cell, system->n, system->x, system->image);
}

void ts_system_count(const ts_system *system, int64_t *count)
{
  memset(count, 0, (TS_ELEMENTS + 1) * sizeof *count);
  for (ts_lidx i = 0; i < system->n; ++i)
    ++count[system->z[i] <= TS_ELEMENTS ? system->z[i] : 0];
}
