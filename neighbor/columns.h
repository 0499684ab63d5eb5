/* SPDX-License-Identifier: MIT
 *
 * The transpose of an edge set. */
#ifndef TS_COLUMNS_H
#define TS_COLUMNS_H

#include "neighbor/edges.h"

/** Fill e->column (allocated here) and e->column_edge [capacity] from the rows.  `by_gid` [N+G]
 * lists atoms in the order of their ids; `symmetric` tells that every edge between receivers has
 * its reverse, which is faster. \return 0 or TS_ERR_MEMORY. */
int tsi_columns_make(const ts_lidx *by_gid, bool symmetric, ts_edges *e);

#endif
