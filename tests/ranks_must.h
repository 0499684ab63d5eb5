/* SPDX-License-Identifier: MIT
 *
 * What must hold on every rank of a test: where it does not, this rank says so and all end. */
#ifndef TS_TESTS_RANKS_MUST_H
#define TS_TESTS_RANKS_MUST_H

#include <stdio.h>

#include "comm/world.h"
#include "runtime/error.h"

/** The program's world, made before the first MUST. */
static ts_world *world;

#define MUST(condition)                                                                      \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "rank %d, %s:%d: %s (%s)\n", ts_world_rank(world), __FILE__, __LINE__, \
              #condition, ts_error_message());                                               \
      ts_world_abort(world, TS_ERR_SIMULATION);                                              \
    }                                                                                        \
  } while (0)

#endif
