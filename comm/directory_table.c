/* SPDX-License-Identifier: MIT
 *
 * The table inside a home: open addressing, linear probing, at most half full; removal closes the
 * gap, so a search always ends at the first empty slot. */
#include <stdlib.h>
#include <string.h>

#include "comm/directory.h"
#include "runtime/error.h"
#include "runtime/memory.h"

typedef struct slot {
  ts_key key;
  int64_t batch, index; /* of the entry's last writer */
  int32_t source;
  bool used;
} slot;

struct tsi_table {
  size_t value_size;
  int64_t count, room; /* room is a power of two */
  slot *slot;
  char *value;
};

enum { FIRST_ROOM = 64 };

static int make_room(tsi_table *t, int64_t room)
{
  t->room = room;
  TS_TRY(TSI_NEW(t->slot, room));
  return tsi_alloc((size_t)room, t->value_size, (void **)&t->value);
}

int tsi_table_create(size_t value_size, tsi_table **out)
{
  *out = NULL;
  TS_TRY(TSI_NEW(*out, 1));
  (*out)->value_size = value_size;
  const int status = make_room(*out, FIRST_ROOM);
  if (status) tsi_table_destroy(out);
  return status;
}

void tsi_table_destroy(tsi_table **table)
{
  if (!*table) return;
  free((*table)->slot);
  free((*table)->value);
  free(*table);
  *table = NULL;
}

int64_t tsi_table_count(const tsi_table *table)
{
  return table->count;
}

static int64_t home(const tsi_table *t, ts_key key)
{
  return (int64_t)(tsi_key_avalanche(key, 0) & (uint64_t)(t->room - 1));
}

static int64_t after(const tsi_table *t, int64_t i)
{
  return (i + 1) & (t->room - 1);
}

/* Where a key is, or the empty slot where it would go. */
static int64_t locate(const tsi_table *t, ts_key key)
{
  int64_t i = home(t, key);
  while (t->slot[i].used && !ts_key_equal(t->slot[i].key, key))
    i = after(t, i);
  return i;
}

static char *value_at(const tsi_table *t, int64_t i)
{
  return t->value + (size_t)i * t->value_size;
}

static void copy_slot(tsi_table *to, int64_t i, const tsi_table *from, int64_t j)
{
  to->slot[i] = from->slot[j];
  if (to->value_size) memcpy(value_at(to, i), value_at(from, j), to->value_size);
}

static int grow(tsi_table *t)
{
  tsi_table larger = {.value_size = t->value_size, .count = t->count};
  const int status = make_room(&larger, 2 * t->room);
  if (!status)
    for (int64_t i = 0; i < t->room; i++)
      if (t->slot[i].used) copy_slot(&larger, locate(&larger, t->slot[i].key), t, i);
  tsi_table *const dropped = status ? &larger : t;
  free(dropped->slot);
  free(dropped->value);
  if (!status) *t = larger;
  return status;
}

int tsi_table_put(tsi_table *table, ts_key key, const void *value, int64_t batch, int32_t source,
                  int64_t index)
{
  if (2 * (table->count + 1) > table->room) TS_TRY(grow(table));
  const int64_t i = locate(table, key);
  slot *s = &table->slot[i];
  const bool later = s->source > source || (s->source == source && s->index > index);
  if (s->used && s->batch == batch && later) return 0;
  table->count += !s->used;
  *s = (slot){key, batch, index, source, true};
  if (table->value_size) memcpy(value_at(table, i), value, table->value_size);
  return 0;
}

const void *tsi_table_find(const tsi_table *table, ts_key key)
{
  const int64_t i = locate(table, key);
  return table->slot[i].used ? value_at(table, i) : NULL;
}

void tsi_table_remove(tsi_table *table, ts_key key)
{
  int64_t gap = locate(table, key);
  if (!table->slot[gap].used) return;
  const int64_t mask = table->room - 1;
  for (int64_t i = after(table, gap); table->slot[i].used; i = after(table, i)) {
    const int64_t from_home = (i - home(table, table->slot[i].key)) & mask;
    if (from_home < ((i - gap) & mask)) continue; /* its home lies behind the gap */
    copy_slot(table, gap, table, i);
    gap = i;
  }
  table->slot[gap].used = false;
  table->count--;
}
