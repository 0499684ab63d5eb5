/* SPDX-License-Identifier: MIT
 *
 * Neighbour search on one core: `cells` against `faiss` and against LAMMPS's own full list on the
 * same atoms, in interleaved rounds, medians.  Ours includes everything that a model needs: sorted
 * rows, receivers, shifts and the transpose; LAMMPS makes its list of senders.  Like LAMMPS between
 * rebuilds, ours reuses the memory of the build before; the very first build is shown apart.
 *
 *   bench/bench_neighbors [atoms [rounds [density [reach]]]]     1000000 5 0.1 5.5 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "neighbor/curve.h"
#include "neighbor/edges.h"
#include "neighbor/geometry.h"
#include "runtime/error.h"

enum { MAX_ROUNDS = 99, LAMMPS_BUILDS = 5, PARTS = 5 };
enum { CELLS, FAISS, LAMMPS, SEARCHES };

typedef struct bench {
  int n, rounds;
  double density, reach, side;
  ts_cell cell;
  double (*x)[3]; /* along the curve */
  ts_gidx *gid;
  double part[SEARCHES][PARTS][MAX_ROUNDS]; /* seconds: total, Level 1, search, rows, columns */
  ts_edges *edges[2];
  long long count[SEARCHES];
} bench;

static void check(int status)
{
  if (!status) return;
  fprintf(stderr, "%s\n", ts_error_message());
  exit(1);
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return ldexp((double)((z ^ z >> 31) >> 11), -53);
}

/* Random atoms in the order of the curve, as a run holds them; ids are random to that order. */
static double make_atoms(bench *b)
{
  const size_t n = (size_t)b->n;
  double(*x)[3] = malloc(n * sizeof *x);
  ts_gidx *gid = malloc(n * sizeof *gid);
  ts_lidx *order = malloc(n * sizeof *order);
  b->x = malloc(n * sizeof *b->x);
  b->gid = malloc(n * sizeof *b->gid);
  if (!x || !gid || !order || !b->x || !b->gid) check(tsi_fail(TS_ERR_MEMORY, "no memory"));
  b->side = cbrt(b->n / b->density);
  const double h[3][3] = {{b->side, 0, 0}, {0, b->side, 0}, {0, 0, b->side}};
  check(ts_cell_init(&b->cell, h, NULL));
  uint64_t seed = 1;
  for (int i = 0; i < b->n; i++) {
    gid[i] = i;
    for (int k = 0; k < 3; k++)
      x[i][k] = b->side * uniform(&seed);
  }
  const double start = seconds();
  check(ts_curve_order(TS_CURVE_HILBERT, TS_NORMALIZE_AXES, &b->cell, b->n, (const double(*)[3])x,
                       gid, order));
  const double curve = seconds() - start;
  for (int i = 0; i < b->n; i++) {
    memcpy(b->x[i], x[order[i]], sizeof x[0]);
    b->gid[i] = gid[order[i]];
  }
  free(x);
  free(gid);
  free(order);
  return curve;
}

static void write_data(const bench *b, const char *path)
{
  FILE *f = fopen(path, "w");
  if (!f) check(tsi_fail(TS_ERR_IO, "%s cannot be written", path));
  fprintf(f, "random atoms\n\n%d atoms\n1 atom types\n", b->n);
  for (int k = 0; k < 3; k++)
    fprintf(f, "0 %.17g %clo %chi\n", b->side, "xyz"[k], "xyz"[k]);
  fprintf(f, "\nMasses\n\n1 1.0\n\nAtoms # atomic\n\n");
  for (int i = 0; i < b->n; i++)
    fprintf(f, "%lld 1 %.17g %.17g %.17g\n", (long long)b->gid[i] + 1, b->x[i][0], b->x[i][1],
            b->x[i][2]);
  if (fclose(f)) check(tsi_fail(TS_ERR_IO, "%s cannot be written", path));
}

static void build(bench *b, int which, double part[PARTS])
{
  ts_search_params p;
  ts_search_params_init(&p);
  p.cutoff = b->reach - 0.5;
  p.skin = 0.5;
  p.backend = which == FAISS ? TS_SEARCH_FAISS : TS_SEARCH_CELLS;
  p.recycle = b->edges[which];
  const double start = seconds();
  check(ts_edges_build(&b->cell, b->n, 0, (const double(*)[3])b->x, b->gid, &p, &b->edges[which]));
  const ts_edges *e = b->edges[which];
  part[0] = seconds() - start;
  part[1] = e->stats.candidate_s;
  part[2] = e->stats.search_s;
  part[3] = e->stats.row_s;
  part[4] = e->stats.column_s;
  b->count[which] = e->count;
}

/* Seconds of LAMMPS, or a negative number where it is not installed. */
static double run_lammps(bench *b, const char *data)
{
  char command[512];
  double s;
  const char *source = getenv("TS_SOURCE_DIR");
  snprintf(command, sizeof command, "'%s/bench/neighbors_lammps.sh' '%s' %g %d",
           source ? source : ".", data, b->reach, LAMMPS_BUILDS);
  FILE *f = popen(command, "r");
  const int got = f ? fscanf(f, "%lf %lld", &s, &b->count[LAMMPS]) : 0;
  if (f) pclose(f);
  return got == 2 ? s : -1;
}

static int compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *value, int n)
{
  qsort(value, (size_t)n, sizeof *value, compare);
  return n % 2 ? value[n / 2] : 0.5 * (value[n / 2 - 1] + value[n / 2]);
}

static void print_table(bench *b, const double first[PARTS], double curve, bool lammps)
{
  static const char *const name[SEARCHES] = {"cells", "faiss", "LAMMPS"};
  const double reference = lammps ? median(b->part[LAMMPS][0], b->rounds) : NAN;
  printf(
      "| search | images s | search s | rows s | columns s | total s | us/atom | of LAMMPS | edges "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (int w = 0; w < (lammps ? SEARCHES : LAMMPS); w++) {
    const double total = median(b->part[w][0], b->rounds);
    printf("| %s |", name[w]);
    for (int k = 1; k < PARTS; k++)
      w == LAMMPS ? printf(" |") : printf(" %.3f |", median(b->part[w][k], b->rounds));
    printf(" %.3f | %.3f | %.2f | %lld |\n", total, 1e6 * total / b->n, total / reference,
           b->count[w]);
  }
  printf("| cells, first build |");
  for (int k = 1; k < PARTS; k++)
    printf(" %.3f |", first[k]);
  printf(" %.3f | %.3f | %.2f | |\n", first[0], 1e6 * first[0] / b->n, first[0] / reference);
  printf("\ncurve order %.3f s; cells and faiss agree: %s\n", curve,
         ts_edges_hash(b->edges[CELLS], NULL, b->gid, NULL) ==
                 ts_edges_hash(b->edges[FAISS], NULL, b->gid, NULL)
             ? "yes"
             : "NO");
}

int main(int argc, char **argv)
{
  static bench b = {.n = 1000000, .rounds = 5, .density = 0.1, .reach = 5.5};
  if (argc > 1) b.n = atoi(argv[1]);
  if (argc > 2) b.rounds = atoi(argv[2]);
  if (argc > 3) b.density = atof(argv[3]);
  if (argc > 4) b.reach = atof(argv[4]);
  if (b.n < 1 || b.rounds < 1 || b.rounds > MAX_ROUNDS || !(b.density > 0) || !(b.reach > 0.5)) {
    fprintf(stderr, "usage: bench_neighbors [atoms [rounds [density [reach]]]]\n");
    return 1;
  }
  char data[] = "/tmp/bench_neighbors_XXXXXX";
  const int fd = mkstemp(data);
  if (fd < 0) check(tsi_fail(TS_ERR_IO, "no temporary file"));
  close(fd);
  const double curve = make_atoms(&b);
  write_data(&b, data);
  double first[PARTS], warm[PARTS];
  build(&b, CELLS, first);
  build(&b, FAISS, warm);
  bool lammps = true;
  for (int r = 0; r < b.rounds; r++) {
    for (int w = 0; w < LAMMPS; w++) {
      double part[PARTS];
      build(&b, w, part);
      for (int k = 0; k < PARTS; k++)
        b.part[w][k][r] = part[k];
    }
    lammps = lammps && (b.part[LAMMPS][0][r] = run_lammps(&b, data)) > 0;
  }
  unlink(data);
  printf("%d random atoms, %g per cubic Å, within %g Å, one core, medians of %d rounds\n\n", b.n,
         b.density, b.reach, b.rounds);
  print_table(&b, first, curve, lammps);
  return 0;
}
