/* SPDX-License-Identifier: MIT
 *
 * A table of (key, value) spread over the ranks: put, find and remove batches, all ranks at once.
 * The router says at which rank a key is at home.  Homes are the ranks below the largest power of
 * two, so that linear routing works for any number of ranks.  Inside a home keys are found by an
 * avalanche hash with linear probing. */
#ifndef TS_DIRECTORY_H
#define TS_DIRECTORY_H

#include "comm/route.h"

typedef struct ts_directory ts_directory;

/** Collective on comm; compares the settings of all ranks.
 * \param [in] comm        Duplicated.
 * \param [in] params      Mode and seed; ranks and shifts are the directory's own.
 * \param [in] value_size  Bytes of a value.
 * \return 0; on all ranks TS_ERR_INPUT when settings or value sizes differ; TS_ERR_MPI;
 * TS_ERR_MEMORY. */
int ts_directory_create(MPI_Comm comm, const ts_route_params *params, size_t value_size,
                        ts_directory **out);

/** Collective: it frees the communicator.  Accepts NULL. */
void ts_directory_destroy(ts_directory **directory);

/** Store values; a key that is there gets the new one.  Where a batch names a key more than once,
 * the last entry of the highest rank stays.  Collective.
 * \param [in] key    [n].
 * \param [in] value  [n] of value_size bytes. */
int ts_directory_put(ts_directory *directory, int64_t n, const ts_key *key, const void *value);

/** Look keys up.  Collective.
 * \param [out] value  [n] of value_size bytes; those not found are left as they are.
 * \param [out] found  [n]. */
int ts_directory_find(ts_directory *directory, int64_t n, const ts_key *key, void *value,
                      bool *found);

/** Remove keys; those that are not there are ignored.  Collective. */
int ts_directory_remove(ts_directory *directory, int64_t n, const ts_key *key);

/** Entries at home on this rank.  Not collective. */
int64_t ts_directory_count(const ts_directory *directory);

/** Say that this rank owns these atoms; needs value_size sizeof(int32_t).  Collective. */
int ts_directory_put_atoms(ts_directory *directory, int64_t n, const ts_gidx *gid);

/** Who owns these atoms: owner [n], -1 for an id that no rank has put.  Collective. */
int ts_directory_find_atoms(ts_directory *directory, int64_t n, const ts_gidx *gid, int32_t *owner);

/* the table inside a home */
typedef struct tsi_table tsi_table;
int tsi_table_create(size_t value_size, tsi_table **out);
void tsi_table_destroy(tsi_table **table);
int64_t tsi_table_count(const tsi_table *table);
/** Store unless the entry was written in the same batch with a higher order. */
int tsi_table_put(tsi_table *table, ts_key key, const void *value, int64_t batch, int32_t source,
                  int64_t index);
const void *tsi_table_find(const tsi_table *table, ts_key key); /* NULL: not there */
void tsi_table_remove(tsi_table *table, ts_key key);

#endif
