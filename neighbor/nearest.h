/* SPDX-License-Identifier: MIT
 *
 * Only the nearest senders of a receiver: a bound that some models were trained with.  It is
 * decided anew on every step from the distances of the moment, so it does not depend on the skin or
 * on when edges were built. */
#ifndef TS_NEAREST_H
#define TS_NEAREST_H

#include "neighbor/edges.h"

enum { TS_NEAREST_MOST = 1024 };

/** Keep the nearest `most` active edges of one receiver.  Of equally long edges the first in the
 * row stays: rows are sorted by (sender's gid, image), so the answer is the same for every order of
 * atoms.  Not collective; thread-safe.
 * \param [in]     count     Edges of the receiver.
 * \param [in]     geometry  [count,4] double: unit vector, length [Å], as ts_edges_measure writes.
 * \param [in]     most      1..TS_NEAREST_MOST
 * \param [in,out] active    [count] uint8.
 * \return whether there were more. */
bool ts_nearest_keep(int count, const double *geometry, int most, uint8_t *active);

#endif
