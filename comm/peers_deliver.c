/* SPDX-License-Identifier: MIT
 *
 * Delivery is a row of steps, each an exchange in its own window: what has to leave is sorted by
 * slot and sent, what stays or arrives waits in the box for the next step. */
#include "comm/peers_deliver.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

typedef enum step_kind { STEP_FOLD, STEP_BIT, STEP_UNFOLD, STEP_ALL } step_kind;

typedef struct step {
  step_kind kind;
  int bit; /* STEP_BIT: the value of the bit */
  ts_peers *peers;
  ts_exchange exchange;
} step;

struct ts_delivery {
  ts_ranks ranks;
  int fold; /* the largest power of two of ranks */
  int nstep;
  step step[TS_MAX_RANK_BITS + 2];
  ts_box *going;          /* [hosted] sorted by slot */
  int64_t *count, *start; /* [hosted, slots of the widest window] */
  size_t record;
};

int ts_box_add(ts_box *box, size_t record, int64_t n, const void *records)
{
  if (n == 0) return 0;
  if (box->n + n > box->room) {
    const int64_t room = box->n + n + box->room / 2 + 8;
    char *data = NULL;
    TS_TRY(tsi_alloc((size_t)room, record, (void **)&data));
    if (box->n) memcpy(data, box->data, (size_t)box->n * record);
    free(box->data);
    box->data = data;
    box->room = room;
  }
  if (n) memcpy(box->data + (size_t)box->n * record, records, (size_t)n * record);
  box->n += n;
  return 0;
}

static int add_step(ts_delivery *d, step_kind kind, int bit)
{
  step *s = &d->step[d->nstep++];
  *s = (step){.kind = kind, .bit = bit};
  if (kind == STEP_ALL)
    TS_TRY(ts_peers_create_all(&d->ranks, &s->peers));
  else if (kind == STEP_BIT)
    TS_TRY(ts_peers_create_xor(&d->ranks, d->fold, 1, &bit, &s->peers));
  else
    TS_TRY(tsi_peers_create_fold(&d->ranks, d->fold, &s->peers));
  return ts_exchange_create(s->peers, &s->exchange);
}

static int add_steps(ts_delivery *d, ts_route_mode mode)
{
  if (mode == TS_ROUTE_SPLITMIX) return add_step(d, STEP_ALL, 0);
  const bool folded = d->fold < d->ranks.size;
  if (folded) TS_TRY(add_step(d, STEP_FOLD, 0));
  for (int bit = 1; bit < d->fold; bit *= 2)
    TS_TRY(add_step(d, STEP_BIT, bit));
  return folded ? add_step(d, STEP_UNFOLD, 0) : 0;
}

int ts_delivery_create(const ts_ranks *ranks, ts_route_mode mode, ts_delivery **out)
{
  *out = NULL;
  TS_TRY(TSI_NEW(*out, 1));
  ts_delivery *d = *out;
  const int widest = mode == TS_ROUTE_SPLITMIX ? ranks->size : 1;
  int status = 0;
  d->ranks = *ranks;
  d->fold = tsi_power_of_two_below(ranks->size);
  TS_TRY_GOTO(status, TSI_NEW(d->going, ranks->hosted), fail);
  TS_TRY_GOTO(status, TSI_NEW(d->count, (int64_t)ranks->hosted * widest), fail);
  TS_TRY_GOTO(status, TSI_NEW(d->start, (int64_t)ranks->hosted * widest), fail);
  TS_TRY_GOTO(status, add_steps(d, mode), fail);
  return 0;
fail:
  ts_delivery_destroy(out);
  return status;
}

void ts_delivery_destroy(ts_delivery **delivery)
{
  ts_delivery *d = *delivery;
  if (!d) return;
  for (int i = 0; i < d->nstep; i++) {
    ts_exchange_destroy(&d->step[i].exchange);
    ts_peers_destroy(&d->step[i].peers);
  }
  for (int h = 0; d->going && h < d->ranks.hosted; h++)
    free(d->going[h].data);
  free(d->going);
  free(d->count);
  free(d->start);
  free(d);
  *delivery = NULL;
}

static int32_t destination(const char *record)
{
  int32_t rank;
  memcpy(&rank, record, sizeof rank);
  return rank;
}

/* The slot by which a record leaves `rank` in this step, or -1: it stays. */
static int slot_of(const ts_delivery *d, const step *s, int rank, int dest)
{
  switch (s->kind) {
    case STEP_ALL:
      return dest;
    case STEP_FOLD:
      return rank >= d->fold && dest != rank ? 0 : -1;
    case STEP_UNFOLD:
      return rank < d->fold && dest >= d->fold ? 0 : -1;
    default: /* ranks beyond the fold keep what is for them */
      return rank < d->fold && ((dest ^ rank) & s->bit) ? 0 : -1;
  }
}

/* Move what leaves from box to going, by slot and else in order, and count it. */
static int split(ts_delivery *d, const step *s, int h, ts_box *box)
{
  const int slots = ts_peers_slots(s->peers), rank = d->ranks.first + h;
  int64_t *count = d->count + (int64_t)h * slots, *start = d->start + (int64_t)h * slots;
  ts_box *going = &d->going[h];
  int64_t kept = 0;
  memset(count, 0, (size_t)slots * sizeof *count);
  for (int64_t i = 0; i < box->n; i++) {
    const int slot = slot_of(d, s, rank, destination(box->data + (size_t)i * d->record));
    if (slot >= 0) count[slot]++;
  }
  for (int64_t k = 0, sum = 0; k < slots; sum += count[k++])
    start[k] = sum;

  going->n = 0;
  TS_TRY(ts_box_add(going, d->record, box->n, box->data)); /* room; overwritten below */
  for (int64_t i = 0; i < box->n; i++) {
    const char *record = box->data + (size_t)i * d->record;
    const int slot = slot_of(d, s, rank, destination(record));
    char *to = slot < 0 ? box->data + (size_t)kept++ * d->record
                        : going->data + (size_t)start[slot]++ * d->record;
    if (to != record) memcpy(to, record, d->record);
  }
  for (int k = 0; k < slots; k++)
    start[k] -= count[k];
  box->n = kept;
  return 0;
}

typedef struct packing {
  const ts_delivery *delivery;
  int slots;
} packing;

static void pack(void *context, int host, int slot, void *out)
{
  const packing *p = context;
  const ts_delivery *d = p->delivery;
  const int64_t k = (int64_t)host * p->slots + slot;
  if (d->count[k])
    memcpy(out, d->going[host].data + (size_t)d->start[k] * d->record,
           (size_t)d->count[k] * d->record);
}

static int run_step(ts_delivery *d, step *s, ts_box *box)
{
  packing p = {d, ts_peers_slots(s->peers)};
  ts_exchange *x = &s->exchange;
  for (int h = 0; h < d->ranks.hosted; h++)
    TS_TRY(split(d, s, h, &box[h]));
  TS_TRY(ts_peers_exchange(s->peers, d->record, d->count, pack, &p, x));
  for (int h = 0; h < d->ranks.hosted; h++) {
    const int64_t from = x->first[(int64_t)h * p.slots], to = x->first[(int64_t)(h + 1) * p.slots];
    TS_TRY(ts_box_add(&box[h], d->record, to - from, x->data + (size_t)from * d->record));
  }
  return 0;
}

int ts_delivery_run(ts_delivery *delivery, size_t record, ts_box *box)
{
  if (record != delivery->record) /* the room of these boxes was counted in other records */
    for (int h = 0; h < delivery->ranks.hosted; h++) {
      free(delivery->going[h].data);
      delivery->going[h] = (ts_box){0};
    }
  delivery->record = record;
  for (int i = 0; i < delivery->nstep; i++)
    TS_TRY(run_step(delivery, &delivery->step[i], box));
  return 0;
}
