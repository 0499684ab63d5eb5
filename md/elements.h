/* SPDX-License-Identifier: MIT
 *
 * The chemical elements: symbol, atomic number and standard atomic mass. */
#ifndef TS_ELEMENTS_H
#define TS_ELEMENTS_H

#include "runtime/types.h"

enum { TS_ELEMENTS = 118 }; /**< atomic numbers run from 1 to this */

/** Symbol of an element ("H" for 1), or NULL if there is none of that number. */
const char *ts_element_symbol(int z);

/** Atomic number of a symbol written as IUPAC does ("Cl", not "CL"), or 0 if it is none.
 * \param [in] symbol  [length] char, need not end with NUL. */
int ts_element_number(const char *symbol, size_t length);

/** Standard atomic mass [eV fs^2/Å^2]; for elements without one, that of the longest-lived isotope.
 * 0 if there is no such element. */
double ts_element_mass(int z);

#endif
