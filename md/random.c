/* SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 and normal deviates from it.  The constants are those of the paper; the
 * known-answer vectors published with it are a test. */
#include "md/random.h"

#include <math.h>

void ts_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u; /* the golden ratio */
    k1 += 0xbb67ae85u; /* the square root of three, less one */
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* 64 random bits to a double in (0, 1]: never 0, so its logarithm is finite. */
static double open_uniform(uint32_t high, uint32_t low)
{
  const uint64_t bits = ((uint64_t)high << 32) | low;
  return (double)((bits >> 11) + 1) * 0x1p-53;
}

/* One block of four words makes two normal deviates. */
static void box_muller(const uint32_t word[4], double *first, double *second)
{
  const double radius = sqrt(-2.0 * log(open_uniform(word[0], word[1])));
  const double angle = 2.0 * 3.14159265358979323846 * open_uniform(word[2], word[3]);
  *first = radius * cos(angle);
  *second = radius * sin(angle);
}

void ts_random_normal3(uint64_t seed, ts_purpose purpose, ts_gidx gid, int64_t step, double out[3])
{
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  const uint64_t id = (uint64_t)gid, time = (uint64_t)step;
  uint32_t counter[4] = {(uint32_t)id, (uint32_t)(id >> 32) | (uint32_t)purpose << 16,
                         (uint32_t)time, (uint32_t)(time >> 32)};
  uint32_t word[4];
  double unused;
  ts_philox4x32(counter, key, word);
  box_muller(word, &out[0], &out[1]);
  counter[1] |= 1u << 24; /* the second draw */
  ts_philox4x32(counter, key, word);
  box_muller(word, &out[2], &unused);
}
