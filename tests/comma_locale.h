/* SPDX-License-Identifier: MIT
 *
 * Switch a test to a locale whose decimal mark is a comma, as a host program may have done.  Where
 * none is installed, one is compiled into a temporary folder with localedef (Debian: locales). */
#ifndef TS_TESTS_COMMA_LOCALE_H
#define TS_TESTS_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** True when the comma is the decimal mark now; otherwise says why not. */
static inline bool use_comma_locale(void)
{
  static const char *const known[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (setlocale(LC_ALL, known[i])) return true;
  char folder[] = "/tmp/tessera-locale-XXXXXX", command[256];
  if (!mkdtemp(folder)) return false;
  snprintf(command, sizeof command,
           "localedef --no-archive -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null >/dev/null",
           folder);
  const bool made = system(command) == 0;
  setenv("LOCPATH", folder, 1);
  const bool set = made && setlocale(LC_ALL, "de_DE.UTF-8");
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) return set;
  if (!set) printf("no comma locale, and localedef cannot make one: not checked under a comma\n");
  return set;
}

#endif
