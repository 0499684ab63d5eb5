/* SPDX-License-Identifier: MIT
 *
 * The atoms of one rank, as the searches between ranks see them. */
#ifndef TS_SHARD_H
#define TS_SHARD_H

#include "runtime/types.h"

typedef struct ts_shard {
  ts_lidx n;            /**< may be 0 */
  const double (*x)[3]; /**< [n,3] double [Å] */
  const ts_gidx *gid;   /**< [n], different on all ranks; NULL where only places matter */
  const uint8_t *tag;   /**< [n] travels with the atom, e.g. its atomic number; NULL: zeros */
} ts_shard;

#endif
