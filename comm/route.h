/* SPDX-License-Identifier: MIT
 *
 * Who owns a key.  Two levels.  Across ranks a hash that is linear over GF(2): bit i of it is the
 * parity of the key's bits under a mask, so hash(a ^ g) = hash(a) ^ hash(g).  Everything that a
 * rank asks about its keys shifted by one g is therefore owned by one peer, rank ^ hash(g), known
 * without hashing any key, and the answers come back from that peer alone.  Within a rank a hash
 * that avalanches deals keys over partitions (a linear one would cluster under linear probing).
 *
 * The masks are drawn from a seed by integer arithmetic, the same on any machine, until the shifts
 * in use reach as many ranks as they can.  The linear hash needs a power of two of ranks and is
 * refused otherwise; `splitmix`, which scatters the shifted keys over all ranks, is the control. */
#ifndef TS_ROUTE_H
#define TS_ROUTE_H

#include <mpi.h>

#include "runtime/json.h"
#include "runtime/types.h"

enum { TS_KEY_BITS = 128, TS_MAX_RANK_BITS = 24 };

typedef struct ts_key {
  uint64_t lo, hi; /**< bits 0..63 and 64..127 */
} ts_key;

static inline ts_key ts_key_xor(ts_key a, ts_key b)
{
  return (ts_key){a.lo ^ b.lo, a.hi ^ b.hi};
}

static inline bool ts_key_equal(ts_key a, ts_key b)
{
  return a.lo == b.lo && a.hi == b.hi;
}

/** The key with one bit set, 0 <= bit < TS_KEY_BITS. */
static inline ts_key ts_key_bit(int bit)
{
  return bit < 64 ? (ts_key){UINT64_C(1) << bit, 0} : (ts_key){0, UINT64_C(1) << (bit - 64)};
}

/** The key of an atom id. */
static inline ts_key ts_key_of_id(ts_gidx gid)
{
  return (ts_key){(uint64_t)gid, 0};
}

typedef enum ts_route_mode { TS_ROUTE_LINEAR, TS_ROUTE_SPLITMIX } ts_route_mode;

typedef struct ts_route_params {
  ts_route_mode mode;
  int ranks;           /**< owners, 1 to 2^TS_MAX_RANK_BITS; a power of two when linear */
  int partitions;      /**< within a rank, >= 1 */
  uint64_t seed;       /**< of both hashes */
  int nshift;          /**< shifts in use */
  const ts_key *shift; /**< [nshift], the important ones first; read by ts_router_create only */
} ts_route_params;

/** linear, one partition, seed 1, no shifts; `ranks` as given. */
void ts_route_params_init(ts_route_params *params, int ranks);

/** Read the settings of a job: an object with any of "mode" ("linear", "splitmix"), "partitions"
 * (>= 1), "seed" (>= 0).  Not collective.
 * \param [in] object  What the job says; `origin` names its file in messages.
 * \param [in,out] params  Keys that are absent leave their field as it is.
 * \return 0 or TS_ERR_INPUT, naming place, value and what was expected; *params is then untouched.
 */
int ts_route_params_parse(const ts_json_node *object, const char *origin, ts_route_params *params);

const char *ts_route_mode_name(ts_route_mode mode);

typedef struct ts_router ts_router;

/** Draw the hashes.  Not collective; all ranks must ask for the same (ts_router_agree()).
 * \return 0; TS_ERR_ARG, also where `linear` meets a number of ranks that is no power of two;
 * TS_ERR_MEMORY. */
int ts_router_create(const ts_route_params *params, ts_router **out);
void ts_router_destroy(ts_router **router);

/** The settings in use (without the shifts). */
const ts_route_params *ts_router_params(const ts_router *router);

/** Owner of a key, 0 <= rank < ranks. */
int ts_router_rank(const ts_router *router, ts_key key);

/** Partition of a key within its rank. */
int ts_router_partition(const ts_router *router, ts_key key);

/** Linear only: what a shift adds to a rank: rank(key ^ shift) = rank(key) ^ this. */
int ts_router_shift(const ts_router *router, ts_key shift);

/** Ranks that hold nothing when all keys are sums of the shifts in use (from any first key: XOR
 * its rank).  Linear only; none for splitmix, nor where no shifts were given.
 * \param [out] rank  [ranks] or NULL; the first entries, ascending. \return how many. */
int ts_router_unreached(const ts_router *router, int *rank);

/** A number that differs when settings, shifts or hashes differ; the same on any machine. */
uint64_t ts_router_digest(const ts_router *router);

/** Compare the settings of all ranks.  Collective on comm.
 * \return 0, or on every rank TS_ERR_INPUT with the two that differ and who has them. */
int ts_router_agree(const ts_router *router, MPI_Comm comm);

/** A hash of a key in which every bit of the key matters to every bit (for tables in a rank). */
uint64_t tsi_key_avalanche(ts_key key, uint64_t seed);

/** The largest power of two that is not above n >= 1. */
int tsi_power_of_two_below(int n);

#endif
