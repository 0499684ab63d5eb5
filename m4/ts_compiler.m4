# SPDX-License-Identifier: MIT
#
# TS_COMPILER: warnings, the flags of every file, and the two debugging options.
# -ffp-contract=off everywhere: a sum must not depend on what a compiler chose to fuse.  The
# kernels of models/ have their own flags (ts_kernel.m4).

# TS_APPEND_FLAGS(variable, flags): append those that the C compiler takes, after what is there.
AC_DEFUN([TS_APPEND_FLAGS], [
  for ts_flag in m4_normalize([$2]); do
    ts_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $$1 -Werror $ts_flag"
    AC_MSG_CHECKING([whether $CC takes $ts_flag])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes]); $1="$$1 $ts_flag"],
      [AC_MSG_RESULT([no])])
    CFLAGS=$ts_saved_CFLAGS
  done
])

AC_DEFUN([TS_COMPILER], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug], [compile without optimisation, for a debugger])],
    [], [enable_debug=no])
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers], [address and undefined-behaviour sanitizers])],
    [], [enable_sanitizers=no])
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [a warning is an error])],
    [], [enable_werror=no])

  TS_CFLAGS=
  AS_IF([test "$enable_debug" = yes],
    [TS_APPEND_FLAGS([TS_CFLAGS], [-O0 -g3])],
    [TS_APPEND_FLAGS([TS_CFLAGS], [-O2 -g])])
  TS_APPEND_FLAGS([TS_CFLAGS], [-ffp-contract=off])
  AS_IF([test "$enable_sanitizers" = yes],
    [TS_SANITIZERS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
  TS_CXXFLAGS="$TS_CFLAGS -Wall -Wextra $TS_SANITIZERS"
  TS_APPEND_FLAGS([TS_CFLAGS],
    [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
     -Wcast-align=strict -Wvla -Wformat=2])
  TS_CFLAGS="$TS_CFLAGS $TS_SANITIZERS"
  AS_IF([test "$enable_werror" = yes],
    [TS_CFLAGS="$TS_CFLAGS -Werror"; TS_CXXFLAGS="$TS_CXXFLAGS -Werror"])
  AC_SUBST([TS_CFLAGS])
  AC_SUBST([TS_CXXFLAGS])
  AC_SUBST([TS_SANITIZERS])
])
