/* SPDX-License-Identifier: MIT
 *
 * The command line. */
#include <stdio.h>

int main(void)
{
  puts(PACKAGE_STRING);
  return 0;
}
