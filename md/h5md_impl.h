/* SPDX-License-Identifier: MIT
 *
 * What the parts of H5MD trajectories share: the datasets (md/h5md_layout.c) and the frames
 * (md/h5md.c). */
#ifndef TS_H5MD_IMPL_H
#define TS_H5MD_IMPL_H

#include "md/h5.h"
#include "md/trajectory_impl.h"

#define TSI_H5MD_GROUP "/particles/trajectory"
#define TSI_H5MD_STEP TSI_H5MD_GROUP "/position/step"
#define TSI_H5MD_TIME TSI_H5MD_GROUP "/position/time"

enum {
  TSI_H5MD_DEEPEST = 256, /* frames in a chunk, at most; always of the small datasets */
  TSI_H5MD_PIECES = 256   /* pieces of a chunk of atoms (see tsi_h5_grow), at most */
};

/** The datasets that grow, in the order of writing. */
typedef enum tsi_h5md_element {
  TSI_H5MD_EDGES,
  TSI_H5MD_IMAGE,
  TSI_H5MD_VELOCITY,
  TSI_H5MD_FORCE,
  TSI_H5MD_POTENTIAL,
  TSI_H5MD_KINETIC,
  TSI_H5MD_TEMPERATURE,
  TSI_H5MD_PRESSURE,
  TSI_H5MD_STRESS,
  TSI_H5MD_POSITION, /* last, because readers count frames there */
  TSI_H5MD_ELEMENTS
} tsi_h5md_element;

extern const struct tsi_h5md_about {
  const char *group, *unit;
  tsi_h5_type type;
  char shape; /* a: [N,3] of the atoms; m: [3,3]; s: one number */
} tsi_h5md_about[TSI_H5MD_ELEMENTS];

/** The datasets of fixed size, [N] of the atoms. */
typedef enum tsi_h5md_fixed {
  TSI_H5MD_SPECIES, /* int32 */
  TSI_H5MD_ID,      /* int64, from 1 */
  TSI_H5MD_MASS,    /* double [u] */
  TSI_H5MD_FIXED
} tsi_h5md_fixed;

extern const char *const tsi_h5md_fixed_path[TSI_H5MD_FIXED];

/** What rank 0 tells the others about the file. */
typedef struct tsi_h5md_shared {
  int64_t frames, last_step; /* in the file */
  int64_t depth;             /* frames in a chunk of the atoms */
  int64_t width;             /* atoms in a piece of it */
  int64_t species;           /* offset of that dataset */
  /* of the chunk that is being filled: offset of each piece, by element */
  int64_t piece[TSI_H5MD_ELEMENTS][TSI_H5MD_PIECES];
} tsi_h5md_shared;

/** A trajectory. */
typedef struct tsi_h5md {
  ts_trajectory base;
  tsi_h5 *file; /* rank 0's */
  int fd;       /* each rank's, for its rows; or -1 */
  bool is_periodic;
  tsi_h5md_shared shared;
  tsi_h5_span *spans; /* [nspans] raw data in the file, rank 0; owned */
  int64_t nspans;
  double (*force)[3]; /* [n,3] in the file's unit; owned */
} tsi_h5md;

/** Is that dataset in this trajectory? */
bool tsi_h5md_is_written(const tsi_h5md *t, tsi_h5md_element e);

/** The path of its values. */
const char *tsi_h5md_value(tsi_h5md_element e, char path[96]);

/** Shape of one frame of a small dataset, or of one with atoms (all of them). */
tsi_h5_block tsi_h5md_block(const tsi_h5md *t, char shape);

/** Make the file, without frames, in place of an old one.  Collective.
 * \return 0, TS_ERR_HDF5, TS_ERR_IO, TS_ERR_MPI or TS_ERR_MEMORY. */
int tsi_h5md_create(tsi_h5md *t, const ts_system *system);

#endif
