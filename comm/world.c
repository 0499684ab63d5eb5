/* SPDX-License-Identifier: MIT
 *
 * MPI's start and end. */
#include "comm/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"

struct ts_world {
  MPI_Comm comm;  /* of our own: the host's messages never meet ours */
  MPI_Comm local; /* the ranks of this node */
  int rank, size, local_rank, local_size;
  bool started; /* by us, so that we stop it */
};

int tsi_error_from_mpi(int code, const char *call)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return tsi_fail(TS_ERR_MPI, "%s: %s", call, text);
}

static int start(ts_world *world)
{
  int initialized = 0, provided = MPI_THREAD_SINGLE;
  TS_TRY_MPI(MPI_Initialized(&initialized));
  if (!initialized) {
    TS_TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    world->started = true;
  }
  TS_TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  TS_TRY_MPI(MPI_Query_thread(&provided));
  TS_TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &world->size));
  /* files are written by the main thread while the runtime's own thread moves data */
  if (provided < (world->size > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED))
    return tsi_fail(TS_ERR_MPI,
                    "this MPI offers thread level %d, %d is needed (MPI_THREAD_MULTIPLE): use an "
                    "MPI, or a transport of it, that lets several threads communicate",
                    provided, MPI_THREAD_MULTIPLE);
  TS_TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->comm));
  TS_TRY_MPI(MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN));
  TS_TRY_MPI(MPI_Comm_rank(world->comm, &world->rank));
  TS_TRY_MPI(
      MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &world->local));
  TS_TRY_MPI(MPI_Comm_rank(world->local, &world->local_rank));
  TS_TRY_MPI(MPI_Comm_size(world->local, &world->local_size));
  ts_log_set_rank(world->rank);
  return 0;
}

bool ts_world_launched(int *rank)
{
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  *rank = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (!text) continue;
    *rank = atoi(text);
    return true;
  }
  return false;
}

int ts_world_create(ts_world **out)
{
  TS_TRY(TSI_NEW(*out, 1));
  (*out)->comm = (*out)->local = MPI_COMM_NULL;
  const int status = start(*out);
  if (status) ts_world_destroy(out);
  return status;
}

void ts_world_destroy(ts_world **world)
{
  ts_world *w = *world;
  if (!w) return;
  if (w->local != MPI_COMM_NULL) MPI_Comm_free(&w->local);
  if (w->comm != MPI_COMM_NULL) MPI_Comm_free(&w->comm);
  if (w->started) MPI_Finalize();
  free(w);
  *world = NULL;
}

_Noreturn void ts_world_abort(const ts_world *world, int status)
{
  MPI_Abort(world->comm, ts_status_exit(status));
  abort();
}

MPI_Comm ts_world_comm(const ts_world *world)
{
  return world->comm;
}

int ts_world_rank(const ts_world *world)
{
  return world->rank;
}

int ts_world_size(const ts_world *world)
{
  return world->size;
}

int ts_world_local_rank(const ts_world *world)
{
  return world->local_rank;
}

int ts_world_local_size(const ts_world *world)
{
  return world->local_size;
}

static bool overlap(const ts_topology *a, const ts_topology *b)
{
  for (int i = 0; i < a->cores; i++)
    for (int j = 0; j < b->cores; j++)
      if (a->thread_of_core[i] == b->thread_of_core[j]) return true;
  return false;
}

int ts_world_share(const ts_world *world, const ts_topology *topology, int *sharers, int *share)
{
  *sharers = 0;
  *share = 0;
  ts_topology *all = NULL;
  TS_TRY(TSI_NEW(all, world->local_size));
  const int failed = MPI_Allgather(topology, sizeof *topology, MPI_BYTE, all, sizeof *topology,
                                   MPI_BYTE, world->local);
  for (int r = 0; !failed && r < world->local_size; r++) {
    const bool shares = r == world->local_rank || overlap(topology, &all[r]);
    *sharers += shares;
    *share += shares && r < world->local_rank;
  }
  free(all);
  return failed ? tsi_error_from_mpi(failed, "MPI_Allgather of the cores") : 0;
}
