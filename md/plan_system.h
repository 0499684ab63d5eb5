/* SPDX-License-Identifier: MIT
 *
 * The atoms that a plan is made for: from a structure file, or generated at any size.  Only places
 * and elements matter here, so tens of millions of atoms take 41 bytes each. */
#ifndef TS_PLAN_SYSTEM_H
#define TS_PLAN_SYSTEM_H

#include "neighbor/cell.h"
#include "neighbor/partition.h"

typedef struct ts_plan_atoms {
  ts_cell cell;
  ts_lidx n;
  double (*x)[3]; /**< [n,3] wrapped [Å] */
  ts_gidx *gid;   /**< [n] row of the file, or in the order of generation */
  uint8_t *z;     /**< [n] */
  uint64_t *key;  /**< [n] along the curve, once sorted */
} ts_plan_atoms;

typedef enum ts_plan_kind {
  TS_PLAN_UNIFORM,    /**< random places */
  TS_PLAN_WATER,      /**< molecules on a jittered lattice */
  TS_PLAN_SALT_WATER, /**< the same, one site in 27 an ion */
  TS_PLAN_BLOB,       /**< a fifth of the atoms in a ball of 2.4 times the density */
  TS_PLAN_SLAB,       /**< water between vacuum, open along c */
  TS_PLAN_DROPLET,    /**< a ball of water in a periodic box three times as wide */
  TS_PLAN_KINDS
} ts_plan_kind;

typedef struct ts_plan_recipe {
  ts_plan_kind kind;
  ts_lidx atoms;
  double density; /**< atoms per Å^3 where there are any (blob: on average) */
  double units;   /**< the cell is so many unit cubes (usually the ranks) */
  int grow;       /**< axes along which they stand: 3, 2 or 1 */
  uint64_t seed;
} ts_plan_recipe;

/** Generate: exactly recipe->atoms of them, the same for equal recipes.  Not collective.
 * \param [out] out  Released by ts_plan_atoms_free(); empty on failure.
 * \return 0, TS_ERR_ARG or TS_ERR_MEMORY. */
int ts_plan_atoms_generate(const ts_plan_recipe *recipe, ts_plan_atoms *out);

/** Read a structure file and repeat it `times` along a, b and c.  Not collective.
 * \return 0, TS_ERR_INPUT, TS_ERR_UNSUPPORTED (more than 2^31 - 1 atoms) or TS_ERR_MEMORY. */
int ts_plan_atoms_read(const char *path, const int times[3], ts_plan_atoms *out);

/** Keys, and the order by (key, gid).  Not collective.  \return 0 or TS_ERR_MEMORY. */
int ts_plan_atoms_sort(ts_plan_atoms *atoms, const ts_partition_params *partition);

void ts_plan_atoms_free(ts_plan_atoms *atoms);

#endif
