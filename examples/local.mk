# SPDX-License-Identifier: MIT
#
# The examples are installed as they stand, one folder each.
nobase_dist_pkgdata_DATA += examples/salt-water/salt-water-1728.xyz
nobase_dist_pkgdata_DATA += examples/salt-water/salt-water-216.xyz
nobase_dist_pkgdata_DATA += examples/salt-water/salt-water-small.safetensors
nobase_dist_pkgdata_DATA += examples/salt-water/job.json
