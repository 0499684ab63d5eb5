/* SPDX-License-Identifier: MIT
 *
 * The units of the program, stated once: length Å, energy eV, time fs, temperature K, charge e.
 * Everything else follows: velocity Å/fs, force eV/Å, mass eV fs^2/Å^2, momentum eV fs/Å, stress
 * eV/Å^3.  People think of masses in u and of pressures in bar, so those two are converted where
 * numbers enter and leave.  Constants: CODATA 2018 (e and k_B are exact since 2019). */
#ifndef TS_UNITS_H
#define TS_UNITS_H

#define TS_ELEMENTARY_CHARGE 1.602176634e-19 /**< J per eV, exact */
#define TS_ATOMIC_MASS_KG 1.66053906660e-27  /**< kg per u */

/** Boltzmann's constant [eV/K]. */
#define TS_BOLTZMANN (1.380649e-23 / TS_ELEMENTARY_CHARGE)

/** One u in eV fs^2/Å^2: 1 Å/fs is 1e5 m/s. */
#define TS_ATOMIC_MASS (TS_ATOMIC_MASS_KG * 1e10 / TS_ELEMENTARY_CHARGE)

/** One eV/Å^3 in bar and in GPa. */
#define TS_BAR_PER_EV_A3 1.602176634e6
#define TS_GPA_PER_EV_A3 160.2176634

#define TS_FS_PER_PS 1000.0
#define TS_MICRO 1e-6

#endif
