/* SPDX-License-Identifier: MIT
 *
 * Switch a test to a locale whose decimal mark is a comma, as a host program may have done.  It is
 * compiled from its few lines below, so that none need be installed (localedef is in libc-bin). */
#ifndef TS_TESTS_COMMA_LOCALE_H
#define TS_TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** True when the comma is the decimal mark now; otherwise says why not. */
static inline bool use_comma_locale(void)
{
  char folder[] = "/tmp/tessera-locale-XXXXXX", command[512];
  if (!mkdtemp(folder)) return false;
  snprintf(command, sizeof command,
           "printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3;3\\n"
           "END LC_NUMERIC\\n' >%s/comma && "
           "localedef --no-archive -c -i %s/comma %s/comma_COMMA >/dev/null 2>&1",
           folder, folder, folder);
  const bool ran = system(command) != -1; /* it warns of the categories that are not there */
  setenv("LOCPATH", folder, 1);
  const bool set = ran && setlocale(LC_ALL, "comma_COMMA");
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) return set;
  if (!set) printf("localedef cannot make a comma locale: not checked under a comma\n");
  return set;
}

#endif
