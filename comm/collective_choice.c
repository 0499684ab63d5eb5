/* SPDX-License-Identifier: MIT
 *
 * Which algorithm for which length: a table by powers of two, given by the job, read from a cache
 * or measured (a few milliseconds).  All that are measured return the same bits, so that a
 * different measurement changes no result; ll128 is taken only when asked for. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/collective_impl.h"
#include "comm/world.h"
#include "runtime/error.h"
#include "runtime/memory.h"

/* Powers of two up to 32 kB are measured.  Longer messages are bound by the bandwidth between the
 * caches and go to MPI, always: were that measured, too, the order of a sum could change from run
 * to run. */
enum { MEASURED = 15 };

static int bad(const char *text)
{
  return tsi_fail(TS_ERR_ARG,
                  "collectives: the table \"%.200s\" is not LIMIT:NAME,...,NAME with limits in "
                  "bytes that rise",
                  text);
}

int tsi_choice_parse(const char *text, ts_algorithm table[TSI_SIZES])
{
  const char *at = text;
  int power = 0;
  for (bool last = false; !last;) {
    char name[32] = "";
    int used = 0;
    unsigned long long limit = 0;
    last = sscanf(at, "%20[0-9]:%n", name, &used) != 1 || !used;
    if (!last) {
      limit = strtoull(name, NULL, 10);
      at += used;
    }
    if (sscanf(at, "%31[a-z0-9-]%n", name, &used) != 1) return bad(text);
    at += used;
    ts_algorithm algorithm;
    TS_TRY(ts_algorithm_parse(name, &algorithm));
    if (algorithm == TS_ALGORITHM_AUTO) return bad(text);
    if (last ? *at != '\0' : *at++ != ',') return bad(text);
    const int before = power;
    while (power < TSI_SIZES && (last || UINT64_C(1) << power <= limit))
      table[power++] = algorithm;
    if (!last && power == before) return bad(text);
  }
  return 0;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one all-reduce of this node: the least of a few batches, which a disturbance of
 * either rank cannot shorten. */
static int time_one(ts_collective *c, ts_algorithm algorithm, ts_word *x, size_t words,
                    double *seconds)
{
  const int calls = words < 512 ? 50 : 2, batches = 5;
  *seconds = DBL_MAX;
  for (int batch = 0; batch < batches; batch++) {
    const double start = now();
    for (int i = 0; i < calls; i++)
      TS_TRY(tsi_collective_node(c, algorithm, tsi_combine_find(TS_CTYPE_INT64, TS_COP_MAX), x, x,
                                 words));
    const double each = (now() - start) / calls;
    if (each < *seconds) *seconds = each;
  }
  return 0;
}

static int measure(ts_collective *c)
{
  ts_word *x = NULL;
  double seconds[MEASURED + 1][TS_ALGORITHMS] = {{0}};
  TS_TRY(TSI_NEW(x, (1 << MEASURED) / sizeof *x));
  int status = 0;
  for (int power = 3; power <= MEASURED && !status; power++)
    for (int a = TS_ALGORITHM_LL_ONE; a <= TS_ALGORITHM_SENTINEL_TWO && !status; a++)
      status = time_one(c, (ts_algorithm)a, x, (size_t)1 << (power - 3), &seconds[power][a]);
  free(x);
  TS_TRY(status);
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, seconds, (MEASURED + 1) * TS_ALGORITHMS, MPI_DOUBLE,
                           MPI_MAX, c->comm));
  for (int power = MEASURED + 1; power < TSI_SIZES; power++)
    c->table[power] = TS_ALGORITHM_MPI;
  for (int power = 0; power <= MEASURED; power++) {
    const double *row = seconds[power < 3 ? 3 : power];
    c->table[power] = TS_ALGORITHM_LL_ONE;
    for (int a = TS_ALGORITHM_LL_ONE; a <= TS_ALGORITHM_SENTINEL_TWO; a++)
      if (row[a] < row[c->table[power]]) c->table[power] = (ts_algorithm)a;
  }
  return 0;
}

/* A line "RANKS NODES WORDS YIELD TABLE" per layout; others are kept. */
static void key(const ts_collective *c, char *text, size_t size)
{
  snprintf(text, size, "%d %d %zu %d ", c->size, c->nodes, c->ll.words, c->ll.wait.yield);
}

static bool read_cache(ts_collective *c, const char *path)
{
  char want[96], line[1024];
  bool found = false;
  FILE *file = fopen(path, "r");
  if (!file) return false;
  key(c, want, sizeof want);
  while (!found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    found = !strncmp(line, want, strlen(want)) && !tsi_choice_parse(line + strlen(want), c->table);
  }
  fclose(file);
  return found;
}

/* Appending a line is one write; a cache that cannot be written is no failure. */
static void write_cache(const ts_collective *c, const char *path)
{
  char line[1024];
  key(c, line, sizeof line);
  size_t length = strlen(line);
  for (int power = 0; power < TSI_SIZES; power++) {
    const bool last = power == TSI_SIZES - 1;
    if (!last && c->table[power] == c->table[power + 1]) continue;
    const char *name = ts_algorithm_name(c->table[power]);
    length += (size_t)(last ? snprintf(line + length, sizeof line - length, "%s\n", name)
                            : snprintf(line + length, sizeof line - length, "%llu:%s,",
                                       1ull << power, name));
  }
  FILE *file = fopen(path, "a");
  if (!file) return;
  fputs(line, file);
  fclose(file);
}

int tsi_choice_measure(ts_collective *c, const char *cache)
{
  int found = c->rank == 0 && cache && read_cache(c, cache);
  TS_TRY_MPI(MPI_Bcast(&found, 1, MPI_INT, 0, c->comm));
  if (!found) TS_TRY(measure(c));
  TS_TRY_MPI(MPI_Bcast(c->table, sizeof c->table, MPI_BYTE, 0, c->comm));
  if (!found && c->rank == 0 && cache) write_cache(c, cache);
  return 0;
}
