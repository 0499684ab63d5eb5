/* SPDX-License-Identifier: MIT
 *
 * What is measured on every step: each slice fills a ts_partial, partials merge in any order to the
 * same bits (sum.h), and one call turns the total into numbers for people and decides whether the
 * run has blown up.  Conventions of signs and units: docs/units.md.
 *
 * Two temperatures.  The textbook one, 2 E_kin / (dof k_B) with the velocities of the step itself,
 * is low by (omega dt)^2/4 for each mode of frequency omega when positions are sampled right: 0.7 %
 * for flexible water at 0.5 fs.  The kinetic energy half a step before and half a step after has no
 * such error (exact for harmonic modes), and its mean needs only the forces:
 * sum m v^2/2 + sum (dt f)^2/(8 m).  `temperature`, `pressure` and `stress` use that one;
 * `temperature_on_step` is the textbook one.  `ekin` is on the step, so that epot + ekin is the
 * energy that velocity Verlet conserves. */
#ifndef TS_OBSERVE_H
#define TS_OBSERVE_H

#include "comm/collective.h"
#include "md/integrate.h"

/** Sums and extremes of a slice; fill with ts_observe_slice, empty with ts_partial_clear. */
typedef struct ts_partial {
  ts_sum energy;      /**< potential [eV] */
  ts_sum heat;        /**< from the thermostat in this step [eV] */
  ts_sum mass;        /**< [eV fs^2/Å^2] */
  ts_sum momentum[3]; /**< [eV fs/Å] */
  ts_sum kinetic[6];  /**< sum m v v, order xx yy zz yz xz xy [eV] */
  ts_sum kick[6];     /**< sum (dt/2)^2 f f / m, the same order [eV] */
  ts_sum virial[6];   /**< dE/d(strain), the same order, symmetrised [eV] */
  double force2;      /**< largest squared force [eV^2/Å^2], -1 if empty */
  ts_gidx force_gid;  /**< its atom (the lowest id of equals) */
  double force_x[3];  /**< where that atom is [Å] */
  int64_t nbad;       /**< atoms with a value that is not finite */
  ts_gidx bad_gid;    /**< lowest id of one, or -1 */
  double bad[3][3];   /**< its x, v and f */
} ts_partial;

/** Empty partial. */
void ts_partial_clear(ts_partial *partial);

/** Fill the partial of a slice.  Not collective.
 * \param [in]  timestep  [fs] for the half-step kinetic energy; 0 (step 0, single points): on step
 * \param [in]  n         Atoms in the slice; every array starts at its first atom.
 * \param [in]  gid       [n]
 * \param [in]  mass      [n] double [eV fs^2/Å^2]
 * \param [in]  x, v, f   [n,3] double [Å], [Å/fs], [eV/Å]
 * \param [in]  energy    [n] double [eV], energies of the atoms; NULL: none
 * \param [in]  virial    [n,9] double [eV], dE/d(strain) of the atoms, row-major; NULL: none
 * \param [in]  heat      From the slice's ts_motion_report; NULL: none
 * \param [out] out       The partial. */
void ts_observe_slice(double timestep, ts_lidx n, const ts_gidx *gid, const double *mass,
                      const double (*x)[3], const double (*v)[3], const double (*f)[3],
                      const double *energy, const double (*virial)[9], const ts_sum *heat,
                      ts_partial *out);

/** Add another slice. */
void ts_partial_merge(ts_partial *partial, const ts_partial *other);

/** Numbers whose sum over ranks is the sum of partials, to the bit: all but the largest force and
 * the broken atom, which are not sums. */
enum { TS_PARTIAL_WORDS = 3 * 24 + 1 };
void ts_partial_pack(const ts_partial *partial, int64_t word[TS_PARTIAL_WORDS]);

/** Put summed numbers back.  Largest force and broken atom stay those of this rank, until
 * ts_partial_extremes(). */
void ts_partial_unpack(const int64_t word[TS_PARTIAL_WORDS], ts_partial *partial);

/** The largest force and the broken atom of lowest id among all ranks' partials, on every rank.
 * Three small reductions; only rows of the log and failures need it.  Collective.
 * \return 0 or TS_ERR_MPI. */
int ts_partial_extremes(ts_partial *partial, ts_collective *collective);

/** Running state of the observables: only doubles, so a checkpoint stores it as an array of
 * TS_OBSERVER_DOUBLES numbers and a resumed run continues bit for bit.  All zero at the start. */
typedef struct ts_observer {
  double heat;                   /**< given by the thermostat since the start [eV] */
  double count;                  /**< observations so far */
  double origin;                 /**< conserved quantity per atom at the first one [eV] */
  double mean_time, mean_energy; /**< running means [ps], [eV/atom] */
  double time_time, time_energy; /**< running centred sums */
  double mean_temperature, temperature_m2;
  double mean_pressure, pressure_m2;
} ts_observer;

enum { TS_OBSERVER_DOUBLES = sizeof(ts_observer) / sizeof(double) };

/** What does not change during a run. */
typedef struct ts_observe_setup {
  ts_gidx natoms;
  int64_t dof;             /**< ts_observe_dof() */
  bool momentum_conserved; /**< NVE: the motion of the centre of mass is not heat */
  double volume;           /**< [Å^3]; 0: not periodic in three directions, no pressure */
  double timestep;         /**< [fs] */
  double target; /**< temperature of the thermostat [K], or 0: for the blow-up limit only */
} ts_observe_setup;

/** The numbers of one step. */
typedef struct ts_observables {
  int64_t step;
  double time;                /**< [ps] */
  double epot, ekin, etot;    /**< [eV]; ekin on the step */
  double conserved;           /**< etot - heat since the start [eV] */
  double temperature;         /**< [K], half-step */
  double temperature_on_step; /**< [K], 2 ekin / (dof k_B) */
  double pressure;            /**< [bar], kinetic part included; NaN without a volume */
  double stress[6];           /**< [eV/Å^3] xx yy zz yz xz xy, kinetic part included, negative when
                                 compressed; NaN without a volume */
  double virial_stress[6];    /**< the same without the kinetic part */
  double momentum[3];         /**< [eV fs/Å] */
  double drift;               /**< slope of `conserved` over the run so far [ueV/atom/ps] */
  double max_force;           /**< [eV/Å] */
  ts_gidx max_force_gid;
} ts_observables;

/** Degrees of freedom: 3N under Langevin noise, 3N-3 where total momentum is conserved and zero
 * (never negative). */
int64_t ts_observe_dof(ts_gidx natoms, bool langevin);

/** Turn the merged partials of step `step` into observables and move the observer on; call it on
 * every step, in order (heat accumulates).  Not collective: equal arguments give equal results.
 * \return 0, or TS_ERR_SIMULATION if a value is not finite or the temperature is absurd (above 100
 * times the target, at least 1e4 K; or above 1e6 K); the message names step, atom (from 1),
 * position and largest force.  `out` is filled in either case. */
int ts_observe(const ts_observe_setup *setup, int64_t step, const ts_partial *total,
               ts_observer *observer, ts_observables *out);

#endif
