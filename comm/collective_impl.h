/* SPDX-License-Identifier: MIT
 *
 * The collectives object, for the files that make it up. */
#ifndef TS_COLLECTIVE_IMPL_H
#define TS_COLLECTIVE_IMPL_H

#include "comm/collective.h"
#include "comm/collective_line.h"
#include "comm/shm.h"

enum { TSI_SIZES = 26 /* powers of two that the table tells apart: up to 32 MB */ };

enum { TSI_STAGE = 4096 /* words of a float array that are staged at a time */ };
enum { TSI_GATHER = 512 /* words that leaders exchange and sum in node order */ };

struct ts_collective {
  MPI_Comm comm;    /* all ranks */
  MPI_Comm node;    /* those that share memory */
  MPI_Comm leaders; /* rank 0 of each node; MPI_COMM_NULL on others */
  int rank, size, nodes;
  int *node_of, *local_of; /* [size] each rank's node, and its rank there */
  int *names;              /* [node ranks] their ranks in comm */
  ts_shm *shm;
  ts_cbuffer ll, sentinel;
  ts_cline line;
  ts_word *stage; /* [size][TSI_STAGE] */
  ts_word *sums;  /* [nodes][TSI_GATHER] of the leaders */
  ts_algorithm algorithm;
  ts_algorithm table[TSI_SIZES]; /* by the power of two not below the bytes */
};

/** Fill the table from its text.  Not collective. */
int tsi_choice_parse(const char *text, ts_algorithm table[TSI_SIZES]);

/** Measure the table, or read it from the cache.  Collective. */
int tsi_choice_measure(ts_collective *collective, const char *cache);

/** Combine [n] words of this node's ranks by one algorithm (not mpi).  Collective on the node. */
int tsi_collective_node(ts_collective *c, ts_algorithm algorithm, tsi_combine *combine,
                        const ts_word *in, ts_word *out, size_t n);

#endif
