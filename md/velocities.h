/* SPDX-License-Identifier: MIT
 *
 * Initial velocities: Maxwell-Boltzmann deviates keyed by (seed, atom id), total momentum removed,
 * scaled so that the kinetic temperature with 3N-3 degrees of freedom is exactly the one asked for.
 * Two phases, because momentum is a sum over all atoms: every slice draws and adds to its partial
 * sums; the sums are merged (in any order, see sum.h); every slice then settles.  The result is the
 * same bits for any slicing and any order of the atoms. */
#ifndef TS_VELOCITIES_H
#define TS_VELOCITIES_H

#include "md/sum.h"

/** Partial sums of a draw; all zero is empty. */
typedef struct ts_velocity_sums {
  ts_sum atoms;       /**< number of atoms */
  ts_sum mass;        /**< [eV fs^2/Å^2] */
  ts_sum momentum[3]; /**< of the unscaled draw */
  ts_sum kinetic;     /**< of the unscaled draw */
} ts_velocity_sums;

/** Phase 1: draw unscaled velocities (kT = 1 eV) for a slice.  Not collective.
 * \param [in]     seed  Seed of the draw.
 * \param [in]     n     Atoms in the slice.
 * \param [in]     gid   [n]
 * \param [in]     mass  [n] double [eV fs^2/Å^2], > 0
 * \param [out]    v     [n,3] double [Å/fs]
 * \param [in,out] sums  The slice is added. */
void ts_velocities_draw(uint64_t seed, ts_lidx n, const ts_gidx *gid, const double *mass,
                        double (*v)[3], ts_velocity_sums *sums);

/** Add the sums of another slice. */
void ts_velocity_sums_merge(ts_velocity_sums *sums, const ts_velocity_sums *other);

/** Phase 2: remove the total momentum and scale a slice to `temperature`.  Not collective.
 * A single atom, or temperature 0, gives velocities 0.
 * \param [in]     temperature  [K], >= 0
 * \param [in]     sums         Of all atoms.
 * \param [in]     n            Atoms in the slice.
 * \param [in,out] v            [n,3] double [Å/fs] */
void ts_velocities_settle(double temperature, const ts_velocity_sums *sums, ts_lidx n,
                          double (*v)[3]);

#endif
