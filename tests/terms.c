/* SPDX-License-Identifier: MIT
 *
 * The term-exchange workload on ts_peers: one window of one shift for each generator. */
#include "tests/terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/directory.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { RUNGS = 18, RUNG_SPAN = 18, RUNG_STEP = 6 }; /* 126 bonds of a chain, 18 across it */

struct terms {
  ts_router *router;
  ts_peers *peers[TERM_GENERATORS];
  ts_exchange exchange[TERM_GENERATORS];
  tsi_table *index; /* key -> place in the lists */
  int64_t writes;   /* to the index: a later one replaces an earlier one */
  int64_t n, room;
  ts_key *key;
  double *value;
  int64_t *count, *filled; /* [slots] of the widest window */
  term_message *out;       /* [room], by slot */
  int64_t *start;
};

static const double cosine = 0.98877107793604228, sine = 0.14943813247359922; /* of 0.15 */

static void bond(int e, int *a, int *b)
{
  *a = e < TERM_SITES - 1 ? e : (e - (TERM_SITES - 1)) * RUNG_STEP;
  *b = e < TERM_SITES - 1 ? e + 1 : *a + RUNG_SPAN;
}

ts_key terms_generator(int g)
{
  int a = 0, b = 0;
  if (g < TERM_SITES) return ts_key_bit(g);
  bond(g - TERM_SITES, &a, &b);
  return ts_key_xor(ts_key_bit(a), ts_key_bit(b));
}

/* Even overlap with the generator itself, so that shifting twice leads back. */
static ts_key mask_of(int g)
{
  if (g >= TERM_SITES)
    return ts_key_xor(terms_generator(g), ts_key_bit((g + TERM_SITES / 2) % TERM_SITES));
  return ts_key_xor(ts_key_bit((g + 1) % TERM_SITES), ts_key_bit((g + 5) % TERM_SITES));
}

static bool odd(ts_key key, ts_key mask)
{
  return __builtin_parityll((key.lo & mask.lo) ^ (key.hi & mask.hi));
}

int terms_router(ts_route_mode mode, int ranks, ts_router **out)
{
  ts_key shift[TERM_GENERATORS];
  ts_route_params params;
  for (int g = 0; g < TERM_GENERATORS; g++)
    shift[g] = terms_generator(g);
  ts_route_params_init(&params, ranks);
  params.mode = mode;
  params.nshift = TERM_GENERATORS;
  params.shift = shift;
  return ts_router_create(&params, out);
}

static int reserve(terms *t, int64_t room)
{
  if (room <= t->room) return 0;
  room += room / 2;
  ts_key *key = NULL;
  double *value = NULL;
  TS_TRY(TSI_NEW(key, room));
  TS_TRY(TSI_NEW(value, room));
  if (t->n) memcpy(key, t->key, (size_t)t->n * sizeof *key);
  if (t->n) memcpy(value, t->value, (size_t)t->n * sizeof *value);
  free(t->key);
  free(t->value);
  free(t->out);
  t->key = key;
  t->value = value;
  t->room = room;
  return TSI_NEW(t->out, room);
}

static int add(terms *t, ts_key key, double value)
{
  TS_TRY(reserve(t, t->n + 1));
  t->key[t->n] = key;
  t->value[t->n] = value;
  TS_TRY(tsi_table_put(t->index, key, &t->n, t->writes++, 0, 0));
  t->n++;
  return 0;
}

static void drop(terms *t, int64_t i)
{
  tsi_table_remove(t->index, t->key[i]);
  if (i == --t->n) return;
  t->key[i] = t->key[t->n];
  t->value[i] = t->value[t->n];
  tsi_table_put(t->index, t->key[i], &i, t->writes++, 0, 0); /* there already: it has room */
}

static int create(terms *t, const ts_ranks *ranks, ts_route_mode mode, int start)
{
  TS_TRY(terms_router(mode, ranks->size, &t->router));
  TS_TRY(tsi_table_create(sizeof(int64_t), &t->index));
  TS_TRY(TSI_NEW(t->count, ranks->size));
  TS_TRY(TSI_NEW(t->filled, ranks->size));
  TS_TRY(TSI_NEW(t->start, ranks->size));
  for (int g = 0; g < TERM_GENERATORS; g++) {
    const ts_key shift = terms_generator(g);
    TS_TRY(ts_peers_create(ranks, t->router, 1, &shift, &t->peers[g]));
    TS_TRY(ts_exchange_create(t->peers[g], &t->exchange[g]));
  }
  for (uint64_t i = 0; i < (uint64_t)start; i++) {
    const ts_key key = {tsi_key_avalanche((ts_key){i, 0}, 1),
                        tsi_key_avalanche((ts_key){i, 0}, 2) >> 1};
    if (ts_router_rank(t->router, key) == ranks->first) TS_TRY(add(t, key, 1));
  }
  return 0;
}

int terms_create(const ts_ranks *ranks, ts_route_mode mode, int start, terms **out)
{
  TS_TRY(TSI_NEW(*out, 1));
  const int status = create(*out, ranks, mode, start);
  if (status) terms_destroy(out);
  return status;
}

void terms_destroy(terms **terms_)
{
  terms *t = *terms_;
  if (!t) return;
  for (int g = 0; g < TERM_GENERATORS; g++) {
    ts_exchange_destroy(&t->exchange[g]);
    ts_peers_destroy(&t->peers[g]);
  }
  ts_router_destroy(&t->router);
  tsi_table_destroy(&t->index);
  free(t->key);
  free(t->value);
  free(t->out);
  free(t->count);
  free(t->filled);
  free(t->start);
  free(t);
  *terms_ = NULL;
}

static void pack(void *context, int host, int slot, void *out)
{
  const terms *t = context;
  (void)host;
  if (t->count[slot]) memcpy(out, t->out + t->start[slot], (size_t)t->count[slot] * sizeof *t->out);
}

/* Turn the coefficients that a generator touches; what moves is laid out by slot. */
static void emit(terms *t, int g, double least, terms_watch watch, void *context)
{
  const ts_key shift = terms_generator(g), mask = mask_of(g);
  const int slots = ts_peers_slots(t->peers[g]);
  memset(t->count, 0, (size_t)slots * sizeof *t->count);
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < t->n; i++) {
      if (!odd(t->key[i], mask)) continue;
      const ts_key to = ts_key_xor(t->key[i], shift);
      const double part = sine * t->value[i];
      if (fabs(part) >= least) {
        const int slot = ts_peers_slot(t->peers[g], to, 0);
        if (pass == 0)
          t->count[slot]++;
        else
          t->out[t->start[slot] + t->filled[slot]++] = (term_message){to, part};
        if (pass == 1 && watch) watch(context, g, t->key[i], to);
      }
      if (pass == 1) t->value[i] *= cosine;
    }
    if (pass == 0)
      for (int64_t s = 0, sum = 0; s < slots; sum += t->count[s++]) {
        t->start[s] = sum;
        t->filled[s] = 0;
      }
  }
}

static int absorb(terms *t, const ts_exchange *x, int slots)
{
  const term_message *in = (const term_message *)(const void *)x->data;
  for (int64_t i = 0; i < x->first[slots]; i++) {
    const int64_t *place = tsi_table_find(t->index, in[i].key);
    if (place)
      t->value[*place] -= in[i].part;
    else
      TS_TRY(add(t, in[i].key, -in[i].part));
  }
  return 0;
}

int terms_apply(terms *t, int g, double threshold, terms_watch watch, void *context)
{
  emit(t, g, threshold / 4, watch, context);
  TS_TRY(ts_peers_exchange(t->peers[g], sizeof(term_message), t->count, pack, t, &t->exchange[g]));
  TS_TRY(absorb(t, &t->exchange[g], ts_peers_slots(t->peers[g])));
  for (int64_t i = t->n; i-- > 0;)
    if (fabs(t->value[i]) < threshold) drop(t, i);
  return 0;
}

int64_t terms_count(const terms *t)
{
  return t->n;
}

ts_key terms_key(const terms *t, int64_t i)
{
  return t->key[i];
}

double terms_value(const terms *t, int64_t i)
{
  return t->value[i];
}

const double *terms_find(const terms *t, ts_key key)
{
  const int64_t *place = tsi_table_find(t->index, key);
  return place ? &t->value[*place] : NULL;
}
