/* SPDX-License-Identifier: MIT
 *
 * Numbers in text files: read strictly, written with the fewest digits that read back to the same
 * bits, and with a point whatever the host program's locale says. */
#ifndef TS_NUMBER_H
#define TS_NUMBER_H

#include <locale.h>

#include "runtime/types.h"

enum { TSI_NUMBER_TEXT = 32 }; /* room for any written number */

/** Give this thread the C locale, before calling a library that reads or writes numbers.
 * \return the one before, for uselocale() afterwards. */
locale_t tsi_number_plain(void);

/** Read a whole token as a decimal number; exponents may be e, E, d or D (Fortran).  Refused:
 * hexadecimal, inf, nan, values beyond double, more than 63 characters, anything behind the number.
 * \param [in] token  [length] char, need not end with NUL.
 * \return true if it is one. */
bool tsi_number_double(const char *token, size_t length, double *out);

/** Read a whole token as a decimal integer of 64 bits. */
bool tsi_number_int64(const char *token, size_t length, int64_t *out);

/** Write a finite number; at most 24 characters.  Returns the length. */
int tsi_number_write(double value, char text[TSI_NUMBER_TEXT]);

#endif
