/* SPDX-License-Identifier: MIT
 *
 * The processors that this process may use.  A container, a batch system or `mpirun --bind-to` may
 * allow fewer than the machine has; workers started beyond that share cores and run slower than
 * fewer would, so every count here is of the allowed ones. */
#ifndef TS_TOPOLOGY_H
#define TS_TOPOLOGY_H

#include "runtime/types.h"

enum { TS_TOPOLOGY_CORES = 1024 }; /**< cores of one node that are told apart */

typedef struct ts_topology {
  int cores; /**< allowed cores (a core is allowed when one of its threads is) */
  int16_t thread_of_core[TS_TOPOLOGY_CORES]; /**< first allowed hardware thread of each allowed
                                                  core, hwloc's logical index */
  int threads;                               /**< allowed hardware threads */
  int packages;                              /**< packages with an allowed core */
  int numa_nodes;                            /**< memory nodes near an allowed core */
  int machine_cores;                         /**< cores of the whole machine, allowed or not */
  double cpu_quota;      /**< processors' worth of time the control group grants; 0: no limit */
  size_t l2_bytes;       /**< level-2 cache of one allowed core; 0: unknown */
  size_t l3_bytes;       /**< level-3 cache that it shares; 0: none or unknown */
  int l3_sharers;        /**< allowed cores that share it */
  uint64_t memory_bytes; /**< memory of the machine; 0: unknown */
  char cpu_model[96];    /**< e.g. "AMD EPYC 7B13"; "" when unknown */
} ts_topology;

/** Look at the machine and at the binding of the calling thread, which is the process's where
 * called from the main thread (libraries may have started threads with masks of their own).
 * Not collective.
 * \return 0 or TS_ERR_SYSTEM. */
int ts_topology_read(ts_topology *out);

/** CPU workers that one of `sharers` processes with these same allowed cores should run: its part
 * of them (and of the control group's quota), at least 1. */
int ts_topology_workers(const ts_topology *topology, int sharers);

/** One line for people.  Returns what snprintf would. */
int ts_topology_describe(const ts_topology *topology, char *text, size_t size);

#endif
