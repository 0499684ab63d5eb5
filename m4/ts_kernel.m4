# SPDX-License-Identifier: MIT
#
# TS_KERNEL_FLAGS: how the kernel sources of models/ are compiled.
#
# They are loops over plain arrays of finite numbers; sums are reordered only where the source asks
# (omp simd reduction), and they get -O3 and the parts of -ffast-math that keep NaN and infinity
# meaningful.  Jump threading splits the clamps in real_exp into branches that the vectoriser cannot
# take.  The list of loops that clang leaves alone (-Wpass-failed) is advice.  On x86-64 they are
# compiled three times (base, AVX2, AVX-512) and chosen at start-up.
AC_DEFUN([TS_KERNEL_FLAGS], [
  TS_KERNEL_CFLAGS=
  AS_IF([test "$enable_debug" = yes], [], [TS_APPEND_FLAGS([TS_KERNEL_CFLAGS], [-O3])])
  TS_APPEND_FLAGS([TS_KERNEL_CFLAGS],
    [-fno-math-errno -fno-trapping-math -fno-signed-zeros -fno-thread-jumps
     -ffp-contract=fast -fopenmp-simd -Wno-pass-failed])
  AC_SUBST([TS_KERNEL_CFLAGS])

  ts_kernel_isas=base
  TS_KERNEL_V3_CFLAGS=
  TS_KERNEL_V4_CFLAGS=
  # under sanitizers the base build is enough: the sources are the same
  AS_CASE([$host_cpu/$enable_sanitizers], [x86_64/no], [
    TS_APPEND_FLAGS([TS_KERNEL_V3_CFLAGS], [-march=x86-64-v3])
    TS_APPEND_FLAGS([TS_KERNEL_V4_CFLAGS], [-march=x86-64-v4 -mprefer-vector-width=512])])
  AS_CASE([$TS_KERNEL_V3_CFLAGS/$TS_KERNEL_V4_CFLAGS], [*x86-64-v3*/*x86-64-v4*],
    [ts_kernel_isas="base x86-64-v3 x86-64-v4"
     AC_DEFINE([TS_KERNEL_X86], [1], [Kernels exist for x86-64-v3 and x86-64-v4 as well.])])
  AC_SUBST([TS_KERNEL_V3_CFLAGS])
  AC_SUBST([TS_KERNEL_V4_CFLAGS])
  AM_CONDITIONAL([TS_KERNEL_X86], [test "$ts_kernel_isas" != base])
])
