/* SPDX-License-Identifier: MIT
 *
 * The second line of an extended XYZ frame: key=value pairs, of which a few matter here.  A pair
 * that looks odd never hides the others; a key that matters is understood or refused. */
#ifndef TS_XYZ_HEADER_H
#define TS_XYZ_HEADER_H

#include "runtime/types.h"

/** Columns that are read; every other is skipped. */
typedef enum tsi_xyz_column {
  TSI_XYZ_SPECIES,  /* symbol or atomic number */
  TSI_XYZ_NUMBER,   /* atomic number */
  TSI_XYZ_POSITION, /* [Å] */
  TSI_XYZ_VELOCITY, /* in the unit that velocity_unit states */
  TSI_XYZ_MOMENTUM, /* ASE's, [sqrt(u eV)] */
  TSI_XYZ_MASS,     /* [u] */
  TSI_XYZ_COLUMNS
} tsi_xyz_column;

typedef struct tsi_xyz_header {
  bool has_lattice, has_properties, has_pbc, has_charge, has_multiplicity, has_step;
  double h[3][3];   /* rows a, b, c [Å] */
  bool periodic[3]; /* all true with a Lattice alone, all false without */
  int charge, multiplicity;
  int64_t step;
  double velocity_factor;     /* Å/fs per unit of the column; 0: not stated */
  int width;                  /* values in a row; at least so many without Properties */
  int first[TSI_XYZ_COLUMNS]; /* index of the first value of each column, or -1 */
} tsi_xyz_header;

/** Parse the line.  Not collective.
 * \param [in]  text  The line without its end.
 * \return 0, or TS_ERR_INPUT with a message that lacks file and line. */
int tsi_xyz_header_parse(const char *text, tsi_xyz_header *out);

#endif
