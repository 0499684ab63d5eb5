# SPDX-License-Identifier: MIT
# TS_HDF5: parallel HDF5 built for the same MPI, behind md/h5.h.
AC_DEFUN([TS_HDF5], [
  TS_PACKAGE([HDF5], [hdf5], [hdf5-openmpi], [libhdf5-openmpi-dev], [parallel HDF5])
  TS_LINKS([HDF5], [hdf5.h],
    [return H5Pset_fapl_mpio(H5P_DEFAULT, MPI_COMM_WORLD, MPI_INFO_NULL) < 0;],
    [libhdf5-openmpi-dev], [parallel HDF5])
])
