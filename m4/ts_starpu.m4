# SPDX-License-Identifier: MIT
#
# TS_STARPU: tasks, and transfers of handles over MPI; StarPU 1.4, else 1.3.
# Says whether this StarPU was built with CUDA (Debian's is not): ts_cuda.m4 asks.
AC_DEFUN([TS_STARPU], [
  TS_PACKAGE([STARPU], [starpu], [starpumpi-1.4 starpumpi-1.3], [libstarpu-dev],
    [StarPU with its MPI layer])
  # the runtime's own tests need no MPI, but one set of flags is simpler than two
  TS_LINKS([STARPU], [starpu.h],
    [struct starpu_conf c; return starpu_conf_init(&c);], [libstarpu-dev], [StarPU])

  ts_saved_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS"
  AC_CACHE_CHECK([whether StarPU was built with CUDA], [ts_cv_starpu_cuda],
    [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#include <starpu_config.h>
#ifndef STARPU_USE_CUDA
#error no CUDA
#endif
]])], [ts_cv_starpu_cuda=yes], [ts_cv_starpu_cuda=no])])
  CPPFLAGS=$ts_saved_CPPFLAGS
])
