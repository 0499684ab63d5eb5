/* SPDX-License-Identifier: MIT
 *
 * A workload of term exchange, as in propagating an observable through kicked-Ising layers: terms
 * are 127-bit keys with a coefficient, dealt over ranks by a router; a layer is 127 one-bit and 144
 * two-bit generators, applied one after another.  A term of odd overlap with a generator's mask
 * sends a part of its coefficient to the term shifted by the generator.  A term gets at most one
 * such part, so coefficients are the same bits for any number of ranks and either routing. */
#ifndef TS_TESTS_TERMS_H
#define TS_TESTS_TERMS_H

#include "comm/peers.h"

enum { TERM_SITES = 127, TERM_EDGES = 144, TERM_GENERATORS = TERM_SITES + TERM_EDGES };

typedef struct term_message {
  ts_key key;
  double part;
} term_message;

typedef struct terms terms; /* of the one rank that a real process hosts, or of one virtual rank */

/** Called for each part sent: by which generator, from which key to which. */
typedef void (*terms_watch)(void *context, int generator, ts_key key, ts_key shifted);

/** `start` random first terms.  `ranks` hosts one rank; its size a power of two where linear. */
int terms_create(const ts_ranks *ranks, ts_route_mode mode, int start, terms **out);
void terms_destroy(terms **t);

/** The router of the generators over `ranks` ranks. */
int terms_router(ts_route_mode mode, int ranks, ts_router **out);
ts_key terms_generator(int g);

/** Apply one generator; terms below `threshold` are dropped.  `watch` may be NULL.  Collective. */
int terms_apply(terms *t, int g, double threshold, terms_watch watch, void *context);

int64_t terms_count(const terms *t);
ts_key terms_key(const terms *t, int64_t i);
double terms_value(const terms *t, int64_t i);
/** The coefficient of a key held here; NULL: none. */
const double *terms_find(const terms *t, ts_key key);

#endif
