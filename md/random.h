/* SPDX-License-Identifier: MIT
 *
 * Random numbers without a state: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC11), a bijection
 * of a 128-bit counter under a 64-bit key.  The key is the job's seed, the counter says who asks:
 * (purpose, atom id, step, draw).  So the noise of an atom does not depend on the order of the
 * atoms, on the tile, on the rank or on what was drawn before, and a restart has nothing to
 * restore.  Two blocks and two Box-Muller pairs make three normal deviates, about 0.3 us.
 *
 * The deviates use log, sqrt, sin and cos of the C library: bits are the same wherever that library
 * is the same. */
#ifndef TS_RANDOM_H
#define TS_RANDOM_H

#include "runtime/types.h"

/** What the numbers are for: streams of different purposes are independent. */
typedef enum ts_purpose { TS_PURPOSE_VELOCITIES = 1, TS_PURPOSE_LANGEVIN = 2 } ts_purpose;

/** One Philox4x32-10 block.  Not collective.
 * \param [in]  counter  [4], word 0 least significant.
 * \param [in]  key      [2]
 * \param [out] out      [4] uniform random words. */
void ts_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** Three independent normal deviates (mean 0, variance 1), a pure function of the arguments.
 * Not collective.
 * \param [in]  seed     Any value; neighbouring seeds are independent.
 * \param [in]  purpose  Below 256.
 * \param [in]  gid      Atom id, 0 <= gid < 2^48.
 * \param [in]  step     Number of the step, any value.
 * \param [out] out      [3]; |out| < 8.6. */
void ts_random_normal3(uint64_t seed, ts_purpose purpose, ts_gidx gid, int64_t step, double out[3]);

#endif
