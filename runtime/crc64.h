/* SPDX-License-Identifier: MIT
 *
 * CRC-64/XZ (ECMA-182, reflected): every burst of up to 64 wrong bits is noticed, and anything else
 * with probability 1 - 2^-64.  About 1.5 GB/s.
 *
 * The sum is linear: each part of a text contributes to it whatever the others are, so several can
 * work out one sum, each from the bytes that it has. */
#ifndef TS_CRC64_H
#define TS_CRC64_H

#include "runtime/types.h"

typedef struct tsi_crc64 {
  uint64_t table[8][256];
  uint64_t state;
} tsi_crc64;

/** Start a sum: fills the tables (10 us). */
void tsi_crc64_begin(tsi_crc64 *crc);

/** Add bytes. */
void tsi_crc64_add(tsi_crc64 *crc, const void *data, size_t size);

/** The sum so far; "123456789" gives 0x995dc9bbdf1939fa. */
uint64_t tsi_crc64_value(const tsi_crc64 *crc);

/** Start the contribution of a part: add its bytes, then tsi_crc64_part(). */
void tsi_crc64_begin_part(tsi_crc64 *crc);

/** What the part contributes to the sum of a text that has `after` more bytes behind it. */
uint64_t tsi_crc64_part(const tsi_crc64 *crc, uint64_t after);

/** The sum of a text of `size` bytes from the contributions of all its bytes, XORed. */
uint64_t tsi_crc64_join(uint64_t parts, uint64_t size);

#endif
