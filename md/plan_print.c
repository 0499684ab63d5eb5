/* SPDX-License-Identifier: MIT
 *
 * Surveys as tables on the screen: what a person compares stands below each other, most before
 * mean.
 */
#include "md/plan_print.h"

#include <math.h>
#include <string.h>

#include "md/plan_words.h"

/* A count in at most seven characters: 950, 69568, 1.24M, 12.8G. */
static const char *short_count(double x, char text[16])
{
  if (x < 999999.5)
    snprintf(text, 16, "%.0f", x);
  else if (x < 99.5e6)
    snprintf(text, 16, "%.2fM", x * 1e-6);
  else if (x < 999.5e6)
    snprintf(text, 16, "%.0fM", x * 1e-6);
  else
    snprintf(text, 16, "%.2fG", x * 1e-9);
  return text;
}

static void count(FILE *f, double x)
{
  char text[16];
  fprintf(f, " %8s", short_count(x, text));
}

static void most_mean(FILE *f, ts_plan_spread s)
{
  count(f, s.most);
  count(f, s.mean);
}

static void start(FILE *f, const ts_survey *s)
{
  fprintf(f, "%6d %-8s", s->ranks, ts_plan_curve_word(s->curve));
}

static void print_shapes(FILE *f, int n, const ts_plan_result *r)
{
  fprintf(f,
          "\nShards: atoms of a rank, its box over the volume that it owns; beside it, most minus "
          "fewest atoms\nin an equal-volume grid, and 2 sqrt(2 m ln K) for m atoms a cell by "
          "chance\n");
  fprintf(f, "%6s %-8s %8s %8s %8s %8s %12s %8s %8s\n", "ranks", "curve", "fewest", "most",
          "box mean", "worst", "grid", "spread", "chance");
  for (int i = 0; i < n; i++) {
    const ts_survey *s = r[i].survey;
    char grid[40];
    snprintf(grid, sizeof grid, "%dx%dx%d", s->grid[0], s->grid[1], s->grid[2]);
    start(f, s);
    count(f, s->count.least);
    count(f, s->count.most);
    fprintf(f, " %8.2f %8.2f %12s", s->box_ratio.mean, s->box_ratio.most, grid);
    count(f, s->grid_spread);
    count(f, ts_plan_grid_formula(s));
    fputc('\n', f);
  }
}

static void print_schemes(FILE *f, int n, const ts_plan_result *r)
{
  fprintf(f,
          "\nLevel 1, all ranks: ranks asked (itself included) and others that send; candidates "
          "(atoms and\nimages, its own included); metadata that a rank sends at a rebuild\n");
  fprintf(f, "%6s %-8s %-6s %8s %8s %8s %8s %8s %8s %8s %8s\n", "ranks", "curve", "scheme", "asked",
          "mean", "others", "mean", "cand.", "mean", "messages", "bytes");
  for (int i = 0; i < n; i++)
    for (int k = 0; k < TS_PLAN_SCHEMES; k++) {
      const ts_plan_scheme *s = &r[i].survey->scheme[k];
      if (!s->counted) continue;
      start(f, r[i].survey);
      fprintf(f, " %-6s", ts_plan_scheme_word(k));
      count(f, s->asked.most);
      fprintf(f, " %8.1f", s->asked.mean);
      count(f, s->peers.most);
      fprintf(f, " %8.1f", s->peers.mean);
      most_mean(f, s->candidates);
      count(f, s->messages.most);
      count(f, s->bytes.most);
      fputc('\n', f);
    }
}

/* Which ranks the tables below are of. */
static void say_sample(FILE *f, int n, const ts_plan_result *r)
{
  bool all = true;
  for (int i = 0; i < n; i++)
    all = all && r[i].survey->sampled == r[i].survey->ranks;
  if (all) return;
  fprintf(f,
          "NOTE: edges were found for a sample of ranks, spread evenly over all; the tables below "
          "have the most\nand the mean of these alone (column \"of\"). --sample all finds those of "
          "every rank.\n");
}

static void print_stages(FILE *f, int n, const ts_plan_result *r)
{
  fprintf(f,
          "\nEdges: other ranks that own senders, their atoms (halo), edges of a rank; part of the "
          "edges whose\nsender is at home beside 1 - 9 r/(8 L)\n");
  say_sample(f, n, r);
  fprintf(f, "%6s %-8s %6s     r/Å %8s %8s %8s %8s %8s %8s %6s %6s\n", "ranks", "curve", "of",
          "ranks", "mean", "halo", "mean", "edges", "mean", "local", "1-9r/8L");
  for (int i = 0; i < n; i++)
    for (int k = 0; k < r[i].survey->stages; k++) {
      const ts_survey *s = r[i].survey;
      const double reach = r[i].params.step.model->desc.stage[k].cutoff + r[i].params.step.skin;
      const ts_plan_spread sources = ts_plan_quantity_spread(s, TS_PLAN_SOURCES, k);
      start(f, s);
      fprintf(f, " %6d %7.3g", s->sampled, reach);
      count(f, sources.most);
      fprintf(f, " %8.1f", sources.mean);
      most_mean(f, ts_plan_quantity_spread(s, TS_PLAN_HALO, k));
      most_mean(f, ts_plan_quantity_spread(s, TS_PLAN_EDGES, k));
      fprintf(f, " %6.3f %6.3f\n", ts_survey_local(s, k), ts_plan_local_formula(s, reach));
    }
}

static void print_exchange(FILE *f, int n, const ts_plan_result *r)
{
  const ts_plan_width w = ts_plan_width_of(r[0].params.step.model);
  fprintf(f,
          "\nExchange, MB sent by a rank for one layer, projected (%zu reals of %zu bytes an atom) "
          "and, in\nparentheses, unprojected (%zu); a whole step; negotiations of counts in a step "
          "and a rebuild;\narrays of a step\n",
          w.projected, w.real_size, w.unprojected);
  fprintf(f, "%6s %-8s %6s %5s %16s %16s %9s %9s %10s %9s\n", "ranks", "curve", "of", "stage",
          "forward", "backward", "messages", "MB/step", "handshakes", "memory/MB");
  for (int i = 0; i < n; i++)
    for (int k = 0; k < r[i].survey->stages; k++) {
      const ts_survey *s = r[i].survey;
      const double mb = 1e-6 * (double)w.real_size;
      const double out = ts_plan_quantity_spread(s, TS_PLAN_SENT, k).most * mb;
      const double in = ts_plan_quantity_spread(s, TS_PLAN_HALO, k).most * mb;
      const double p = (double)w.projected, u = (double)w.unprojected;
      start(f, s);
      fprintf(f, " %6d %5d %7.1f (%6.1f) %7.1f (%6.1f)", s->sampled, k + 1, out * p, out * u,
              in * p, in * u);
      if (k == 0)
        fprintf(f, " %9.0f %9.1f %5d + %2d %9.1f",
                ts_plan_quantity_spread(s, TS_PLAN_MESSAGES, 0).most,
                1e-6 * ts_plan_quantity_spread(s, TS_PLAN_BYTES, 0).most, 0, s->stages,
                1e-6 * ts_plan_quantity_spread(s, TS_PLAN_MEMORY, 0).most);
      fputc('\n', f);
    }
}

static void print_times(FILE *f, int n, const ts_plan_result *r)
{
  fprintf(
      f,
      "\nTimes, predicted [ms]: a step with its part of a rebuild, a step between rebuilds and a "
      "rebuild of the\nslowest rank; mean wait for exchanges; one rank alone with as many "
      "atoms; weak-scaling efficiency\n");
  fprintf(f, "%6s %-8s %10s %10s %10s %10s %10s %10s\n", "ranks", "curve", "step", "hit", "rebuild",
          "wait", "alone", "efficiency");
  for (int i = 0; i < n; i++) {
    const ts_plan_time *t = &r[i].time;
    start(f, r[i].survey);
    fprintf(f, " %10.2f %10.2f %10.2f %10.2f %10.2f %10.3f\n", 1e3 * t->step, 1e3 * t->hit,
            1e3 * t->rebuild, 1e3 * t->wait, 1e3 * t->alone, t->efficiency);
  }
}

void ts_plan_print(FILE *f, int n, const ts_plan_result *r, bool timed)
{
  print_shapes(f, n, r);
  print_schemes(f, n, r);
  print_stages(f, n, r);
  print_exchange(f, n, r);
  if (timed) print_times(f, n, r);
}
