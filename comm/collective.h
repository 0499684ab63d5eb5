/* SPDX-License-Identifier: MIT
 *
 * Collectives for tiny messages at the speed of a cache line: the ranks of a node talk through
 * shared memory (collective_buffer.h), nodes through one leader each and MPI.  See
 * docs/collectives.md for what the algorithms cost and which one is taken when.
 *
 * Sums are taken in the order of the ranks: the bits are the same on all ranks and in all runs, for
 * every algorithm but `ll128`, which is non-deterministic, and `mpi` (by default taken above 32
 * kB), whose order is MPI's.
 *
 * A rank that ends while others wait for it is noticed within five seconds; their calls then fail
 * with TS_ERR_MPI.  After any failure the object is broken and only good for destruction. */
#ifndef TS_COLLECTIVE_H
#define TS_COLLECTIVE_H

#include <mpi.h>

#include "comm/collective_op.h"
#include "comm/collective_buffer.h"

typedef enum ts_algorithm {
  TS_ALGORITHM_AUTO, /**< per length, by the table */
  TS_ALGORITHM_LL_ONE,
  TS_ALGORITHM_LL_TWO,
  TS_ALGORITHM_SENTINEL_ONE,
  TS_ALGORITHM_SENTINEL_TWO,
  TS_ALGORITHM_LL128, /**< non-deterministic: sums in the order of arrival */
  TS_ALGORITHM_MPI,
  TS_ALGORITHMS
} ts_algorithm;

/** "auto", "ll-one-shot", "ll-two-shot", "sentinel-one-shot", "sentinel-two-shot", "ll128", "mpi".
 */
const char *ts_algorithm_name(ts_algorithm algorithm);

/** The algorithm of a name.  \return 0 or TS_ERR_ARG, which lists the names. */
int ts_algorithm_parse(const char *name, ts_algorithm *out);

typedef struct ts_collective_params {
  ts_algorithm algorithm; /**< of all-reduce; default auto */
  size_t words;           /**< 8-byte words of one message through the buffer; default 4096 */
  int node_ranks;         /**< pretend nodes of so many ranks; default 0: as MPI says */
  bool yield;             /**< yield at once when waiting, however many cores there are */
  const char *table;      /**< for auto: "LIMIT:NAME,...,NAME" with limits in bytes; default NULL:
                               measured at the start */
  const char *cache;      /**< file that keeps the measured table; default NULL: none */
} ts_collective_params;

void ts_collective_params_init(ts_collective_params *params);

typedef struct ts_collective ts_collective;

/** Prepare collectives on the ranks of comm.  Collective on comm; params equal on all ranks.
 * \param [out] out  Owned by the caller: ts_collective_destroy(); NULL on failure.
 * \return 0 or the same failure on all ranks: TS_ERR_ARG, TS_ERR_SYSTEM (e.g. /dev/shm too small),
 *         TS_ERR_MPI, TS_ERR_MEMORY. */
int ts_collective_create(MPI_Comm comm, const ts_collective_params *params, ts_collective **out);

/** Collective on the communicator of create (not awaited).  Accepts NULL, sets it to NULL. */
void ts_collective_destroy(ts_collective **collective);

/** Combine n values of all ranks into out on all ranks.  Collective; type, op, n equal on all.
 * \param [in]  in   [n] of type
 * \param [out] out  [n] of type; may be in
 * \return 0; TS_ERR_ARG: a value has the bits of the sentinel; TS_ERR_MPI: a rank is gone. */
int ts_collective_allreduce(ts_collective *collective, ts_ctype type, ts_cop op, const void *in,
                            void *out, size_t n);

/** Combine into the root's out only; other ranks' out is scratch of the same size or NULL where
 * there is one node.  Otherwise as ts_collective_allreduce(). */
int ts_collective_reduce(ts_collective *collective, ts_ctype type, ts_cop op, int root,
                         const void *in, void *out, size_t n);

/** x [n] of the root to all ranks.  Collective. */
int ts_collective_broadcast(ts_collective *collective, ts_ctype type, int root, void *x, size_t n);

/** in [ranks,n] combined; row `rank` of it into out [n], which may be in itself or its row.
 * Collective.  On several nodes MPI does it. */
int ts_collective_reduce_scatter(ts_collective *collective, ts_ctype type, ts_cop op,
                                 const void *in, void *out, size_t n);

/** in [n] of all ranks into out [ranks,n]; in may be row `rank` of out.  Collective.  On several
 * nodes MPI does it. */
int ts_collective_all_gather(ts_collective *collective, ts_ctype type, const void *in, void *out,
                             size_t n);

/** The algorithm that ts_collective_allreduce() takes for so many bytes. */
ts_algorithm ts_collective_choice(const ts_collective *collective, size_t bytes);

/** Take this one from now on (or the table again: auto).  Equal on all ranks. */
void ts_collective_choose(ts_collective *collective, ts_algorithm algorithm);

/** What this rank wrote and how often it synchronised since the last call with reset. */
ts_ccount ts_collective_count(ts_collective *collective, bool reset);

/** Shared memory of an algorithm on this node [bytes]. */
size_t ts_collective_scratch(const ts_collective *collective, ts_algorithm algorithm);

#endif
