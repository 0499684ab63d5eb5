/* SPDX-License-Identifier: MIT
 *
 * The transpose of an edge set. */
#ifndef TS_COLUMNS_H
#define TS_COLUMNS_H

#include "neighbor/edges.h"

/** Make e->column and e->column_edge from the rows; `by_gid` [N] lists atoms in the order of ids.
 */
int tsi_columns_make(const ts_lidx *by_gid, ts_edges *e);

#endif
