/* SPDX-License-Identifier: MIT
 *
 * Create and destroy: the nodes, their leaders, and one shared segment per node for all protocols.
 * A failure on one rank is agreed upon, so that all fail together and none waits. */
#include <stdlib.h>
#include <string.h>

#include "comm/collective_impl.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"

static const char *const names[TS_ALGORITHMS] = {
    "auto", "ll-one-shot", "ll-two-shot", "sentinel-one-shot", "sentinel-two-shot", "ll128", "mpi"};

const char *ts_algorithm_name(ts_algorithm algorithm)
{
  return names[algorithm];
}

int ts_algorithm_parse(const char *name, ts_algorithm *out)
{
  for (int i = 0; i < TS_ALGORITHMS; i++)
    if (!strcmp(name, names[i])) {
      *out = (ts_algorithm)i;
      return 0;
    }
  return tsi_fail(TS_ERR_ARG,
                  "collectives: \"%s\" is none of auto, ll-one-shot, ll-two-shot, "
                  "sentinel-one-shot, sentinel-two-shot, ll128, mpi",
                  name);
}

void ts_collective_params_init(ts_collective_params *params)
{
  *params = (ts_collective_params){.words = 4096};
}

/* The same status on all ranks: the first failure, with its message. */
static int agree(MPI_Comm comm, int status)
{
  int rank = 0, worst[2], mine[2];
  char text[512] = "";
  TS_TRY_MPI(MPI_Comm_rank(comm, &rank));
  mine[0] = status;
  mine[1] = rank;
  TS_TRY_MPI(MPI_Allreduce(mine, worst, 1, MPI_2INT, MPI_MINLOC, comm));
  if (!worst[0]) return 0;
  if (rank == worst[1]) strncat(text, ts_error_message(), sizeof text - 1);
  TS_TRY_MPI(MPI_Bcast(text, sizeof text, MPI_CHAR, worst[1], comm));
  return tsi_fail(worst[0], "%s", text);
}

static int split_nodes(ts_collective *c, int node_ranks)
{
  int local = 0;
  TS_TRY_MPI(MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c->node));
  TS_TRY_MPI(MPI_Comm_rank(c->node, &local));
  if (!node_ranks) return 0;
  MPI_Comm whole = c->node;
  c->node = MPI_COMM_NULL;
  const int failed = MPI_Comm_split(whole, local / node_ranks, 0, &c->node);
  MPI_Comm_free(&whole);
  return failed ? tsi_error_from_mpi(failed, "MPI_Comm_split of a node") : 0;
}

/* Who is where. */
static int find_nodes(ts_collective *c)
{
  int here[2] = {0, 0}, node_size = 0, (*where)[2] = NULL;
  TS_TRY_MPI(MPI_Comm_rank(c->node, &here[1]));
  TS_TRY_MPI(MPI_Comm_size(c->node, &node_size));
  TS_TRY_MPI(MPI_Comm_split(c->comm, here[1] ? MPI_UNDEFINED : 0, 0, &c->leaders));
  if (!here[1]) TS_TRY_MPI(MPI_Comm_rank(c->leaders, &here[0]));
  TS_TRY_MPI(MPI_Bcast(&here[0], 1, MPI_INT, 0, c->node));
  TS_TRY(TSI_NEW(c->node_of, c->size));
  TS_TRY(TSI_NEW(c->local_of, c->size));
  TS_TRY(TSI_NEW(c->names, node_size));
  TS_TRY(TSI_NEW(where, c->size));
  const int failed = MPI_Allgather(here, 2, MPI_INT, where, 2, MPI_INT, c->comm);
  for (int r = 0; !failed && r < c->size; r++) {
    c->node_of[r] = where[r][0];
    c->local_of[r] = where[r][1];
    if (where[r][0] + 1 > c->nodes) c->nodes = where[r][0] + 1;
    if (where[r][0] == here[0]) c->names[where[r][1]] = r;
  }
  free(where);
  return failed ? tsi_error_from_mpi(failed, "MPI_Allgather of the nodes") : 0;
}

/* Ranks of this node that share a core: waiting must give it away. */
static int must_yield(ts_collective *c, bool asked, bool *yield)
{
  ts_topology topology;
  int size = 0, crowded = 0;
  TS_TRY(ts_topology_read(&topology));
  TS_TRY_MPI(MPI_Comm_size(c->node, &size));
  /* bound apart, each rank has cores of its own; unbound, all have the same: count the union */
  unsigned char all[TS_TOPOLOGY_CORES] = {0};
  int cores = 0;
  for (int i = 0; i < topology.cores; i++)
    if (topology.thread_of_core[i] < (int)sizeof all) all[topology.thread_of_core[i]] = 1;
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, all, sizeof all, MPI_UNSIGNED_CHAR, MPI_MAX, c->node));
  for (size_t i = 0; i < sizeof all; i++)
    cores += all[i];
  crowded = size > cores || (topology.cpu_quota > 0 && size > topology.cpu_quota);
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &crowded, 1, MPI_INT, MPI_MAX, c->comm));
  if (crowded && !asked && c->rank == 0) /* who asked has said why */
    ts_log(TS_LOG_INFO, "collectives: more ranks than cores on a node; waiting ranks yield");
  *yield = asked || crowded;
  return 0;
}

static bool alive(const void *shm, int rank)
{
  return ts_shm_alive(shm, rank);
}

/* Where the three protocols lie in the segment. */
typedef struct layout {
  size_t ll, sentinel, line, bytes;
} layout;

static layout lay_out(int size, size_t words)
{
  layout l = {0};
  l.sentinel = l.ll + ts_cbuffer_bytes(TS_CMODE_LL, size, words);
  l.line = l.sentinel + ts_cbuffer_bytes(TS_CMODE_SENTINEL, size, words);
  l.bytes = l.line + ts_cline_bytes(size, words);
  return l;
}

size_t ts_collective_scratch(const ts_collective *c, ts_algorithm algorithm)
{
  const int size = c->ll.size;
  switch (algorithm) {
    case TS_ALGORITHM_LL_ONE:
    case TS_ALGORITHM_LL_TWO:
      return ts_cbuffer_bytes(TS_CMODE_LL, size, c->ll.words);
    case TS_ALGORITHM_SENTINEL_ONE:
    case TS_ALGORITHM_SENTINEL_TWO:
      return ts_cbuffer_bytes(TS_CMODE_SENTINEL, size, c->ll.words);
    case TS_ALGORITHM_LL128:
      return ts_cline_bytes(size, c->ll.words);
    default:
      return 0;
  }
}

static int create_segment(ts_collective *c, int size, size_t words)
{
  const layout l = lay_out(size, words);
  TS_TRY(ts_shm_create(l.bytes, &c->shm));
  unsigned char *memory = ts_shm_memory(c->shm);
  ts_cbuffer_fill(TS_CMODE_LL, size, words, memory + l.ll);
  ts_cbuffer_fill(TS_CMODE_SENTINEL, size, words, memory + l.sentinel);
  ts_cline_fill(size, words, memory + l.line);
  return 0;
}

static int use_segment(ts_collective *c, int local, int size, size_t words, bool yield)
{
  const layout l = lay_out(size, words);
  const tsi_cwait wait = {.yield = yield, .alive = alive, .arg = c->shm, .names = c->names};
  unsigned char *memory = ts_shm_memory(c->shm);
  TS_TRY(ts_shm_enlist(c->shm, local));
  TS_TRY(ts_cbuffer_init(&c->ll, TS_CMODE_LL, local, size, words, memory + l.ll, &wait));
  TS_TRY(ts_cbuffer_init(&c->sentinel, TS_CMODE_SENTINEL, local, size, words, memory + l.sentinel,
                         &wait));
  ts_cline_init(&c->line, local, size, words, memory + l.line, &wait);
  return 0;
}

static int share(ts_collective *c, size_t words, bool asked)
{
  int local = 0, size = 0, status = 0;
  bool yield = false;
  char name[128] = "";
  TS_TRY_MPI(MPI_Comm_rank(c->node, &local));
  TS_TRY_MPI(MPI_Comm_size(c->node, &size));
  TS_TRY(agree(c->comm, must_yield(c, asked, &yield)));
  if (local == 0) status = create_segment(c, size, words);
  TS_TRY(agree(c->comm, status));
  if (local == 0) strncat(name, ts_shm_name(c->shm), sizeof name - 1);
  TS_TRY_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, c->node));
  if (local) status = ts_shm_attach(name, lay_out(size, words).bytes, &c->shm);
  if (!status) status = use_segment(c, local, size, words, yield);
  if (!status) status = TSI_NEW(c->stage, (size_t)c->size * TSI_STAGE);
  if (!status) status = TSI_NEW(c->sums, (size_t)c->nodes * TSI_GATHER);
  status = agree(c->comm, status);
  if (local == 0) ts_shm_unlink(c->shm);
  return status;
}

static int check(const ts_collective_params *params)
{
  if ((unsigned)params->algorithm >= TS_ALGORITHMS)
    return tsi_fail(TS_ERR_ARG, "collectives: algorithm %d is not one", (int)params->algorithm);
  if (params->words < TSI_LINE / sizeof(ts_word) || params->words > 1u << 24)
    return tsi_fail(TS_ERR_ARG, "collectives: messages of %zu words; 16 to 16777216 are possible",
                    params->words);
  if (params->node_ranks < 0)
    return tsi_fail(TS_ERR_ARG, "collectives: nodes of %d ranks", params->node_ranks);
  return 0;
}

static int set_up(ts_collective *c, MPI_Comm comm, const ts_collective_params *params)
{
  TS_TRY_MPI(MPI_Comm_dup(comm, &c->comm));
  TS_TRY_MPI(MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN));
  TS_TRY_MPI(MPI_Comm_rank(c->comm, &c->rank));
  TS_TRY_MPI(MPI_Comm_size(c->comm, &c->size));
  TS_TRY(agree(c->comm, check(params)));
  c->algorithm = params->algorithm;
  if (c->algorithm == TS_ALGORITHM_MPI) return 0; /* no shared memory at all */
  TS_TRY(agree(c->comm, params->table ? tsi_choice_parse(params->table, c->table) : 0));
  TS_TRY(agree(c->comm, split_nodes(c, params->node_ranks)));
  TS_TRY(agree(c->comm, find_nodes(c)));
  TS_TRY(share(c, params->words, params->yield));
  if (c->algorithm == TS_ALGORITHM_AUTO && !params->table)
    TS_TRY(agree(c->comm, tsi_choice_measure(c, params->cache)));
  return 0;
}

int ts_collective_create(MPI_Comm comm, const ts_collective_params *params, ts_collective **out)
{
  TS_TRY(TSI_NEW(*out, 1));
  (*out)->comm = (*out)->node = (*out)->leaders = MPI_COMM_NULL;
  const int status = set_up(*out, comm, params);
  if (status) ts_collective_destroy(out);
  return status;
}

void ts_collective_destroy(ts_collective **collective)
{
  ts_collective *c = *collective;
  if (!c) return;
  ts_cbuffer_release(&c->ll);
  ts_cbuffer_release(&c->sentinel);
  ts_shm_destroy(&c->shm);
  if (c->leaders != MPI_COMM_NULL) MPI_Comm_free(&c->leaders);
  if (c->node != MPI_COMM_NULL) MPI_Comm_free(&c->node);
  if (c->comm != MPI_COMM_NULL) MPI_Comm_free(&c->comm);
  free(c->node_of);
  free(c->local_of);
  free(c->names);
  free(c->stage);
  free(c->sums);
  free(c);
  *collective = NULL;
}
