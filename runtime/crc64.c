/* SPDX-License-Identifier: MIT
 *
 * Eight bytes at a time ("slicing by 8"): table[k] holds the sums of single bytes followed by k
 * zero bytes. */
#include "runtime/crc64.h"

void tsi_crc64_begin(tsi_crc64 *crc)
{
  for (unsigned byte = 0; byte < 256; ++byte) {
    uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ (sum & 1 ? UINT64_C(0xc96c5795d7870f42) : 0);
    crc->table[0][byte] = sum;
  }
  for (int k = 1; k < 8; ++k)
    for (unsigned byte = 0; byte < 256; ++byte) {
      const uint64_t sum = crc->table[k - 1][byte];
      crc->table[k][byte] = (sum >> 8) ^ crc->table[0][sum & 0xff];
    }
  crc->state = ~UINT64_C(0);
}

void tsi_crc64_add(tsi_crc64 *crc, const void *data, size_t size)
{
  const unsigned char *p = data;
  uint64_t sum = crc->state;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t next = 0;
    for (int k = 0; k < 8; ++k)
      next ^= crc->table[7 - k][p[k] ^ ((sum >> (8 * k)) & 0xff)];
    sum = next;
  }
  for (; size; --size, ++p)
    sum = (sum >> 8) ^ crc->table[0][(sum ^ *p) & 0xff];
  crc->state = sum;
}

uint64_t tsi_crc64_value(const tsi_crc64 *crc)
{
  return ~crc->state;
}
