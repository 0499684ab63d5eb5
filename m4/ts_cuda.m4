# SPDX-License-Identifier: MIT
#
# TS_CUDA: optional.  TS_HAVE_CUDA is set when there are nvcc, the run time, cuBLAS, and a StarPU
# that was itself built with CUDA: device kernels without a runtime that schedules them are of no use.
AC_DEFUN([TS_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR], [where the CUDA toolkit is, "no" to ignore it (default: where nvcc is)])],
    [], [with_cuda=check])
  ts_cuda_found=no
  ts_cuda_links=no
  AS_IF([test "$with_cuda" = no], [ts_cuda_found="no (as asked)"], [
    AS_CASE([$with_cuda], [check|yes], [ts_cuda_path=$PATH:/usr/local/cuda/bin],
      [ts_cuda_path=$with_cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$ts_cuda_path])
    AS_IF([test -z "$NVCC"], [ts_cuda_found="no (no nvcc)"], [
      ts_cuda_root=`dirname "$NVCC"`; ts_cuda_root=`dirname "$ts_cuda_root"`
      ts_cuda_version=[`"$NVCC" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'`]
      CUDA_CFLAGS="-isystem $ts_cuda_root/include"
      CUDA_LIBS="-L$ts_cuda_root/lib64 -lcublas -lcudart"
      ts_saved_CPPFLAGS=$CPPFLAGS; ts_saved_LIBS=$LIBS
      CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"; LIBS="$CUDA_LIBS $LIBS"
      AC_MSG_CHECKING([whether CUDA $ts_cuda_version links])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cublas_v2.h>
#include <cuda_runtime_api.h>]],
        [[cublasHandle_t h; int n; return cublasCreate(&h) || cudaGetDeviceCount(&n);]])],
        [ts_cuda_found=yes; ts_cuda_links=yes; AC_MSG_RESULT([yes])],
        [ts_cuda_found="no (nvcc $ts_cuda_version, but its libraries do not link)"; AC_MSG_RESULT([no])])
      CPPFLAGS=$ts_saved_CPPFLAGS; LIBS=$ts_saved_LIBS
      AS_IF([test "$ts_cuda_found" = yes && test "$ts_cv_starpu_cuda" = no],
        [ts_cuda_found="no (toolkit $ts_cuda_version is there, but this StarPU was built without CUDA)"])
    ])
    AS_IF([test "$ts_cuda_found" = yes],
      [ts_cuda_found="toolkit $ts_cuda_version"
       ts_have_cuda=yes
       AC_DEFINE([TS_HAVE_CUDA], [1], [Device kernels are built, and StarPU schedules them.])],
      [CUDA_CFLAGS= CUDA_LIBS=
       AS_IF([test "$with_cuda" != check], [AC_MSG_ERROR([--with-cuda=$with_cuda: $ts_cuda_found])])])
  ])
  AM_CONDITIONAL([TS_HAVE_CUDA], [test "$ts_have_cuda" = yes])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
])
