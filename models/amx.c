/* SPDX-License-Identifier: MIT
 *
 * Products on bf16 tiles.  A tile has 16 rows of 64 bytes; one instruction adds the product of a
 * 16 x 32 tile of the left operand and a 32 x 16 tile of the right one (two rows k, k+1 side by
 * side) to 16 x 16 sums in float.  Weights are split and laid out once; rows of the left operand
 * are split here, a band at a time, which costs little beside their products with all columns.
 *
 * A block of 32 x 32 sums takes four of the eight tiles.  The small products of all k are added
 * first and the large ones to them, so that they are rounded like the sums of a plain product.
 * Every element is summed in the same order, whatever the number of rows. */
#include "models/amx.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

#if defined(__x86_64__) && defined(__linux__) && __has_include(<amxbf16intrin.h>)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  SIDE = 16,           /* rows of a tile; columns of a tile of sums */
  DEPTH = 32,          /* k of a tile */
  TILE = SIDE * DEPTH, /* bf16 numbers of a tile */
  BLOCK = 2 * SIDE,    /* rows and columns of a block of sums */
  MOST_PARTS = 3,
  MOST_DEPTH = 512,       /* k at a time */
  BAND_BYTES = 384 << 10, /* of split rows at a time */
};

typedef uint16_t bf16;

#define TARGET __attribute__((target("avx512f,avx512bw,avx512bf16,amx-tile,amx-bf16")))

/* ---- is it there? ---- */

static bool ask_system(void)
{
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}

static bool available(void)
{
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX512_BF16 = 1 << 5 };
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) || !(d & AMX_TILE)) return false;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & AVX512_BF16)) return false;
  return __builtin_cpu_supports("avx512bw") && ask_system();
}

/* ---- weights ---- */

/* Both directions of one weight: [ceil(width/32), ceil(length/32), parts, 2] tiles. */
typedef struct tiled_weight {
  bf16 *forward, *backward;
} tiled_weight;

static size_t ceil_of(size_t n, size_t by)
{
  return (n + by - 1) / by;
}

static size_t tiled_size(int length, int width, int parts)
{
  return ceil_of((size_t)width, BLOCK) * ceil_of((size_t)length, DEPTH) * (size_t)parts * 2 * TILE;
}

static bf16 nearest(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(bf16 x)
{
  const uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}

/* w [length,width], or its transpose when `across`; beyond: zeros. */
static void lay_out(bf16 *to, const double *w, int length, int width, int parts, bool across)
{
  const size_t depths = ceil_of((size_t)length, DEPTH);
  for (size_t column = 0; column < (size_t)width; column++)
    for (size_t k = 0; k < (size_t)length; k++) {
      const size_t block = column / BLOCK * depths + k / DEPTH;
      const size_t half = column % BLOCK / SIDE, pair = k % DEPTH / 2;
      float rest = (float)w[across ? column * (size_t)length + k : k * (size_t)width + column];
      for (size_t p = 0; p < (size_t)parts; p++) {
        const bf16 part = nearest(rest);
        to[((block * (size_t)parts + p) * 2 + half) * TILE + (pair * SIDE + column % SIDE) * 2 +
           k % 2] = part;
        rest -= widen(part);
      }
    }
}

static int pack(ts_matrix *m, const double *w, int parts)
{
  const size_t head = ceil_of(sizeof(tiled_weight), TS_ALIGN) * TS_ALIGN;
  const size_t there = tiled_size(m->in, m->out, parts), back = tiled_size(m->out, m->in, parts);
  m->bytes = head + (there + back) * sizeof(bf16);
  TS_TRY(tsi_alloc(m->bytes, 1, &m->packed));
  tiled_weight *tiled = m->packed;
  tiled->forward = (bf16 *)(void *)((char *)m->packed + head);
  tiled->backward = tiled->forward + there;
  lay_out(tiled->forward, w, m->in, m->out, parts, false);
  lay_out(tiled->backward, w, m->out, m->in, parts, true);
  return 0;
}

/* ---- rows ---- */

/* Split 32 numbers of x, `count` of which exist, into a row of each part's tile. */
TARGET static inline void split_row(const float *x, int count, int parts, bf16 *to)
{
  const __mmask32 there = count >= DEPTH ? ~(__mmask32)0 : ((__mmask32)1 << count) - 1;
  __m512 low = _mm512_maskz_loadu_ps((__mmask16)there, x);
  __m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), x + SIDE);
  for (int p = 0; p < parts; p++) {
    const __m512i pair = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(to + (size_t)p * 2 * TILE, pair);
    const __m512i l = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pair));
    const __m512i h = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(pair, 1));
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_slli_epi32(l, 16)));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_slli_epi32(h, 16)));
  }
}

/* x [rows,length] into [ceil(rows/32), ceil(length/32), parts, 2] tiles. */
TARGET static void split_rows(const float *x, size_t ldx, int rows, int length, int parts, bf16 *to)
{
  for (int first = 0; first < rows; first += BLOCK)
    for (int k = 0; k < length; k += DEPTH, to += (size_t)parts * 2 * TILE)
      for (int i = 0; i < BLOCK; i++) {
        const bool there = first + i < rows;
        split_row(x + (there ? (size_t)(first + i) * ldx + (size_t)k : 0), there ? length - k : 0,
                  parts, to + (size_t)i * DEPTH);
      }
}

/* ---- products ---- */

TARGET static void configure(void)
{
  struct {
    uint8_t palette, row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1};
  for (int t = 0; t < 8; t++) {
    config.bytes[t] = DEPTH * sizeof(bf16);
    config.rows[t] = SIDE;
  }
  _tile_loadconfig(&config);
}

/* Tiles 0 to 3: sums; 4, 5: rows; 6, 7: columns.  The halves of a part follow each other. */
#define LOAD_ROWS(p)                                  \
  _tile_loadd(4, a + (size_t)(p)*2 * TILE, SIDE * 4); \
  _tile_loadd(5, a + ((size_t)(p)*2 + 1) * TILE, SIDE * 4)
#define LOAD_COLUMNS(p)                               \
  _tile_loadd(6, b + (size_t)(p)*2 * TILE, SIDE * 4); \
  _tile_loadd(7, b + ((size_t)(p)*2 + 1) * TILE, SIDE * 4)
#define MULTIPLY           \
  _tile_dpbf16ps(0, 4, 6); \
  _tile_dpbf16ps(1, 4, 7); \
  _tile_dpbf16ps(2, 5, 6); \
  _tile_dpbf16ps(3, 5, 7)

/* sum [32,32] of a block of rows and one of columns; `parts` is a literal. */
TARGET static inline __attribute__((always_inline)) void block(int parts, size_t depths,
                                                               const bf16 *rows,
                                                               const bf16 *columns,
                                                               const char *next, int lines,
                                                               float *sum)
{
  const size_t step = (size_t)parts * 2 * TILE;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (size_t k = 0; k < depths && parts > 1; k++) {
    const bf16 *a = rows + k * step, *b = columns + k * step;
    for (int l = 0; l < lines; l++, next += 64)
      _mm_prefetch(next, _MM_HINT_T1);
    if (parts == 3) {
      LOAD_ROWS(0);
      LOAD_COLUMNS(2);
      MULTIPLY;
      LOAD_COLUMNS(1);
      MULTIPLY;
      LOAD_ROWS(1);
      MULTIPLY;
      LOAD_COLUMNS(0);
      MULTIPLY;
      LOAD_ROWS(2);
      MULTIPLY;
    } else {
      LOAD_ROWS(0);
      LOAD_COLUMNS(1);
      MULTIPLY;
      LOAD_ROWS(1);
      LOAD_COLUMNS(0);
      MULTIPLY;
    }
  }
  for (size_t k = 0; k < depths; k++) {
    const bf16 *a = rows + k * step, *b = columns + k * step;
    LOAD_ROWS(0);
    LOAD_COLUMNS(0);
    MULTIPLY;
  }
  _tile_stored(0, sum, BLOCK * sizeof *sum);
  _tile_stored(1, sum + SIDE, BLOCK * sizeof *sum);
  _tile_stored(2, sum + SIDE * BLOCK, BLOCK * sizeof *sum);
  _tile_stored(3, sum + SIDE * BLOCK + SIDE, BLOCK * sizeof *sum);
}

/* y [rows,columns] = sum + beta y. */
TARGET static void put_block(const float *sum, float beta, int rows, int columns, float *y,
                             size_t ldy)
{
  const __mmask32 there = columns >= BLOCK ? ~(__mmask32)0 : ((__mmask32)1 << columns) - 1;
  for (int i = 0; i < rows; i++)
    for (int h = 0; h < 2; h++) {
      const __mmask16 mask = (__mmask16)(there >> (SIDE * h));
      float *to = y + (size_t)i * ldy + SIDE * h;
      __m512 s = _mm512_load_ps(sum + i * BLOCK + SIDE * h);
      if (beta != 0) s = _mm512_fmadd_ps(_mm512_set1_ps(beta), _mm512_maskz_loadu_ps(mask, to), s);
      _mm512_mask_storeu_ps(to, mask, s);
    }
}

/* y [rows,width] = x [rows,length] times tiled weights, + beta y.  The weights have `depths` blocks
 * of k, of which these are the first `length` from block `from` on. */
TARGET static inline __attribute__((always_inline)) void band(int parts, const bf16 *weights,
                                                              size_t depths, size_t from,
                                                              int length, int width, int rows,
                                                              const float *x, size_t ldx,
                                                              float beta, float *y, size_t ldy)
{
  _Alignas(64) bf16 split[BAND_BYTES / sizeof(bf16)];
  _Alignas(64) float sum[BLOCK * BLOCK];
  const size_t own = ceil_of((size_t)length, DEPTH), tiles = (size_t)parts * 2 * TILE;
  const int blocks = (int)ceil_of((size_t)rows, BLOCK);
  const int lines = (int)ceil_of(tiles * sizeof(bf16) / 64, (size_t)blocks);
  split_rows(x, ldx, rows, length, parts, split);
  for (int c = 0; c < width; c += BLOCK) {
    const bf16 *columns = weights + ((size_t)(c / BLOCK) * depths + from) * tiles;
    const char *next = (const char *)(columns + depths * tiles); /* asked for bit by bit */
    for (int i = 0; i < rows; i += BLOCK) {
      block(parts, own, split + (size_t)(i / BLOCK) * own * tiles, columns, next, lines, sum);
      next += (size_t)lines * own * 64;
      put_block(sum, beta, rows - i < BLOCK ? rows - i : BLOCK, width - c, y + (size_t)i * ldy + c,
                ldy);
    }
  }
}

TARGET static inline __attribute__((always_inline)) void multiply(int parts, const bf16 *weights,
                                                                  int length, int width, int rows,
                                                                  const float *x, size_t ldx,
                                                                  float beta, float *y, size_t ldy)
{
  const size_t depths = ceil_of((size_t)length, DEPTH);
  configure();
  for (int k = 0; k < length; k += MOST_DEPTH) {
    const int own = length - k < MOST_DEPTH ? length - k : MOST_DEPTH;
    const size_t row = ceil_of((size_t)own, DEPTH) * DEPTH * (size_t)parts * sizeof(bf16);
    const int most = (int)(BAND_BYTES / row) / BLOCK * BLOCK;
    for (int i = 0; i < rows; i += most)
      band(parts, weights, depths, (size_t)k / DEPTH, own, width, rows - i < most ? rows - i : most,
           x + (size_t)i * ldx + k, ldx, k ? 1 : beta, y + (size_t)i * ldy, ldy);
  }
  _tile_release();
}

#define OPS(parts)                                                                            \
  static int pack_##parts(ts_matrix *m, const double *w)                                      \
  {                                                                                           \
    return pack(m, w, parts);                                                                 \
  }                                                                                           \
  TARGET static void forward_##parts(const ts_matrix *m, int rows, const void *x, int ldx,    \
                                     double beta, void *y, int ldy)                           \
  {                                                                                           \
    const tiled_weight *tiled = m->packed;                                                    \
    multiply(parts, tiled->forward, m->in, m->out, rows, x, (size_t)ldx, (float)beta, y,      \
             (size_t)ldy);                                                                    \
  }                                                                                           \
  TARGET static void backward_##parts(const ts_matrix *m, int rows, const void *dy, int lddy, \
                                      double beta, void *dx, int lddx)                        \
  {                                                                                           \
    const tiled_weight *tiled = m->packed;                                                    \
    multiply(parts, tiled->backward, m->out, m->in, rows, dy, (size_t)lddy, (float)beta, dx,  \
             (size_t)lddx);                                                                   \
  }
OPS(1)
OPS(2)
OPS(3)

const ts_matrix_ops *ts_amx_ops(int parts)
{
  static const ts_matrix_ops ops[MOST_PARTS] = {
      {.name = "amx", .pack = pack_1, .forward = forward_1, .backward = backward_1},
      {.name = "amx2", .pack = pack_2, .forward = forward_2, .backward = backward_2},
      {.name = "amx3", .pack = pack_3, .forward = forward_3, .backward = backward_3}};
  return available() ? &ops[parts - 1] : NULL;
}

#else

const ts_matrix_ops *ts_amx_ops(int parts)
{
  (void)parts;
  return NULL;
}

#endif
