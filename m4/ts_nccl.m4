# SPDX-License-Identifier: MIT
# TS_NCCL: optional, only looked for with CUDA; NCCL >= 2.28 (one-sided and symmetric memory).
AC_DEFUN([TS_NCCL], [
  ts_nccl_found="no"
  AS_IF([test "$ts_have_cuda" = yes], [
    ts_saved_CPPFLAGS=$CPPFLAGS; ts_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS $NCCL_CFLAGS"; LIBS="-lnccl $CUDA_LIBS $LIBS"
    AC_MSG_CHECKING([for NCCL >= 2.28])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error too old
#endif]], [[int v; return ncclGetVersion(&v);]])],
      [ts_nccl_found=yes
       NCCL_LIBS=-lnccl
       AC_DEFINE([TS_HAVE_NCCL], [1], [NCCL 2.28 or newer is linked.])])
    AC_MSG_RESULT([$ts_nccl_found])
    CPPFLAGS=$ts_saved_CPPFLAGS; LIBS=$ts_saved_LIBS
  ], [ts_nccl_found="no (only used with CUDA)"])
  AC_SUBST([NCCL_LIBS])
])
