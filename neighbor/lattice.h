/* SPDX-License-Identifier: MIT
 *
 * A compact basis of the user's lattice.  A very skewed cell is a long thin sliver whose box is
 * mostly empty; the same lattice has a cell that is nearly a cube.  The search works in that one
 * and reports shifts in the user's own vectors. */
#ifndef TS_LATTICE_H
#define TS_LATTICE_H

#include "neighbor/cell.h"

typedef struct tsi_lattice {
  ts_cell box;     /**< short vectors; directions without period are perpendicular to the others */
  int32_t u[3][3]; /**< box.h[k] = sum_l u[k][l] h[l] along periodic k; zero rows elsewhere */
} tsi_lattice;

int tsi_lattice_reduce(const ts_cell *cell, tsi_lattice *out);

#endif
