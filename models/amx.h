/* SPDX-License-Identifier: MIT
 *
 * Back ends of the matrix engine on bf16 tiles (Intel AMX), in float only.  A float is the sum of
 * two or three bf16 numbers, and of the products of two such sums those are kept that matter: */
#ifndef TS_AMX_H
#define TS_AMX_H

#include "models/matrix.h"

/** The back end that keeps the given number of parts of a float:
 *      1  `amx`   one product, about 8 bits
 *      2  `amx2`  three products, about 16 bits
 *      3  `amx3`  six products, as exact as float
 * \return NULL where this processor, this system or this build has no bf16 tiles. */
const ts_matrix_ops *ts_amx_ops(int parts);

#endif
