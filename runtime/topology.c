/* SPDX-License-Identifier: MIT
 *
 * hwloc, behind our own record.  A core counts when one of its hardware threads is in the mask of
 * this process; the control group's processor quota (containers) is read from its files, because no
 * mask shows it. */
#include "runtime/topology.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/error.h"

/* Objects of a type that have a thread in the mask. */
static int count_touched(hwloc_topology_t topology, hwloc_obj_type_t type,
                         hwloc_const_bitmap_t mask)
{
  int count = 0;
  for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology, type, o));)
    count += hwloc_bitmap_intersects(o->cpuset, mask);
  return count;
}

/* The logical index of an object's first thread in the mask, -1 if none. */
static int first_thread(hwloc_topology_t topology, hwloc_obj_t object, hwloc_const_bitmap_t mask)
{
  for (hwloc_obj_t pu = NULL;
       (pu = hwloc_get_next_obj_inside_cpuset_by_type(topology, object->cpuset, HWLOC_OBJ_PU, pu));)
    if (hwloc_bitmap_isset(mask, pu->os_index)) return (int)pu->logical_index;
  return -1;
}

static int list_cores(hwloc_topology_t topology, hwloc_const_bitmap_t mask, ts_topology *out)
{
  /* a few virtual machines show no cores, only threads */
  const int depth = hwloc_get_type_or_below_depth(topology, HWLOC_OBJ_CORE);
  out->machine_cores = (int)hwloc_get_nbobjs_by_depth(topology, depth);
  for (int i = 0; i < out->machine_cores; i++) {
    const hwloc_obj_t core = hwloc_get_obj_by_depth(topology, depth, (unsigned)i);
    const int thread = first_thread(topology, core, mask);
    if (thread < 0) continue;
    if (out->cores == TS_TOPOLOGY_CORES)
      return tsi_fail(TS_ERR_SYSTEM, "more than %d cores on one node are not supported",
                      TS_TOPOLOGY_CORES);
    out->thread_of_core[out->cores++] = (int16_t)thread;
  }
  return out->cores > 0 ? 0
                        : tsi_fail(TS_ERR_SYSTEM, "hwloc finds no core that this process may use");
}

static void measure_caches(hwloc_topology_t topology, ts_topology *out)
{
  const hwloc_obj_t pu = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, out->thread_of_core[0]);
  for (hwloc_obj_t o = pu; o; o = o->parent) {
    if (o->type == HWLOC_OBJ_L2CACHE) out->l2_bytes = o->attr->cache.size;
    if (o->type != HWLOC_OBJ_L3CACHE) continue;
    out->l3_bytes = o->attr->cache.size;
    for (int i = 0; i < out->cores; i++) {
      const hwloc_obj_t other =
          hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, out->thread_of_core[i]);
      out->l3_sharers += hwloc_bitmap_isset(o->cpuset, other->os_index);
    }
  }
}

/* The quota of one control group, version 2: "max 100000" or "150000 100000"; 0 if none. */
static double quota_of(const char *directory)
{
  char path[4300];
  double quota, period;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  const bool limited = fscanf(file, "%lf %lf", &quota, &period) == 2 && period > 0;
  fclose(file);
  return limited ? quota / period : 0;
}

/* The tightest quota from this process's control group up to the root. */
static double read_quota(void)
{
  char line[4096], directory[4200] = "";
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, "0::", 3) == 0) {
      line[strcspn(line, "\n")] = 0;
      snprintf(directory, sizeof directory, "/sys/fs/cgroup%s", line + 3);
    }
  fclose(file);

  double tightest = 0;
  const size_t root = strlen("/sys/fs/cgroup");
  while (strlen(directory) >= root) {
    const double quota = quota_of(directory);
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
    *strrchr(directory, '/') = 0;
  }
  return tightest;
}

static int read_loaded(hwloc_topology_t topology, hwloc_bitmap_t mask, ts_topology *out)
{
  if (hwloc_get_cpubind(topology, mask, HWLOC_CPUBIND_THREAD) || hwloc_bitmap_iszero(mask))
    hwloc_bitmap_copy(mask, hwloc_topology_get_allowed_cpuset(topology));
  TS_TRY(list_cores(topology, mask, out));
  out->threads = count_touched(topology, HWLOC_OBJ_PU, mask);
  out->packages = count_touched(topology, HWLOC_OBJ_PACKAGE, mask);
  out->numa_nodes = count_touched(topology, HWLOC_OBJ_NUMANODE, mask);
  measure_caches(topology, out);
  out->cpu_quota = read_quota();
  const hwloc_obj_t machine = hwloc_get_root_obj(topology);
  out->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const char *model = hwloc_obj_get_info_by_name(package ? package : machine, "CPUModel");
  snprintf(out->cpu_model, sizeof out->cpu_model, "%s", model ? model : "");
  return 0;
}

int ts_topology_read(ts_topology *out)
{
  memset(out, 0, sizeof *out);
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology)) return tsi_fail(TS_ERR_SYSTEM, "hwloc does not start");
  hwloc_bitmap_t mask = hwloc_bitmap_alloc();
  const int status = mask && hwloc_topology_load(topology) == 0
                         ? read_loaded(topology, mask, out)
                         : tsi_fail(TS_ERR_SYSTEM, "hwloc cannot read the machine's topology");
  hwloc_bitmap_free(mask);
  hwloc_topology_destroy(topology);
  return status;
}

int ts_topology_workers(const ts_topology *topology, int sharers)
{
  int cores = topology->cores;
  /* a quota below the mask: more workers than granted time would only wait for each other */
  if (topology->cpu_quota > 0 && topology->cpu_quota < cores) cores = (int)topology->cpu_quota;
  const int workers = cores / (sharers > 0 ? sharers : 1);
  return workers > 0 ? workers : 1;
}

int ts_topology_describe(const ts_topology *topology, char *text, size_t size)
{
  char quota[64] = "", l3[64] = "";
  if (topology->cpu_quota > 0)
    snprintf(quota, sizeof quota, ", limited to %.2f processors' time", topology->cpu_quota);
  if (topology->l3_bytes)
    snprintf(l3, sizeof l3, ", L3 %.1f MiB for %d", (double)topology->l3_bytes / 0x1p20,
             topology->l3_sharers);
  return snprintf(text, size,
                  "%s: %d of %d cores (%d threads, %d packages, %d memory nodes)%s, L2 %.2f MiB%s, "
                  "memory %.1f GiB",
                  topology->cpu_model[0] ? topology->cpu_model : "unknown processor",
                  topology->cores, topology->machine_cores, topology->threads, topology->packages,
                  topology->numa_nodes, quota, (double)topology->l2_bytes / 0x1p20, l3,
                  (double)topology->memory_bytes / 0x1p30);
}
