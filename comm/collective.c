/* SPDX-License-Identifier: MIT
 *
 * The calls: which algorithm, which nodes, and float arrays that are no whole words.  On several
 * nodes a call is a reduction to the node's leader, an exchange of the leaders through MPI, and a
 * broadcast on the node. */
#include "comm/collective.h"

#include <string.h>

#include "comm/collective_impl.h"
#include "comm/collective_shot.h"
#include "comm/world.h"
#include "runtime/error.h"

static MPI_Datatype mpi_type(ts_ctype type)
{
  return type == TS_CTYPE_DOUBLE ? MPI_DOUBLE : type == TS_CTYPE_FLOAT ? MPI_FLOAT : MPI_INT64_T;
}

static MPI_Op mpi_op(ts_cop op)
{
  return op == TS_COP_SUM ? MPI_SUM : op == TS_COP_MAX ? MPI_MAX : MPI_MIN;
}

ts_algorithm ts_collective_choice(const ts_collective *c, size_t bytes)
{
  if (c->algorithm) return c->algorithm;
  const int power = bytes > 1 ? 64 - __builtin_clzll(bytes - 1) : 0;
  return c->table[power < TSI_SIZES ? power : TSI_SIZES - 1];
}

void ts_collective_choose(ts_collective *c, ts_algorithm algorithm)
{
  c->algorithm = algorithm;
}

int tsi_collective_node(ts_collective *c, ts_algorithm algorithm, tsi_combine *combine,
                        const ts_word *in, ts_word *out, size_t n)
{
  switch (algorithm) {
    case TS_ALGORITHM_LL_ONE:
      return tsi_shot_one(&c->ll, combine, in, out, n);
    case TS_ALGORITHM_LL_TWO:
      return tsi_shot_two(&c->ll, combine, in, out, n);
    case TS_ALGORITHM_SENTINEL_ONE:
      return tsi_shot_one(&c->sentinel, combine, in, out, n);
    case TS_ALGORITHM_SENTINEL_TWO:
      return tsi_shot_two(&c->sentinel, combine, in, out, n);
    default:
      return ts_cline_allreduce(&c->line, combine, in, out, n);
  }
}

static size_t words_of(ts_ctype type, size_t n)
{
  return (n * tsi_ctype_size(type) + sizeof(ts_word) - 1) / sizeof(ts_word);
}

/* The message that carries a long array best: big ones leave the caches of two lines a word. */
static ts_cbuffer *buffer_for(ts_collective *c, size_t words)
{
  switch (ts_collective_choice(c, words * sizeof(ts_word))) {
    case TS_ALGORITHM_SENTINEL_ONE:
    case TS_ALGORITHM_SENTINEL_TWO:
    case TS_ALGORITHM_MPI:
      return &c->sentinel;
    default:
      return &c->ll;
  }
}

/* Wait for MPI, but not for a dead rank of this node. */
static int await(ts_collective *c, MPI_Request *request)
{
  unsigned spins = 0;
  tsi_cheader *header = (tsi_cheader *)(void *)c->ll.memory;
  for (int done = 0, peer = 0; !done;) {
    TS_TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    if (done || c->ll.size == 1) continue;
    /* leaders are rank 0 of their node; stay with one that seems dead */
    if (!c->ll.missed || !peer) peer = peer + 1 < c->ll.size ? peer + 1 : 1;
    TS_TRY(tsi_cwait_idle(header, &c->ll.wait, peer, &spins, &c->ll.looked, &c->ll.missed));
  }
  return 0;
}

/* Combine the nodes' sums [n], in the order of the nodes where they are few. */
static int combine_nodes(ts_collective *c, ts_ctype type, ts_cop op, ts_word *x, size_t n)
{
  MPI_Request request;
  const size_t values = n * sizeof(ts_word) / tsi_ctype_size(type);
  if (n > TSI_GATHER) {
    TS_TRY_MPI(MPI_Iallreduce(MPI_IN_PLACE, x, (int)values, mpi_type(type), mpi_op(op), c->leaders,
                              &request));
    return await(c, &request);
  }
  TS_TRY_MPI(
      MPI_Iallgather(x, (int)n, MPI_INT64_T, c->sums, (int)n, MPI_INT64_T, c->leaders, &request));
  TS_TRY(await(c, &request));
  memcpy(x, c->sums, n * sizeof *x);
  for (int k = 1; k < c->nodes; k++)
    tsi_combine_find(type, op)(x, x, c->sums + (size_t)k * n, n);
  return 0;
}

static int allreduce_nodes(ts_collective *c, ts_ctype type, ts_cop op, const ts_word *in,
                           ts_word *out, size_t n)
{
  enum { MOST = 1 << 24 }; /* words that MPI's int can count */
  ts_cbuffer *b = buffer_for(c, n);
  for (size_t first = 0; first < n; first += MOST) {
    const size_t m = n - first < MOST ? n - first : MOST;
    TS_TRY(tsi_shot_reduce(b, tsi_combine_find(type, op), 0, in + first, out + first, m));
    if (c->leaders != MPI_COMM_NULL) TS_TRY(combine_nodes(c, type, op, out + first, m));
    TS_TRY(tsi_shot_broadcast(b, 0, out + first, m));
  }
  return 0;
}

static int allreduce_words(ts_collective *c, ts_algorithm algorithm, ts_ctype type, ts_cop op,
                           const ts_word *in, ts_word *out, size_t n)
{
  if (c->nodes > 1) return allreduce_nodes(c, type, op, in, out, n);
  return tsi_collective_node(c, algorithm, tsi_combine_find(type, op), in, out, n);
}

static int allreduce_mpi(ts_collective *c, ts_ctype type, ts_cop op, const void *in, void *out,
                         size_t n)
{
  enum { MOST = 1 << 26 };
  for (size_t first = 0; first < n; first += MOST) {
    const size_t m = n - first < MOST ? n - first : MOST, at = first * tsi_ctype_size(type);
    const void *from = in == out ? MPI_IN_PLACE : (const char *)in + at;
    TS_TRY_MPI(MPI_Allreduce(from, (char *)out + at, (int)m, mpi_type(type), mpi_op(op), c->comm));
  }
  return 0;
}

/* Next piece of a float array into whole words.  All float arrays take this way: whether one lies
 * at an address of words is a matter of each rank, and all ranks must cut alike. */
static size_t stage_in(ts_word *stage, const float *from, size_t m)
{
  const size_t words = words_of(TS_CTYPE_FLOAT, m);
  stage[words - 1] = 0;
  memcpy(stage, from, m * sizeof *from);
  return words;
}

static size_t piece(size_t n, size_t first)
{
  return n - first < 2 * TSI_STAGE ? n - first : 2 * TSI_STAGE;
}

int ts_collective_allreduce(ts_collective *c, ts_ctype type, ts_cop op, const void *in, void *out,
                            size_t n)
{
  const ts_algorithm algorithm = ts_collective_choice(c, n * tsi_ctype_size(type));
  if (algorithm == TS_ALGORITHM_MPI) return allreduce_mpi(c, type, op, in, out, n);
  if (type != TS_CTYPE_FLOAT) return allreduce_words(c, algorithm, type, op, in, out, n);
  for (size_t first = 0; first < n; first += 2 * TSI_STAGE) {
    const size_t m = piece(n, first), words = stage_in(c->stage, (const float *)in + first, m);
    TS_TRY(allreduce_words(c, algorithm, type, op, c->stage, c->stage, words));
    memcpy((float *)out + first, c->stage, m * sizeof(float));
  }
  return 0;
}

static int reduce_words(ts_collective *c, ts_ctype type, ts_cop op, int root, const ts_word *in,
                        ts_word *out, size_t n)
{
  if (c->nodes > 1) return allreduce_nodes(c, type, op, in, out, n);
  return tsi_shot_reduce(buffer_for(c, n), tsi_combine_find(type, op), root, in, out, n);
}

int ts_collective_reduce(ts_collective *c, ts_ctype type, ts_cop op, int root, const void *in,
                         void *out, size_t n)
{
  if (c->algorithm == TS_ALGORITHM_MPI) {
    const void *from = in == out && c->rank == root ? MPI_IN_PLACE : in;
    TS_TRY_MPI(MPI_Reduce(from, out, (int)n, mpi_type(type), mpi_op(op), root, c->comm));
    return 0;
  }
  if (type != TS_CTYPE_FLOAT) return reduce_words(c, type, op, root, in, out, n);
  for (size_t first = 0; first < n; first += 2 * TSI_STAGE) {
    const size_t m = piece(n, first), words = stage_in(c->stage, (const float *)in + first, m);
    TS_TRY(reduce_words(c, type, op, root, c->stage, c->stage, words));
    if (c->rank == root) memcpy((float *)out + first, c->stage, m * sizeof(float));
  }
  return 0;
}

/* From the root over its node, to the other nodes' leaders, over their nodes. */
static int broadcast_words(ts_collective *c, int root, ts_word *x, size_t n)
{
  ts_cbuffer *b = buffer_for(c, n);
  if (c->nodes == 1) return tsi_shot_broadcast(b, root, x, n);
  const int home = c->node_of[root];
  const bool here = c->node_of[c->rank] == home;
  if (here) TS_TRY(tsi_shot_broadcast(b, c->local_of[root], x, n));
  if (c->leaders != MPI_COMM_NULL) {
    MPI_Request request;
    TS_TRY_MPI(MPI_Ibcast(x, (int)n, MPI_INT64_T, home, c->leaders, &request));
    TS_TRY(await(c, &request));
  }
  return here ? 0 : tsi_shot_broadcast(b, 0, x, n);
}

int ts_collective_broadcast(ts_collective *c, ts_ctype type, int root, void *x, size_t n)
{
  if (c->algorithm == TS_ALGORITHM_MPI) {
    TS_TRY_MPI(MPI_Bcast(x, (int)n, mpi_type(type), root, c->comm));
    return 0;
  }
  if (type != TS_CTYPE_FLOAT) return broadcast_words(c, root, x, n);
  for (size_t first = 0; first < n; first += 2 * TSI_STAGE) {
    const size_t m = piece(n, first), words = stage_in(c->stage, (float *)x + first, m);
    TS_TRY(broadcast_words(c, root, c->stage, words));
    memcpy((float *)x + first, c->stage, m * sizeof(float));
  }
  return 0;
}

int ts_collective_reduce_scatter(ts_collective *c, ts_ctype type, ts_cop op, const void *in,
                                 void *out, size_t n)
{
  if (c->algorithm == TS_ALGORITHM_MPI || c->nodes > 1) {
    const void *from = in == out ? MPI_IN_PLACE : in;
    TS_TRY_MPI(MPI_Reduce_scatter_block(from, out, (int)n, mpi_type(type), mpi_op(op), c->comm));
    return 0;
  }
  tsi_combine *combine = tsi_combine_find(type, op);
  ts_cbuffer *b = buffer_for(c, words_of(type, n));
  if (type != TS_CTYPE_FLOAT) return tsi_shot_reduce_scatter(b, combine, in, out, n);
  for (size_t first = 0; first < n; first += 2 * TSI_STAGE) {
    const size_t m = piece(n, first), words = words_of(type, m);
    for (int p = 0; p < c->size; p++)
      stage_in(c->stage + (size_t)p * words, (const float *)in + (size_t)p * n + first, m);
    TS_TRY(tsi_shot_reduce_scatter(b, combine, c->stage, c->stage, words));
    memcpy((float *)out + first, c->stage, m * sizeof(float));
  }
  return 0;
}

int ts_collective_all_gather(ts_collective *c, ts_ctype type, const void *in, void *out, size_t n)
{
  const size_t bytes = n * tsi_ctype_size(type);
  if (c->algorithm == TS_ALGORITHM_MPI || c->nodes > 1) {
    const void *from = in == (char *)out + (size_t)c->rank * bytes ? MPI_IN_PLACE : in;
    TS_TRY_MPI(MPI_Allgather(from, (int)n, mpi_type(type), out, (int)n, mpi_type(type), c->comm));
    return 0;
  }
  ts_cbuffer *b = buffer_for(c, words_of(type, n));
  if (type != TS_CTYPE_FLOAT) return tsi_shot_all_gather(b, in, out, n);
  for (size_t first = 0; first < n; first += 2 * TSI_STAGE) {
    const size_t m = piece(n, first), words = words_of(type, m);
    ts_word *own = c->stage + (size_t)c->rank * words;
    stage_in(own, (const float *)in + first, m);
    TS_TRY(tsi_shot_all_gather(b, own, c->stage, words));
    for (int p = 0; p < c->size; p++)
      memcpy((float *)out + (size_t)p * n + first, c->stage + (size_t)p * words, m * sizeof(float));
  }
  return 0;
}

ts_ccount ts_collective_count(ts_collective *c, bool reset)
{
  ts_ccount *all[] = {&c->ll.count, &c->sentinel.count, &c->line.count}, sum = {0};
  for (int i = 0; i < 3; i++) {
    sum.bytes += all[i]->bytes;
    sum.rounds += all[i]->rounds;
    if (reset) *all[i] = (ts_ccount){0};
  }
  return sum;
}
