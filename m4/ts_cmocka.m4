# SPDX-License-Identifier: MIT
# TS_CMOCKA: unit tests; without it the program builds and `make check` runs only the scripts.
AC_DEFUN([TS_CMOCKA], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka],
    [ts_cmocka_found=yes],
    [ts_cmocka_found="no (install Debian's libcmocka-dev to run the unit tests)"])
  AM_CONDITIONAL([TS_HAVE_CMOCKA], [test "$ts_cmocka_found" = yes])
])
