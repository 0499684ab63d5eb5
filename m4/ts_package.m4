# SPDX-License-Identifier: MIT
#
# TS_PACKAGE(PREFIX, variable, modules tried in order, Debian package, what it is for)
#
# Finds the first of the pkg-config modules and sets PREFIX_CFLAGS, PREFIX_LIBS, ts_<variable>_module
# and ts_<variable>_version.  Headers of others are searched as system headers: our warnings are not
# for them.  Stops when there is none, and says what to install.
AC_DEFUN([TS_PACKAGE], [
  AC_ARG_VAR([$1_CFLAGS], [compiler flags for $5, instead of those of pkg-config])
  AC_ARG_VAR([$1_LIBS], [linker flags for $5, instead of those of pkg-config])
  ts_$2_module=none
  AC_MSG_CHECKING([for $5 ($3)])
  for ts_module in $3; do
    if $PKG_CONFIG --exists "$ts_module"; then ts_$2_module=$ts_module; break; fi
  done
  AS_IF([test "$ts_$2_module" != none],
    [ts_$2_version=`$PKG_CONFIG --modversion "$ts_$2_module"`
     AS_IF([test -z "$$1_CFLAGS"], [$1_CFLAGS=`$PKG_CONFIG --cflags "$ts_$2_module" | sed 's/-I */-isystem /g'`])
     AS_IF([test -z "$$1_LIBS"], [$1_LIBS=`$PKG_CONFIG --libs "$ts_$2_module"`])
     AC_MSG_RESULT([$ts_$2_module $ts_$2_version])],
    [test -n "$$1_LIBS"],
    [ts_$2_version="given by hand"
     AC_MSG_RESULT([$$1_LIBS])],
    [AC_MSG_RESULT([no])
     TS_MISSING([$4], [$5])])
])

# TS_MISSING(Debian package, what it is for): stop, and say what to install.
AC_DEFUN([TS_MISSING],
  [AC_MSG_ERROR([$2 is missing: install Debian's $1
  (tools/install-dependencies installs everything that the build needs)])])

# TS_LINKS(PREFIX, header, statement, Debian package, what it is for): the library really links.
AC_DEFUN([TS_LINKS], [
  ts_saved_CPPFLAGS=$CPPFLAGS; ts_saved_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $$1_CFLAGS"; LIBS="$$1_LIBS $LIBS"
  AC_MSG_CHECKING([whether $5 links])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$2>]], [[$3]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$5 was found but a program with it does not build: is Debian's $4 complete? (see config.log)])])
  CPPFLAGS=$ts_saved_CPPFLAGS; LIBS=$ts_saved_LIBS
])
