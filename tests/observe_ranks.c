/* SPDX-License-Identifier: MIT
 *
 * Run by tests/test_observe_ranks.sh under mpirun: the numbers of a step are the same in every bit
 * however many ranks hold the atoms, and so is the message about the atom that broke. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/world.h"
#include "md/observe.h"
#include "md/ts_units.h"
#include "runtime/error.h"
#include "tests/ranks_must.h"
#include "tests/ranks_watchdog.h"

enum { ATOMS = 301 };

static ts_collective *collective;

static ts_gidx gid[ATOMS];
static double mass[ATOMS], energy[ATOMS], x[ATOMS][3], v[ATOMS][3], f[ATOMS][3], virial[ATOMS][9];

/* Two atoms feel the same largest force: the lower id counts, which is on the last rank. */
static void make_atoms(void)
{
  for (int i = 0; i < ATOMS; i++) {
    gid[i] = ATOMS - 1 - i;
    mass[i] = (1 + i % 16) * TS_ATOMIC_MASS;
    energy[i] = -20 - i % 7 / 3.0;
    for (int k = 0; k < 3; k++) {
      x[i][k] = sin(3 * i + k);
      v[i][k] = 1e-3 * cos(5 * i + k);
      f[i][k] = sin(7 * i + k);
    }
    for (int c = 0; c < 9; c++)
      virial[i][c] = sin(9 * i + c);
  }
  for (int k = 0; k < 3; k++)
    f[5][k] = f[ATOMS - 5][k] = -4;
}

static void slice(int first, int last, ts_partial *out)
{
  ts_observe_slice(0.5, last - first, gid + first, mass + first, x + first, v + first, f + first,
                   energy + first, virial + first, NULL, out);
}

/* The partial of all atoms: by one process, and by all. */
static void both(ts_partial *whole, ts_partial *shared)
{
  const int rank = ts_world_rank(world), size = ts_world_size(world);
  int64_t word[TS_PARTIAL_WORDS];
  slice(0, ATOMS, whole);
  slice(rank * ATOMS / size, (rank + 1) * ATOMS / size, shared);
  ts_partial_pack(shared, word);
  MUST(!ts_collective_allreduce(collective, TS_CTYPE_INT64, TS_COP_SUM, word, word,
                                TS_PARTIAL_WORDS));
  ts_partial_unpack(word, shared);
  MUST(!ts_partial_extremes(shared, collective));
}

int main(void)
{
  const ts_observe_setup setup = {
      .natoms = ATOMS, .dof = 3 * ATOMS, .volume = 1000, .timestep = 0.5};
  ts_collective_params params;
  ts_partial whole, shared;
  ts_observables one, all;
  ts_observer observer = {0}, same = {0};
  char message[2048];
  ranks_watchdog(120);
  if (ts_world_create(&world)) return 1;
  ts_collective_params_init(&params);
  MUST(!ts_collective_create(ts_world_comm(world), &params, &collective));
  make_atoms();

  both(&whole, &shared);
  MUST(!ts_observe(&setup, 3, &whole, &observer, &one));
  MUST(!ts_observe(&setup, 3, &shared, &same, &all));
  MUST(one.max_force_gid == 4 && !memcmp(&one, &all, sizeof one));
  MUST(!memcmp(&observer, &same, sizeof observer));

  f[100][1] = NAN; /* ids 200 and 100 */
  v[200][2] = INFINITY;
  both(&whole, &shared);
  MUST(ts_observe(&setup, 4, &whole, &observer, &one) == TS_ERR_SIMULATION);
  snprintf(message, sizeof message, "%s", ts_error_message());
  MUST(ts_observe(&setup, 4, &shared, &same, &all) == TS_ERR_SIMULATION);
  MUST(strstr(message, "step 4: atom 101 has") && !strcmp(message, ts_error_message()));

  ts_collective_destroy(&collective);
  ts_world_destroy(&world);
  return 0;
}
