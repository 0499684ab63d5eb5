/* SPDX-License-Identifier: MIT
 *
 * Eight bytes at a time ("slicing by 8"): table[k] holds the sums of single bytes followed by k
 * zero bytes.
 *
 * A sum is a polynomial over GF(2) modulo the generator, the coefficient of x^0 in the highest bit;
 * a byte behind it multiplies it by x^8. */
#include "runtime/crc64.h"

static const uint64_t generator = UINT64_C(0xc96c5795d7870f42), one = UINT64_C(1) << 63;

void tsi_crc64_begin(tsi_crc64 *crc)
{
  for (unsigned byte = 0; byte < 256; ++byte) {
    uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ (sum & 1 ? generator : 0);
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

/* ---- parts ---- */

static uint64_t multiply(uint64_t a, uint64_t b)
{
  uint64_t product = 0;
  for (uint64_t bit = one; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? generator : 0);
  }
  return product;
}

/* The sum with that many zero bytes behind it. */
static uint64_t shift(uint64_t sum, uint64_t bytes)
{
  for (uint64_t power = one >> 8; bytes; bytes >>= 1) { /* x^8, x^16, x^32, ... */
    if (bytes & 1) sum = multiply(sum, power);
    power = multiply(power, power);
  }
  return sum;
}

void tsi_crc64_begin_part(tsi_crc64 *crc)
{
  tsi_crc64_begin(crc);
  crc->state = 0;
}

uint64_t tsi_crc64_part(const tsi_crc64 *crc, uint64_t after)
{
  return shift(crc->state, after);
}

uint64_t tsi_crc64_join(uint64_t parts, uint64_t size)
{
  return ~(parts ^ shift(~UINT64_C(0), size));
}
