/* SPDX-License-Identifier: MIT
 *
 * What a program on several ranks starts before a step: MPI, StarPU with one worker, collectives.
 * TS_TRANSPORT=starpu-mpi in the environment: handles travel by StarPU-MPI. */
#ifndef TS_TEST_RANKS_START_H
#define TS_TEST_RANKS_START_H

#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "tests/case.h"

static ts_world *world;
static ts_ranks ranks;
static ts_collective *collective;
static ts_engine *engine;

static void start(void)
{
  ts_topology topology;
  ts_engine_params params;
  ts_collective_params how;
  must(ts_world_create(&world));
  must(ts_ranks_of(ts_world_comm(world), &ranks));
  must(ts_topology_read(&topology));
  ts_engine_params_init(&params);
  const char *transport = getenv("TS_TRANSPORT");
  params.workers = 1;
  if (transport && strcmp(transport, "starpu-mpi") == 0) params.transport = TS_TRANSPORT_STARPU;
  params.comm = ranks.size > 1 ? ranks.comm : MPI_COMM_NULL;
  must(ts_world_share(world, &topology, &params.sharers, &params.share));
  must(ts_engine_create(&topology, &params, &engine));
  ts_collective_params_init(&how);
  how.yield = params.sharers > topology.cores;
  how.algorithm = TS_ALGORITHM_LL_ONE; /* not measured at the start: machines differ */
  must(ts_collective_create(ranks.comm, &how, &collective));
}

static void stop(void)
{
  ts_collective_destroy(&collective);
  ts_engine_destroy(&engine);
  ts_world_destroy(&world);
}

#endif
