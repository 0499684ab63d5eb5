/* SPDX-License-Identifier: MIT
 *
 * bench_ranks cache|overlap|uneven ROUNDS
 * bench_ranks size COPIES STEPS
 * Under mpirun, one worker a rank; bench/ranks.sh runs it and adds the published figures.  The
 * system is the example's salt water (632 atoms, or $TS_BENCH_STRUCTURE) with its 32-channel model
 * in float, COPIES of it along a; `uneven` has a lattice with a dense ball.
 *
 * What is compared is computed in turns in one run.  A step's time is that of the slowest rank and
 * what is quoted is the median.  The neighbour stage is the rebuild plus the tasks "geometry",
 * which find the active edges and, at the same time, their envelopes and spline weights.  Wait is
 * what a worker was idle in the tasks of a step, mean over ranks: workers x wall time of the
 * program minus the time in tasks.  It contains the exchange, the scheduler and imbalance.  Where
 * there are more ranks than cores, time in tasks includes being preempted, and so only counts carry
 * over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/example_model.h"
#include "bench/median.h"
#include "md/report.h"
#include "md/velocities.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "tests/case.h"
#include "tests/ranks_start.h"

enum { MOST = 400, NEVER = 1000000 };

/* ---- systems: every rank makes the whole and keeps a slice, which the first partition deals out
 */

static ts_system *copies_of(const ts_system *one, int copies)
{
  double h[3][3];
  ts_system *s;
  memcpy(h, one->cell.h, sizeof h);
  for (int k = 0; k < 3; k++)
    h[0][k] *= copies;
  must(ts_system_create(copies * one->natoms, copies * one->n, &s));
  must(ts_cell_init(&s->cell, (const double(*)[3])h, one->cell.periodic));
  for (ts_lidx i = 0; i < s->n; i++) {
    const ts_lidx from = i % one->n;
    for (int k = 0; k < 3; k++)
      s->x[i][k] = one->x[from][k] + i / one->n * one->cell.h[0][k];
    s->z[i] = one->z[from];
    s->mass[i] = one->mass[from];
    s->gid[i] = i;
  }
  return s;
}

static ts_system *salt_water(int copies)
{
  const ts_ranks alone = ts_ranks_virtual(1);
  const char *given = getenv("TS_BENCH_STRUCTURE");
  ts_velocity_sums sums = {0};
  ts_system *one;
  must(ts_xyz_read(&alone, given ? given : TS_SOURCE_TREE "/examples/salt-water/salt-water-216.xyz",
                   &one));
  ts_system *s = copies_of(one, copies);
  ts_system_destroy(&one);
  ts_velocities_draw(1, s->n, s->gid, s->mass, s->v, &sums);
  ts_velocities_settle(300, &sums, s->n, s->v);
  return s;
}

static double jitter(uint64_t *state)
{
  return 0.1 * case_random(state);
}

/* Sites of a cubic lattice with n a side that lie inside (or outside) the ball, jittered. */
static int sites(double length, int n, double radius, bool inside, double (*x)[3])
{
  uint64_t state = 7;
  int count = 0;
  for (int i = 0; i < n * n * n; i++) {
    const int at[3] = {i % n, i / n % n, i / n / n};
    double r2 = 0, site[3];
    for (int k = 0; k < 3; k++) {
      site[k] = (at[k] + 0.5) * length / n + jitter(&state);
      r2 += (site[k] - 0.25 * length) * (site[k] - 0.25 * length);
    }
    if ((r2 < radius * radius) != inside) continue;
    memcpy(x[count++], site, sizeof site);
  }
  return count;
}

/* 1331 atoms at the density of water (0.1 per cubic Angstrom); of these, if `dense`, a ball of 6 A
 * at 2.4 times that, for which the rest is thinned evenly. */
static ts_system *lattice(bool dense)
{
  enum { SIDE = 11, FINE = 15, ATOMS = SIDE * SIDE * SIDE };
  static const uint8_t water[] = {8, 1, 1};
  static double ball[FINE * FINE * FINE][3], rest[ATOMS][3], x[ATOMS][3];
  static uint8_t z[ATOMS];
  const double length = SIDE * 2.1544, radius = dense ? 6 : 0;
  const double h[3][3] = {{length, 0, 0}, {0, length, 0}, {0, 0, length}};
  const int inside = sites(length, FINE, radius, true, ball), keep = ATOMS - inside;
  const int outside = sites(length, SIDE, radius, false, rest);
  int n = inside;
  memcpy(x, ball, (size_t)inside * sizeof *x);
  for (int i = 0; i < outside; i++)
    if ((i + 1) * keep / outside > i * keep / outside) memcpy(x[n++], rest[i], sizeof *x);
  for (int i = 0; i < n; i++)
    z[i] = water[i % 3];
  return case_system(h, n, z, (const double(*)[3])x);
}

static ts_system *slice(const ts_system *whole)
{
  const ts_gidx first = whole->natoms * ranks.first / ranks.size,
                last = whole->natoms * (ranks.first + 1) / ranks.size;
  ts_system *s;
  must(ts_system_create(whole->natoms, (ts_lidx)(last - first), &s));
  s->cell = whole->cell;
  for (ts_lidx i = 0; i < s->n; i++) {
    s->gid[i] = first + i;
    s->z[i] = whole->z[first + i];
    s->mass[i] = whole->mass[first + i];
    memcpy(s->x[i], whole->x[first + i], sizeof s->x[i]);
    memcpy(s->v[i], whole->v[first + i], sizeof s->v[i]);
  }
  return s;
}

/* ---- a simulation and what its steps cost */

typedef struct simulation {
  ts_system *system;
  ts_step *step;
  int64_t number;
} simulation;

typedef struct cost {
  double wall, neighbour, busy, wait; /* seconds; largest over ranks, wait: mean */
  bool rebuilt;
} cost;

static ts_step_params params_of(const ts_model *model)
{
  ts_step_params p = case_params(model, 0.5);
  p.workers = 1;
  p.period = NEVER;
  p.ranks = ranks.size > 1 ? &ranks : NULL;
  p.transfers = ts_engine_transfers(engine);
  p.collective = collective;
  p.partition.slack = 0.5;
  return p;
}

static simulation begin(const ts_step_params *params, const ts_system *whole)
{
  simulation s = {.system = slice(whole)};
  must(ts_step_create(params, s.system, &s.step));
  return s;
}

static void end(simulation *s)
{
  ts_step_destroy(&s->step);
  ts_system_destroy(&s->system);
}

static int64_t rebuilds(const ts_step_stats *s)
{
  int64_t sum = 0;
  for (int c = 0; c < TS_REBUILD_COUNT; c++)
    sum += s->rebuilds[c];
  return sum;
}

/* One step of dynamics, or with a timestep of 0 the forces once more. */
static cost measure(simulation *s, double timestep)
{
  const ts_motion motion = {.timestep = timestep};
  const ts_step_stats a = ts_step_statistics(s->step);
  ts_partial total;
  MPI_Barrier(ranks.comm);
  const double from = ts_clock();
  if (timestep > 0)
    must(ts_step_advance(s->step, &motion, ++s->number, &total));
  else
    must(ts_step_evaluate(s->step, s->number, &total));
  const double wall = ts_clock() - from;
  const ts_step_stats b = ts_step_statistics(s->step);
  double busy = 0;
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    busy += b.phase_seconds[p] - a.phase_seconds[p];
  double most[] = {wall,
                   b.rebuild_seconds - a.rebuild_seconds + b.phase_seconds[TS_PHASE_GEOMETRY] -
                       a.phase_seconds[TS_PHASE_GEOMETRY],
                   busy};
  double wait = ts_engine_workers(engine) * (b.run_seconds - a.run_seconds) - busy;
  MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, ranks.comm);
  MPI_Allreduce(MPI_IN_PLACE, &wait, 1, MPI_DOUBLE, MPI_SUM, ranks.comm);
  return (cost){most[0], most[1], most[2], wait / ranks.size, rebuilds(&b) > rebuilds(&a)};
}

/* Steps of one kind. */
typedef struct record {
  double wall[MOST], neighbour[MOST], wait[MOST];
  int n;
} record;

static void add(record *r, const cost *c)
{
  if (r->n == MOST) return;
  r->wall[r->n] = 1e3 * c->wall;
  r->neighbour[r->n] = 1e3 * c->neighbour;
  r->wait[r->n++] = 1e3 * c->wait;
}

static double median(double *x, int n)
{
  return n > 0 ? bench_median(x, n) : 0;
}

/* ---- the tables; rank 0 prints */

static void cache(const ts_model *model, int rounds)
{
  static record kind[2][2]; /* interval 1 or 10; hit or rebuild */
  ts_system *whole = salt_water(1);
  ts_step_params params = params_of(model);
  simulation s[2];
  for (int v = 0; v < 2; v++) {
    params.rebuild = v ? 10 : 1;
    s[v] = begin(&params, whole);
    measure(&s[v], 0);
  }
  for (int i = 0; i < 10 * rounds; i++)
    for (int v = 0; v < 2; v++) {
      const cost c = measure(&s[v], 0.5);
      add(&kind[v][c.rebuilt], &c);
    }
  double stage[2][2], step[2][2];
  for (int v = 0; v < 2; v++)
    for (int r = 0; r < 2; r++) {
      stage[v][r] = median(kind[v][r].neighbour, kind[v][r].n);
      step[v][r] = median(kind[v][r].wall, kind[v][r].n);
      if (ranks.first == 0 && kind[v][r].n)
        printf("%5d %8d %-8s %6d %14.2f %14.2f\n", ranks.size, v ? 10 : 1, r ? "rebuild" : "hit",
               kind[v][r].n, stage[v][r], step[v][r]);
    }
  const double every = (0.9 * stage[1][0] + 0.1 * stage[1][1]) / stage[0][1];
  if (ranks.first == 0) {
    printf("neighbour stage, hit over rebuild            %.3f   (paper 0.029 to 0.067)\n",
           stage[1][0] / stage[1][1]);
    printf("neighbour stage, interval 10 over every step %.3f   (paper 0.126 to 0.160)\n", every);
    printf("full step, every step over interval 10       %.2f    (paper 1.49 and 1.87)\n",
           step[0][1] / (0.9 * step[1][0] + 0.1 * step[1][1]));
  }
  end(&s[0]);
  end(&s[1]);
  ts_system_destroy(&whole);
}

static void overlap(const ts_model *model, int rounds)
{
  static record kind[2][2]; /* off or on; hit or rebuild */
  ts_system *whole = salt_water(1);
  ts_step_params params = params_of(model);
  simulation s[2];
  params.rebuild = 4;
  for (int v = 0; v < 2; v++) {
    params.overlap = v;
    s[v] = begin(&params, whole);
    measure(&s[v], 0);
  }
  for (int i = 0; i < 4 * rounds; i++)
    for (int v = 0; v < 2; v++) {
      const cost c = measure(&s[v], 0.5);
      add(&kind[v][c.rebuilt], &c);
    }
  for (int r = 0; r < 2; r++) {
    const int n = kind[0][r].n;
    const double off = median(kind[0][r].wall, n), on = median(kind[1][r].wall, kind[1][r].n);
    const double idle = median(kind[0][r].wait, n), rest = median(kind[1][r].wait, kind[1][r].n);
    if (ranks.first == 0)
      printf("%5d %8s %-8s %6d %10.2f %10.2f %8.2f %10.2f %10.2f\n", ranks.size,
             getenv("TS_DELAY_US") ? getenv("TS_DELAY_US") : "0", r ? "rebuild" : "hit", n, on, off,
             off / on, rest, idle);
  }
  end(&s[0]);
  end(&s[1]);
  ts_system_destroy(&whole);
}

/* What a rank holds and sends: largest over ranks; a step's time where some are made. */
static void size(const ts_model *model, int copies, int steps)
{
  static record hit;
  struct rusage usage;
  ts_system *whole = salt_water(copies);
  const ts_step_params params = params_of(model);
  simulation s = begin(&params, whole);
  measure(&s, 0);
  for (int i = 0; i < steps; i++) {
    const cost c = measure(&s, 0);
    add(&hit, &c);
  }
  getrusage(RUSAGE_SELF, &usage);
  const ts_step_stats stats = ts_step_statistics(s.step);
  int64_t halo = 0;
  for (int k = 0; k < model->desc.nstages; k++)
    halo = stats.halo[k] > halo ? stats.halo[k] : halo;
  int64_t most[] = {
      s.system->n,          halo,           stats.peers, stats.sent_bytes, stats.sent_messages,
      (int64_t)stats.bytes, usage.ru_maxrss};
  MPI_Allreduce(MPI_IN_PLACE, most, 7, MPI_INT64_T, MPI_MAX, ranks.comm);
  const double wall = median(hit.wall, hit.n), wait = median(hit.wait, hit.n);
  if (ranks.first == 0) {
    printf("%5d %8lld %8lld %8lld %6lld %10.1f %9lld %10.2f %8.1f", ranks.size,
           (long long)whole->natoms, (long long)most[0], (long long)most[1], (long long)most[2],
           (double)most[3] / 1e3, (long long)most[4], (double)most[5] / 1e6, (double)most[6] / 1e3);
    if (steps > 0) printf(" %10.2f %10.2f", wall, wait);
    printf("\n");
  }
  end(&s);
  ts_system_destroy(&whole);
}

/* Edges of a rank, each as often as layers use it: what the cut weighs. */
static double work(const ts_model *model, const simulation *s)
{
  const ts_step_stats stats = ts_step_statistics(s->step);
  double sum = s->system->n;
  for (int k = 0; k < model->desc.nstages; k++)
    sum += (double)stats.candidates[k] * model->desc.stage[k].nlayers;
  return sum;
}

/* Water at equal counts, the same with a dense ball, and that one cut by edges.  Edges are known
 * from the second partition on: the second step makes it. */
static void blob(const ts_model *model, int rounds)
{
  enum { VARIANTS = 3 };
  static const char *const name[VARIANTS] = {"even, atoms", "ball, atoms", "ball, edges"};
  static record r[VARIANTS];
  simulation s[VARIANTS];
  double load[VARIANTS][2], water = 0;
  int64_t atoms[VARIANTS];
  ts_step_params params = params_of(model);
  params.period = 2;
  for (int v = 0; v < VARIANTS; v++) {
    ts_system *whole = lattice(v > 0);
    params.weighted = v == 2;
    s[v] = begin(&params, whole);
    ts_system_destroy(&whole);
    measure(&s[v], 0);
    measure(&s[v], 1e-6);
    measure(&s[v], 1e-6);
    atoms[v] = s[v].system->n;
    load[v][0] = load[v][1] = work(model, &s[v]);
    MPI_Allreduce(MPI_IN_PLACE, &atoms[v], 1, MPI_INT64_T, MPI_MAX, ranks.comm);
    MPI_Allreduce(MPI_IN_PLACE, &load[v][0], 1, MPI_DOUBLE, MPI_MAX, ranks.comm);
    MPI_Allreduce(MPI_IN_PLACE, &load[v][1], 1, MPI_DOUBLE, MPI_SUM, ranks.comm);
    measure(&s[v], 0); /* record */
  }
  for (int i = 0; i < rounds; i++)
    for (int v = 0; v < VARIANTS; v++) {
      const cost c = measure(&s[v], 0);
      add(&r[v], &c);
    }
  for (int v = 0; v < VARIANTS; v++) {
    const double wall = median(r[v].wall, r[v].n), wait = median(r[v].wait, r[v].n);
    if (v == 0) water = wall;
    if (ranks.first == 0)
      printf("%5d %-12s %10lld %12.0f %10.3f %10.2f %10.2f %8.2f\n", ranks.size, name[v],
             (long long)atoms[v], load[v][0], load[v][0] * ranks.size / load[v][1], wall, wait,
             wall / water);
    end(&s[v]);
  }
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  const bool sized = strcmp(mode, "size") == 0;
  if (count < 1 || argc != (sized ? 4 : 3)) {
    fprintf(stderr,
            "usage: bench_ranks cache|overlap|uneven ROUNDS\n"
            "       bench_ranks size COPIES STEPS\n");
    return 1;
  }
  start();
  ts_model *model = bench_example_model();
  if (sized) size(model, count, atoi(argv[3]));
  if (strcmp(mode, "cache") == 0) cache(model, count);
  if (strcmp(mode, "overlap") == 0) overlap(model, count);
  if (strcmp(mode, "uneven") == 0) blob(model, count);
  ts_model_destroy(&model);
  stop();
  return 0;
}
