# SPDX-License-Identifier: MIT
#
# TS_CBLAS: dense matrices.  OpenBLAS by default; CBLAS_LIBS and CBLAS_CFLAGS name another.
# With OpenBLAS its own thread count can be set by a call (TS_HAVE_OPENBLAS).
AC_DEFUN([TS_CBLAS], [
  TS_PACKAGE([CBLAS], [cblas], [openblas cblas], [libopenblas-dev], [a CBLAS])
  TS_LINKS([CBLAS], [cblas.h],
    [float x = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);],
    [libopenblas-dev], [CBLAS])
  ts_saved_LIBS=$LIBS
  LIBS="$CBLAS_LIBS $LIBS"
  AC_CHECK_FUNC([openblas_set_num_threads],
    [AC_DEFINE([TS_HAVE_OPENBLAS], [1], [The CBLAS is OpenBLAS.])])
  LIBS=$ts_saved_LIBS
  ts_cblas_found="$ts_cblas_module $ts_cblas_version"
])
