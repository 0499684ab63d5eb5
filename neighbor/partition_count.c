/* SPDX-License-Identifier: MIT
 *
 * Cuts found by counting, a multiway radix selection.  An interval of the order is given by the
 * leading bits of (key, gid).  Every round splits the intervals that contain cuts by some bits
 * more, counts the atoms (and their weight) in the pieces over all ranks, and keeps the pieces with
 * a cut inside; an atom outside them is done with.  A cut that falls on a piece's lower end is
 * found.
 *
 * A round is one sum over all ranks of at most max(4096, 16 K) counts, and linear in the atoms that
 * are left; after the first round these are few.  Evenly spread atoms need about four rounds;
 * equal keys are told apart by some rounds over the ids. */
#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "neighbor/partition_impl.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { WORD = 63, MOST_BITS = 12 }; /* bits of a key, of an id; of a round */

typedef struct interval {
  uint64_t key, gid;      /* lower end */
  int64_t before, weight; /* in front of it */
  int first, end;         /* cuts inside */
} interval;

typedef struct search {
  const tsi_cut_problem *p;
  tsi_cut *cut;
  interval *interval, *refined;
  int64_t *count; /* [intervals << bits, fields]: atoms, weight */
  int32_t *next;  /* [intervals << bits] a piece's interval in the next round, or -1 */
  int64_t table;  /* pieces that there is room for */
  int64_t atoms;  /* left, in front */
  int intervals, fields;
  int bits, shift; /* of this round, and where in the word */
  bool ids;        /* the word is the id, not the key */
} search;

static int create(search *s, const tsi_cut_problem *p, tsi_cut *cut)
{
  *s = (search){.p = p, .cut = cut, .fields = p->weighted ? 2 : 1, .shift = WORD, .intervals = 1};
  s->table = p->cuts < 256 ? 1 << MOST_BITS : 16 * (int64_t)p->cuts;
  s->atoms = p->first[p->ranks->hosted];
  TS_TRY(TSI_NEW(s->interval, p->cuts));
  TS_TRY(TSI_NEW(s->refined, p->cuts));
  TS_TRY(TSI_NEW(s->count, s->table * s->fields));
  TS_TRY(TSI_NEW(s->next, s->table));
  s->interval[0].end = p->cuts;
  for (int64_t i = 0; i < s->atoms; i++)
    p->atom[i].interval = 0;
  return 0;
}

static void destroy(search *s)
{
  free(s->interval);
  free(s->refined);
  free(s->count);
  free(s->next);
}

/* The next bits to look at; false: there are none. */
static bool choose_bits(search *s)
{
  if (s->shift == 0) {
    if (s->ids) return false;
    s->ids = true;
    s->shift = WORD;
  }
  s->bits = 1;
  while (s->bits < MOST_BITS && s->bits < s->shift &&
         (int64_t)s->intervals << (s->bits + 1) <= s->table)
    s->bits++;
  s->shift -= s->bits;
  return true;
}

static int count_pieces(search *s)
{
  const int pieces = s->intervals << s->bits;
  const uint64_t mask = (1u << s->bits) - 1;
  ts_ranks process = *s->p->ranks; /* one row of counts serves all the ranks hosted here */
  process.hosted = 1;
  memset(s->count, 0, (size_t)(pieces * s->fields) * sizeof *s->count);
  for (int64_t i = 0; i < s->atoms; i++) {
    tsi_cut_atom *a = &s->p->atom[i];
    const uint64_t digit = ((s->ids ? a->gid : a->key) >> s->shift) & mask;
    a->interval = a->interval << s->bits | (int32_t)digit;
    int64_t *count = &s->count[(int64_t)a->interval * s->fields];
    count[0]++;
    if (s->fields == 2) count[1] += a->weight;
  }
  return ts_ranks_sum_i64(&process, pieces * s->fields, s->count);
}

/* The lower end of a piece of an interval, or of the next one. */
static interval piece_of(const search *s, const interval *whole, int digit)
{
  interval piece = *whole;
  *(s->ids ? &piece.gid : &piece.key) += (uint64_t)digit << s->shift;
  return piece;
}

/* Cuts inside of a piece of `atoms` and `weight`: found, or left to an interval of the next round.
 * \return Whether some are left. */
static bool place_cuts(search *s, const interval *whole, int digit, int64_t atoms, int64_t weight,
                       interval *piece)
{
  while (piece->end < whole->end && s->p->target[piece->end] < piece->weight + weight) {
    const int64_t target = s->p->target[piece->end];
    if (target == piece->weight || atoms == 1) {
      const bool behind = tsi_cut_behind(target, piece->weight, weight);
      const interval at = piece_of(s, whole, digit + behind);
      s->cut[piece->end] = (tsi_cut){at.key, at.gid, piece->before + behind};
      piece->first++;
    }
    piece->end++;
  }
  return piece->first < piece->end;
}

/* The pieces with cuts inside are the next round's intervals. */
static void refine(search *s)
{
  int kept = 0;
  for (int a = 0; a < s->intervals; a++) {
    const interval *whole = &s->interval[a];
    interval at = *whole; /* walks along the pieces */
    at.end = at.first;
    for (int digit = 0; digit < 1 << s->bits; digit++) {
      const int piece = a << s->bits | digit;
      const int64_t *count = &s->count[(int64_t)piece * s->fields];
      const int64_t weight = count[s->fields - 1];
      const interval lower = piece_of(s, whole, digit);
      at.key = lower.key;
      at.gid = lower.gid;
      s->next[piece] = -1;
      if (place_cuts(s, whole, digit, count[0], weight, &at)) {
        s->refined[kept] = at;
        s->next[piece] = kept++;
      }
      at.first = at.end;
      at.before += count[0];
      at.weight += weight;
    }
  }
  interval *old = s->interval;
  s->interval = s->refined;
  s->refined = old;
  s->intervals = kept;
}

/* To the front with the atoms that are still inside of an interval. */
static void keep_atoms(search *s)
{
  int64_t kept = 0;
  for (int64_t i = 0; i < s->atoms; i++) {
    tsi_cut_atom a = s->p->atom[i];
    a.interval = s->next[a.interval];
    if (a.interval < 0) continue;
    s->p->atom[i] = s->p->atom[kept];
    s->p->atom[kept++] = a;
  }
  s->atoms = kept;
}

int tsi_cut_count(const tsi_cut_problem *problem, tsi_cut *cut)
{
  search s;
  if (problem->cuts == 0) return 0;
  int status = tsi_ranks_agree(problem->ranks, create(&s, problem, cut));
  while (!status && s.intervals > 0) {
    if (!choose_bits(&s)) {
      status = tsi_fail(TS_ERR_ARG, "two atoms have the id %llu",
                        (unsigned long long)s.interval[0].gid + 1);
      break;
    }
    status = count_pieces(&s);
    if (status) break;
    refine(&s);
    keep_atoms(&s);
  }
  destroy(&s);
  return status;
}
