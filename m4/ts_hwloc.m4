# SPDX-License-Identifier: MIT
# TS_HWLOC: the machine's topology, hwloc 2.
AC_DEFUN([TS_HWLOC], [
  TS_PACKAGE([HWLOC], [hwloc], [hwloc], [libhwloc-dev], [hwloc])
  TS_LINKS([HWLOC], [hwloc.h],
    [hwloc_topology_t t; return hwloc_topology_init(&t) || HWLOC_API_VERSION < 0x00020000;],
    [libhwloc-dev], [hwloc])
])
