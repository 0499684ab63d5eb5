/* SPDX-License-Identifier: MIT
 *
 * The C side of the FAISS back end; see search.h for the contract. */
#ifndef TS_FAISS_INDEX_H
#define TS_FAISS_INDEX_H

#include "neighbor/search.h"

int tsi_search_faiss(tsi_search *search, tsi_query *queries, int32_t nq,
                     const tsi_points *candidates, int depth);

#endif
