# SPDX-License-Identifier: MIT
# TS_NCCL: optional; NCCL >= 2.28 (symmetric memory and nccl_device.h) beside a CUDA toolkit that
# links, whatever StarPU can do: comm/collective_gpu.cu needs no StarPU.
AC_DEFUN([TS_NCCL], [
  ts_have_nccl=no
  AS_IF([test "$ts_cuda_links" = yes], [
    NCCL_CFLAGS="-isystem $ts_cuda_root/include $NCCL_CFLAGS"
    NCCL_LIBS="-L$ts_cuda_root/lib64 -lnccl -lcudart"
    ts_saved_CPPFLAGS=$CPPFLAGS; ts_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $NCCL_CFLAGS"; LIBS="$NCCL_LIBS $LIBS"
    AC_MSG_CHECKING([for NCCL >= 2.28])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error too old
#endif]], [[int v; return ncclGetVersion(&v);]])],
      [ts_have_nccl=yes
       ts_nccl_found="yes (collectives among GPUs are built, and tested where there is a GPU)"],
      [ts_nccl_found="no (2.28 or newer was not found: no collectives among GPUs)"
       NCCL_CFLAGS= NCCL_LIBS=])
    AC_MSG_RESULT([$ts_have_nccl])
    CPPFLAGS=$ts_saved_CPPFLAGS; LIBS=$ts_saved_LIBS
  ], [ts_nccl_found="no (only used with CUDA)"])
  AM_CONDITIONAL([TS_HAVE_NCCL], [test "$ts_have_nccl" = yes])
  AC_SUBST([NCCL_CFLAGS])
  AC_SUBST([NCCL_LIBS])
])
