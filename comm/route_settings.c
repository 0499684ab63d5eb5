/* SPDX-License-Identifier: MIT
 *
 * Routing settings: read strictly from a job, and compared by all ranks. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "comm/route.h"
#include "comm/world.h"
#include "runtime/error.h"

static const char *const modes[] = {"linear", "splitmix"};

void ts_route_params_init(ts_route_params *params, int ranks)
{
  *params = (ts_route_params){
      .mode = TS_ROUTE_LINEAR, .ranks = ranks, .partitions = 1, .seed = 1, .nshift = 0};
}

const char *ts_route_mode_name(ts_route_mode mode)
{
  return modes[mode];
}

static int refuse(const ts_json_node *node, const char *origin, const char *expected)
{
  char shown[64];
  return tsi_fail(TS_ERR_INPUT, "%s:%d: routing: %s is %s, expected %s", origin, ts_json_line(node),
                  ts_json_key(node), ts_json_show(node, shown, sizeof shown), expected);
}

static int parse_mode(const ts_json_node *node, const char *origin, ts_route_mode *out)
{
  for (int m = 0; ts_json_node_kind(node) == TS_JSON_STRING && m < 2; m++)
    if (strcmp(ts_json_string(node), modes[m]) == 0) {
      *out = (ts_route_mode)m;
      return 0;
    }
  return refuse(node, origin, "\"linear\" or \"splitmix\"");
}

static int parse_integer(const ts_json_node *node, const char *origin, int64_t least, int64_t most,
                         int64_t *out)
{
  char expected[80];
  snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, least, most);
  if (ts_json_node_kind(node) != TS_JSON_NUMBER || ts_json_int64(node, out) || *out < least ||
      *out > most)
    return refuse(node, origin, expected);
  return 0;
}

int ts_route_params_parse(const ts_json_node *object, const char *origin, ts_route_params *params)
{
  ts_route_params parsed = *params;
  if (ts_json_node_kind(object) != TS_JSON_OBJECT)
    return tsi_fail(TS_ERR_INPUT, "%s:%d: routing: expected an object, this is %s", origin,
                    ts_json_line(object), ts_json_kind_name(ts_json_node_kind(object)));
  for (int i = 0; i < ts_json_size(object); i++) {
    const ts_json_node *node = ts_json_at(object, i);
    const char *key = ts_json_key(node);
    int64_t number = 0;
    if (strcmp(key, "mode") == 0) {
      TS_TRY(parse_mode(node, origin, &parsed.mode));
    } else if (strcmp(key, "partitions") == 0) {
      TS_TRY(parse_integer(node, origin, 1, INT_MAX, &number));
      parsed.partitions = (int)number;
    } else if (strcmp(key, "seed") == 0) {
      TS_TRY(parse_integer(node, origin, 0, INT64_MAX, &number));
      parsed.seed = (uint64_t)number;
    } else {
      return tsi_fail(TS_ERR_INPUT,
                      "%s:%d: routing: unknown key \"%s\", expected mode, partitions or seed",
                      origin, ts_json_line(node), key);
    }
  }
  *params = parsed;
  return 0;
}

/* The settings as a message shows them. */
static void describe(const ts_router *router, char *text, size_t size)
{
  const ts_route_params *p = ts_router_params(router);
  snprintf(text, size, "%s, %d ranks, %d partitions, seed %" PRIu64 ", %d shifts (%016" PRIx64 ")",
           ts_route_mode_name(p->mode), p->ranks, p->partitions, p->seed, p->nshift,
           ts_router_digest(router));
}

int ts_router_agree(const ts_router *router, MPI_Comm comm)
{
  enum { TEXT = 160 };
  int rank = 0, size = 0;
  TS_TRY_MPI(MPI_Comm_rank(comm, &rank));
  TS_TRY_MPI(MPI_Comm_size(comm, &size));
  const uint64_t own = ts_router_digest(router);
  uint64_t ends[2] = {own, ~own}; /* the least, and the complement of the largest */
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UINT64_T, MPI_MIN, comm));
  if (ends[0] == ~ends[1]) return 0;

  int holder[2] = {own == ends[0] ? rank : size, own == ~ends[1] ? rank : size};
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, holder, 2, MPI_INT, MPI_MIN, comm));
  char text[2][TEXT] = {"", ""};
  for (int i = 0; i < 2; i++) {
    if (rank == holder[i]) describe(router, text[i], TEXT);
    TS_TRY_MPI(MPI_Bcast(text[i], TEXT, MPI_CHAR, holder[i], comm));
  }
  const int first = holder[0] < holder[1] ? 0 : 1;
  return tsi_fail(TS_ERR_INPUT,
                  "routing settings differ between ranks: rank %d has %s, rank %d has %s",
                  holder[first], text[first], holder[!first], text[!first]);
}
