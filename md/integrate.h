/* SPDX-License-Identifier: MIT
 *
 * The two halves of a time step on a slice of atoms; the forces are computed between them.
 *
 *   NVE, velocity Verlet:     B  A  A        | forces | B
 *   NVT, Langevin by BAOAB:   B  A  O  A     | forces | B
 *
 * with B a half kick v += (dt/2) f/m, A a half drift x += (dt/2) v, and O the exact solution of
 * friction and noise over dt: v = c v + sqrt((1 - c^2) kT/m) xi, c = exp(-friction dt). (Leimkuhler
 * and Matthews, Appl. Math. Res. Express 2013, 34.)  One force evaluation per step; the sampled
 * positions are exact for harmonic forces at any stable dt; friction 0 is velocity Verlet.  xi is
 * keyed by (seed, atom id, step), so slicing, order and restarts do not matter.
 *
 * Positions run on unwrapped between two rebuilds.  The largest displacement since the build comes
 * back with each first half, because it decides whether the edges are still complete. */
#ifndef TS_INTEGRATE_H
#define TS_INTEGRATE_H

#include "md/sum.h"

/** How atoms move; the same for every slice. */
typedef struct ts_motion {
  double timestep;    /**< [fs], > 0 */
  bool langevin;      /**< false: NVE, the rest is not used */
  double friction;    /**< [1/fs], >= 0 */
  double temperature; /**< [K], >= 0 */
  uint64_t seed;      /**< of the noise */
} ts_motion;

/** What the first half found in a slice. */
typedef struct ts_motion_report {
  double displacement2; /**< largest |x - x_build|^2 [Å^2]; NaN and infinity count as infinity */
  ts_sum heat;          /**< kinetic energy given by the thermostat in this step [eV] */
  ts_lidx bad;          /**< first atom of the slice whose x or v is not finite, or -1 */
} ts_motion_report;

/** First half of step `step`: kick, drift (and thermostat).  Not collective.
 * \param [in]     motion   Parameters.
 * \param [in]     step     Number of the step being made: from step-1 to step.
 * \param [in]     n        Atoms in the slice; every array starts at its first atom.
 * \param [in]     gid      [n]
 * \param [in]     mass     [n] double [eV fs^2/Å^2]
 * \param [in]     f        [n,3] double [eV/Å], forces at x
 * \param [in,out] v        [n,3] double [Å/fs]
 * \param [in,out] x        [n,3] double [Å]
 * \param [in]     x_build  [n,3] double [Å], positions when the edges were built
 * \param [out]    report   What was found. */
void ts_integrate_first(const ts_motion *motion, int64_t step, ts_lidx n, const ts_gidx *gid,
                        const double *mass, const double (*f)[3], double (*v)[3], double (*x)[3],
                        const double (*x_build)[3], ts_motion_report *report);

/** Second half of a step: the kick with the new forces.  Not collective.
 * \param [in]     f  [n,3] double [eV/Å], forces at the new positions
 * \param [in,out] v  [n,3] double [Å/fs] */
void ts_integrate_second(const ts_motion *motion, ts_lidx n, const double *mass,
                         const double (*f)[3], double (*v)[3]);

#endif
