# SPDX-License-Identifier: MIT
#
# TS_MPI: Open MPI from pkg-config, so that any compiler serves; else the flags that mpicc shows.
AC_DEFUN([TS_MPI], [
  AC_PATH_PROG([MPICC], [mpicc])
  AC_PATH_PROG([MPIRUN], [mpirun])
  AS_IF([test -n "$MPICC" && ! $PKG_CONFIG --exists ompi ompi-c && test -z "$MPI_LIBS"],
    [MPI_CFLAGS=`$MPICC --showme:compile | sed 's/-I */-isystem /g'`
     MPI_LIBS=`$MPICC --showme:link`])
  TS_PACKAGE([MPI], [mpi], [ompi ompi-c], [libopenmpi-dev], [Open MPI])
  TS_LINKS([MPI], [mpi.h], [return MPI_Init(0, 0);], [libopenmpi-dev], [Open MPI])
])
