/* SPDX-License-Identifier: MIT
 *
 * The atoms of one rank as plain arrays, one per quantity, and the cell that they live in.  The
 * order of the atoms is free (a space-filling curve, usually); `gid` says which row of the
 * structure file an atom was, counted from 0.
 *
 * An atom's place in space without periodicity is x + image.h.  Reading and wrapping leave x in
 * [0,1) along each periodic direction; between two rebuilds x may run out of the cell, and nothing
 * here minds. */
#ifndef TS_SYSTEM_H
#define TS_SYSTEM_H

#include "md/elements.h"
#include "neighbor/cell.h"
#include "runtime/types.h"

/** Arrays are owned by the system, aligned (runtime/memory.h), row-major. */
typedef struct ts_system {
  ts_gidx natoms;      /**< atoms of the whole system */
  ts_lidx n;           /**< atoms of this rank */
  ts_lidx capacity;    /**< atoms that the arrays have room for */
  ts_cell cell;        /**< rows of cell.h are a, b, c [Å] */
  double (*x)[3];      /**< [n,3] [Å] */
  int32_t (*image)[3]; /**< [n,3] periods that x was moved by: unwrapped = x + image.h */
  double (*v)[3];      /**< [n,3] [Å/fs]; zero unless has_velocities */
  double *mass;        /**< [n] [eV fs^2/Å^2] */
  uint8_t *z;          /**< [n] atomic numbers */
  ts_gidx *gid;        /**< [n] row of the structure file, from 0 */
  bool has_velocities; /**< v was read (or has been drawn) */
  bool has_charge;     /**< the file states a charge */
  int charge;          /**< of the whole system [e]; 0 unless stated */
  int multiplicity;    /**< spin multiplicity; 1 unless stated */
  char title[256];     /**< first words of the file, for people */
} ts_system;

/** A system of n atoms of natoms, all arrays zero, gid = 0..n-1, an isolated cell.  Not collective.
 * \param [out] out  Owned by the caller: ts_system_destroy(); NULL on failure.
 * \return 0, TS_ERR_ARG (n < 0 or n > natoms) or TS_ERR_MEMORY. */
int ts_system_create(ts_gidx natoms, ts_lidx n, ts_system **out);

/** Accepts NULL, sets *system to NULL. */
void ts_system_destroy(ts_system **system);

/** Make room for n atoms and some more; the first system->n stay as they are (pointers may change).
 * Not collective.  \return 0, TS_ERR_ARG (n < 0 or n > natoms) or TS_ERR_MEMORY. */
int ts_system_reserve(ts_system *system, ts_lidx n);

/** Check every atom: finite x and v, mass > 0, known element, 0 <= gid < natoms (and on one rank
 * every gid once).  Not collective.
 * \return 0; TS_ERR_SIMULATION with the first bad atom's id (from 1) and value; TS_ERR_MEMORY. */
int ts_system_check(const ts_system *system);

/** Reorder the atoms: new atom k is old atom order[k].  Not collective.
 * \param [in] order  [n] a permutation of 0..n-1.
 * \return 0, TS_ERR_ARG (not a permutation; the system is unchanged) or TS_ERR_MEMORY. */
int ts_system_permute(ts_system *system, const ts_lidx *order);

/** Bring x back into the cell along periodic directions and count the crossings in image.
 * Not collective.  \return 0 or TS_ERR_SIMULATION (ts_cell_wrap). */
int ts_system_wrap(ts_system *system);

/** Number of this rank's atoms of each element.
 * \param [out] count  [TS_ELEMENTS+1], by atomic number. */
void ts_system_count(const ts_system *system, int64_t *count);

#endif
