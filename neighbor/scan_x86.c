/* SPDX-License-Identifier: MIT
 *
 * The inner loops for x86-64: AVX-512 has an instruction that packs the chosen lanes; AVX2 does it
 * with a permutation looked up by the 8-bit mask.  Each function names its instruction set, so the
 * file needs no compiler flag; tsi_scan_list asks the processor.  Full vectors are stored at the
 * end of the output (its padding makes room), then the end moves by the number of chosen lanes. */
#include "neighbor/scan.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,popcnt")))
#define AVX2 __attribute__((target("avx2,fma,popcnt")))

AVX512 static inline __m512 gap512(__m512 x, __m512 low, __m512 high)
{
  const __m512 gap = _mm512_max_ps(_mm512_sub_ps(low, x), _mm512_sub_ps(x, high));
  return _mm512_max_ps(gap, _mm512_setzero_ps());
}

AVX512 static inline __m512 square512(__m512 x, __m512 y, __m512 z)
{
  return _mm512_fmadd_ps(z, z, _mm512_fmadd_ps(y, y, _mm512_mul_ps(x, x)));
}

AVX512 static void keep_avx512(const tsi_points *in, const tsi_box *box, float far, tsi_points *out)
{
  const __m512 lx = _mm512_set1_ps(box->low[0]), hx = _mm512_set1_ps(box->high[0]);
  const __m512 ly = _mm512_set1_ps(box->low[1]), hy = _mm512_set1_ps(box->high[1]);
  const __m512 lz = _mm512_set1_ps(box->low[2]), hz = _mm512_set1_ps(box->high[2]);
  const __m512 limit = _mm512_set1_ps(far);
  int32_t n = 0;
  for (int32_t k = 0; k < in->n; k += 16) {
    const __m512 x = _mm512_loadu_ps(in->x + k);
    const __m512 y = _mm512_loadu_ps(in->y + k);
    const __m512 z = _mm512_loadu_ps(in->z + k);
    const __m512 r2 = square512(gap512(x, lx, hx), gap512(y, ly, hy), gap512(z, lz, hz));
    const __mmask16 chosen = _mm512_cmp_ps_mask(r2, limit, _CMP_LE_OQ);
    if (!chosen) continue;
    const __m512i id = _mm512_loadu_si512(in->id + k);
    _mm512_storeu_ps(out->x + n, _mm512_maskz_compress_ps(chosen, x));
    _mm512_storeu_ps(out->y + n, _mm512_maskz_compress_ps(chosen, y));
    _mm512_storeu_ps(out->z + n, _mm512_maskz_compress_ps(chosen, z));
    _mm512_storeu_si512(out->id + n, _mm512_maskz_compress_epi32(chosen, id));
    n += __builtin_popcount(chosen);
  }
  out->n = n;
  tsi_points_pad(out);
}

AVX512 static int32_t near_avx512(const tsi_points *in, const float p[3], const tsi_bounds *bounds,
                                  int32_t *hit, int32_t *unsure, int32_t *nunsure)
{
  const __m512 px = _mm512_set1_ps(p[0]), py = _mm512_set1_ps(p[1]), pz = _mm512_set1_ps(p[2]);
  const __m512 far = _mm512_set1_ps(bounds->far);
  const __m512 sure_low = _mm512_set1_ps(bounds->sure_low);
  const __m512 sure_high = _mm512_set1_ps(bounds->sure_high);
  int32_t n = 0, nu = 0;
  for (int32_t k = 0; k < in->n; k += 16) {
    const __m512 dx = _mm512_sub_ps(_mm512_loadu_ps(in->x + k), px);
    const __m512 dy = _mm512_sub_ps(_mm512_loadu_ps(in->y + k), py);
    const __m512 dz = _mm512_sub_ps(_mm512_loadu_ps(in->z + k), pz);
    const __m512 r2 = square512(dx, dy, dz);
    const __mmask16 chosen = _mm512_cmp_ps_mask(r2, far, _CMP_LE_OQ);
    const __mmask16 low = _mm512_mask_cmp_ps_mask(chosen, r2, sure_low, _CMP_LT_OQ);
    const __mmask16 high = _mm512_mask_cmp_ps_mask(chosen, r2, sure_high, _CMP_GT_OQ);
    const __m512i id = _mm512_loadu_si512(in->id + k);
    _mm512_storeu_si512(hit + n, _mm512_maskz_compress_epi32(chosen, id));
    for (unsigned open = low | high; open; open &= open - 1)
      unsure[nu++] = n + __builtin_popcount(chosen & ((open & -open) - 1));
    n += __builtin_popcount(chosen);
  }
  *nunsure = nu;
  return n;
}

/* For each mask the lanes that it names, in order. */
static int32_t pack[256][8];

__attribute__((constructor)) static void fill_pack(void)
{
  for (int mask = 0; mask < 256; mask++)
    for (int lane = 0, n = 0; lane < 8; lane++)
      if (mask >> lane & 1) pack[mask][n++] = lane;
}

AVX2 static inline __m256 gap256(__m256 x, __m256 low, __m256 high)
{
  const __m256 gap = _mm256_max_ps(_mm256_sub_ps(low, x), _mm256_sub_ps(x, high));
  return _mm256_max_ps(gap, _mm256_setzero_ps());
}

AVX2 static inline __m256 square256(__m256 x, __m256 y, __m256 z)
{
  return _mm256_fmadd_ps(z, z, _mm256_fmadd_ps(y, y, _mm256_mul_ps(x, x)));
}

AVX2 static void keep_avx2(const tsi_points *in, const tsi_box *box, float far, tsi_points *out)
{
  const __m256 lx = _mm256_set1_ps(box->low[0]), hx = _mm256_set1_ps(box->high[0]);
  const __m256 ly = _mm256_set1_ps(box->low[1]), hy = _mm256_set1_ps(box->high[1]);
  const __m256 lz = _mm256_set1_ps(box->low[2]), hz = _mm256_set1_ps(box->high[2]);
  const __m256 limit = _mm256_set1_ps(far);
  int32_t n = 0;
  for (int32_t k = 0; k < in->n; k += 8) {
    const __m256 x = _mm256_loadu_ps(in->x + k);
    const __m256 y = _mm256_loadu_ps(in->y + k);
    const __m256 z = _mm256_loadu_ps(in->z + k);
    const __m256 r2 = square256(gap256(x, lx, hx), gap256(y, ly, hy), gap256(z, lz, hz));
    const int chosen = _mm256_movemask_ps(_mm256_cmp_ps(r2, limit, _CMP_LE_OQ));
    if (!chosen) continue;
    const __m256i lanes = _mm256_loadu_si256((const __m256i_u *)pack[chosen]);
    const __m256i id = _mm256_loadu_si256((const __m256i_u *)(in->id + k));
    _mm256_storeu_ps(out->x + n, _mm256_permutevar8x32_ps(x, lanes));
    _mm256_storeu_ps(out->y + n, _mm256_permutevar8x32_ps(y, lanes));
    _mm256_storeu_ps(out->z + n, _mm256_permutevar8x32_ps(z, lanes));
    _mm256_storeu_si256((__m256i_u *)(out->id + n), _mm256_permutevar8x32_epi32(id, lanes));
    n += __builtin_popcount((unsigned)chosen);
  }
  out->n = n;
  tsi_points_pad(out);
}

AVX2 static int32_t near_avx2(const tsi_points *in, const float p[3], const tsi_bounds *bounds,
                              int32_t *hit, int32_t *unsure, int32_t *nunsure)
{
  const __m256 px = _mm256_set1_ps(p[0]), py = _mm256_set1_ps(p[1]), pz = _mm256_set1_ps(p[2]);
  const __m256 far = _mm256_set1_ps(bounds->far);
  const __m256 sure_low = _mm256_set1_ps(bounds->sure_low);
  const __m256 sure_high = _mm256_set1_ps(bounds->sure_high);
  int32_t n = 0, nu = 0;
  for (int32_t k = 0; k < in->n; k += 8) {
    const __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(in->x + k), px);
    const __m256 dy = _mm256_sub_ps(_mm256_loadu_ps(in->y + k), py);
    const __m256 dz = _mm256_sub_ps(_mm256_loadu_ps(in->z + k), pz);
    const __m256 r2 = square256(dx, dy, dz);
    const unsigned chosen = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(r2, far, _CMP_LE_OQ));
    const __m256 low = _mm256_cmp_ps(r2, sure_low, _CMP_LT_OQ);
    const __m256 high = _mm256_cmp_ps(r2, sure_high, _CMP_GT_OQ);
    const __m256i lanes = _mm256_loadu_si256((const __m256i_u *)pack[chosen]);
    const __m256i id = _mm256_loadu_si256((const __m256i_u *)(in->id + k));
    _mm256_storeu_si256((__m256i_u *)(hit + n), _mm256_permutevar8x32_epi32(id, lanes));
    for (unsigned open = chosen & (unsigned)_mm256_movemask_ps(_mm256_or_ps(low, high)); open;
         open &= open - 1)
      unsure[nu++] = n + __builtin_popcount(chosen & ((open & -open) - 1));
    n += __builtin_popcount(chosen);
  }
  *nunsure = nu;
  return n;
}

const tsi_scan tsi_scan_avx2 = {"avx2", keep_avx2, near_avx2};
const tsi_scan tsi_scan_avx512 = {"avx512", keep_avx512, near_avx512};

#else
typedef int tsi_scan_x86_is_empty;
#endif
