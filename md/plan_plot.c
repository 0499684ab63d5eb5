/* SPDX-License-Identifier: MIT
 *
 * SVG by hand: text, lines and rectangles need no library.  Colours of schemes are told apart with
 * any colour vision (Okabe and Ito); curves differ by dashes, too. */
#include "md/plan_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "md/plan_words.h"
#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/memory.h"

enum { PANEL_W = 400, PANEL_H = 300, LEFT = 70, TOP = 100, GAP_X = 100, GAP_Y = 80 };

/* ---- the slice ---- */

/* Of c: off the faces of 8, 64 and 512 equal blocks. */
static const double plane = 7.0 / 16;

void ts_plan_slice_free(ts_plan_slice *s)
{
  free(s->owner);
  *s = (ts_plan_slice){.ranks = 0};
}

/* Fractions, stretched over the atoms where these leave a part of the cell empty. */
typedef struct view {
  double low[3], side[3];
} view;

static view view_of(const ts_plan_atoms *a)
{
  double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
  view v;
  ts_curve_extent(&a->cell, a->n, (const double(*)[3])a->x, low, high);
  for (int k = 0; k < 3; k++) {
    const bool whole = a->cell.periodic[k] && high[k] - low[k] > 0.9;
    v.low[k] = whole ? 0 : low[k];
    v.side[k] = whole ? 1 : fmax(high[k] - low[k], 1e-9);
  }
  return v;
}

static int pixel(double f, int count)
{
  const int p = (int)floor(f * count);
  return p < 0 ? 0 : p < count ? p : count - 1;
}

/* Each square shows the owner of the atom in it that is nearest to the plane. */
static int fill_slice(const ts_plan_atoms *a, const ts_survey *s, ts_plan_slice *out)
{
  const view v = view_of(a);
  const int fine = (int)fmin(160, fmax(12, 0.7 * cbrt(a->n)));
  double *nearest = NULL;
  out->width = v.side[0] * a->cell.height[0];
  out->height = v.side[1] * a->cell.height[1];
  const double longest = fmax(out->width, out->height);
  out->columns = (int)fmax(1, round(fine * out->width / longest));
  out->rows = (int)fmax(1, round(fine * out->height / longest));
  TS_TRY(TSI_NEW(out->owner, out->rows * out->columns));
  TS_TRY(TSI_NEW(nearest, out->rows * out->columns));
  for (int p = 0; p < out->rows * out->columns; p++) {
    out->owner[p] = -1;
    nearest[p] = 1.5 * longest / fine / (v.side[2] * a->cell.height[2]); /* in squares */
  }
  for (int r = 0; r < s->ranks; r++)
    for (int64_t i = s->first[r]; i < s->first[r + 1]; i++) {
      double f[3];
      ts_cell_fraction(&a->cell, a->x[i], f);
      for (int k = 0; k < 3; k++)
        f[k] = (f[k] - v.low[k]) / v.side[k];
      const int p = pixel(f[1], out->rows) * out->columns + pixel(f[0], out->columns);
      if (!(fabs(f[2] - plane) <= nearest[p])) continue;
      nearest[p] = fabs(f[2] - plane);
      out->owner[p] = r;
    }
  free(nearest);
  return 0;
}

int ts_plan_slice_take(const ts_plan_atoms *a, const ts_survey *s, ts_plan_slice *slice)
{
  const double wish = log(64);
  if (slice->ranks && fabs(log(s->ranks) - wish) >= fabs(log(slice->ranks) - wish)) return 0;
  ts_plan_slice_free(slice);
  slice->ranks = s->ranks;
  slice->curve = s->curve;
  return fill_slice(a, s, slice);
}

/* ---- panels ---- */

/* A coordinate of the picture in tenths of a unit, apart from locales. */
static const char *point(double x, char text[32])
{
  const long tenths = lround(10 * x);
  snprintf(text, 32, "%ld.%ld", tenths / 10, labs(tenths % 10));
  return text;
}

typedef struct panel {
  FILE *f;
  double x, y;            /* upper left corner of the axes */
  double low[2], high[2]; /* logarithms at the ends */
} panel;

static double place_x(const panel *p, double ranks)
{
  return p->x + PANEL_W * (log(ranks) - p->low[0]) / (p->high[0] - p->low[0]);
}

static double place_y(const panel *p, double value)
{
  return p->y + PANEL_H * (1 - (log(value) - p->low[1]) / (p->high[1] - p->low[1]));
}

static void put_text(FILE *f, double x, double y, const char *style, const char *text)
{
  char a[32], b[32];
  fprintf(f, "<text x=\"%s\" y=\"%s\" %s>", point(x, a), point(y, b), style);
  for (; *text; text++)
    if (*text == '&')
      fputs("&amp;", f);
    else if (*text == '<')
      fputs("&lt;", f);
    else
      fputc(*text, f);
  fputs("</text>\n", f);
}

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
  char a[32], b[32], c[32], d[32];
  fprintf(f, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" %s/>\n", point(x1, a), point(y1, b),
          point(x2, c), point(y2, d), style);
}

/* 1, 10, 100, 1k, 10k, 1M ... */
static void put_power(FILE *f, double x, double y, int power)
{
  static const char *const unit[] = {"", "k", "M", "G", "T"};
  char text[16];
  const int group = power / 3 < 4 ? power / 3 : 4;
  snprintf(text, sizeof text, "%.0f%s", pow(10, power - 3 * group), unit[group]);
  put_text(f, x, y, "class=\"tick\" text-anchor=\"end\"", text);
}

static void put_axes(const panel *p, const char *title)
{
  char text[16];
  put_text(p->f, p->x, p->y - 12, "class=\"title\"", title);
  for (int power = (int)ceil(p->low[1] / M_LN10 - 1e-9); power * M_LN10 <= p->high[1] + 1e-9;
       power++) {
    const double y = place_y(p, pow(10, power));
    put_line(p->f, p->x, y, p->x + PANEL_W, y, "class=\"grid\"");
    put_power(p->f, p->x - 8, y + 4, power);
  }
  const int step = (p->high[0] - p->low[0]) / M_LN2 > 8.5 ? 2 : 1;
  for (int k = (int)ceil(p->low[0] / M_LN2 - 1e-9); k * M_LN2 <= p->high[0] + 1e-9; k += step) {
    const double x = place_x(p, ldexp(1, k));
    put_line(p->f, x, p->y, x, p->y + PANEL_H, "class=\"grid\"");
    snprintf(text, sizeof text, "%.0f", ldexp(1, k));
    put_text(p->f, x, p->y + PANEL_H + 18, "class=\"tick\" text-anchor=\"middle\"", text);
  }
  char a[32], b[32];
  fprintf(p->f, "<rect x=\"%s\" y=\"%s\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n",
          point(p->x, a), point(p->y, b), PANEL_W, PANEL_H);
  put_text(p->f, p->x + PANEL_W / 2.0, p->y + PANEL_H + 38, "class=\"tick\" text-anchor=\"middle\"",
           "ranks");
}

/* ---- series ---- */

enum { EXACT = TS_PLAN_SCHEMES, SERIES };

static const struct {
  const char *colour, *label;
} series[SERIES] = {{"#999999", "all"},    {"#0072b2", "box"},
                    {"#009e73", "boxes"},  {"#d55e00", "bins"},
                    {"#cc79a7", "routed"}, {"#000000", "owners of senders (edges)"}};

/* What a panel shows of one survey; 0: nothing. */
typedef double (*measure)(const ts_plan_result *r, int which);

static double peers_of(const ts_plan_result *r, int which)
{
  const ts_survey *s = r->survey;
  if (which < EXACT) return s->scheme[which].counted ? s->scheme[which].asked.most : 0;
  double most = 0;
  for (int k = 0; k < s->stages; k++)
    most = fmax(most, ts_plan_quantity_spread(s, TS_PLAN_SOURCES, k).most);
  return most + 1;
}

static double candidates_of(const ts_plan_result *r, int which)
{
  const ts_survey *s = r->survey;
  return which < EXACT && s->scheme[which].counted ? s->scheme[which].candidates.most : 0;
}

static double metadata_of(const ts_plan_result *r, int which)
{
  const ts_survey *s = r->survey;
  return which < EXACT && s->scheme[which].counted ? s->scheme[which].bytes.most : 0;
}

/* Later series have smaller marks, so that equal values show as rings. */
static void put_mark(FILE *f, double x, double y, int which, ts_curve curve)
{
  char a[32], b[32], c[32];
  fprintf(f,
          "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\" stroke=\"%s\" "
          "stroke-width=\"1.2\"/>\n",
          point(x, a), point(y, b), point(6 - 0.6 * which, c),
          curve == TS_CURVE_HILBERT ? series[which].colour : "#ffffff", series[which].colour);
}

static void put_series(const panel *p, int n, const ts_plan_result *r, measure what, int which,
                       ts_curve curve)
{
  char style[96];
  double x = 0, y = 0;
  bool some = false;
  snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.5\"%s", series[which].colour,
           curve == TS_CURVE_HILBERT ? "" : " stroke-dasharray=\"5 4\"");
  for (int pass = 0; pass < 2; pass++, some = false) /* marks over lines */
    for (int i = 0; i < n; i++) {
      const double value = what(&r[i], which);
      if (r[i].survey->curve != curve || !(value > 0)) continue;
      const double to_x = place_x(p, r[i].survey->ranks), to_y = place_y(p, value);
      if (pass == 0 && some) put_line(p->f, x, y, to_x, to_y, style);
      if (pass == 1) put_mark(p->f, to_x, to_y, which, curve);
      x = to_x;
      y = to_y;
      some = true;
    }
}

static void put_panel(FILE *f, int column, int row, const char *title, int n,
                      const ts_plan_result *r, measure what)
{
  panel p = {.f = f,
             .x = LEFT + column * (PANEL_W + GAP_X),
             .y = TOP + row * (PANEL_H + GAP_Y),
             .low = {INFINITY, INFINITY},
             .high = {-INFINITY, -INFINITY}};
  for (int i = 0; i < n; i++)
    for (int which = 0; which < SERIES; which++) {
      const double value = what(&r[i], which);
      if (!(value > 0)) continue;
      p.low[0] = fmin(p.low[0], log(r[i].survey->ranks));
      p.high[0] = fmax(p.high[0], log(r[i].survey->ranks));
      p.low[1] = fmin(p.low[1], log(value));
      p.high[1] = fmax(p.high[1], log(value));
    }
  if (!(p.low[0] <= p.high[0])) { /* nothing: one rank publishes to nobody */
    p.low[0] = p.low[1] = 0;
    p.high[0] = p.high[1] = M_LN10;
  }
  p.low[0] -= 0.35;
  p.high[0] += 0.35;
  p.low[1] = M_LN10 * floor(p.low[1] / M_LN10 - 0.02);
  p.high[1] = M_LN10 * ceil(p.high[1] / M_LN10 + 0.02);
  put_axes(&p, title);
  for (int which = 0; which < SERIES; which++)
    for (int curve = 0; curve < 2; curve++)
      put_series(&p, n, r, what, which, (ts_curve)curve);
}

static void put_legend(FILE *f, int n, const ts_plan_result *r)
{
  double x = LEFT;
  bool curve[2] = {false, false}, sampled = false;
  for (int i = 0; i < n; i++) {
    curve[r[i].survey->curve] = true;
    sampled = sampled || r[i].survey->sampled < r[i].survey->ranks;
  }
  for (int which = 0; which < SERIES; which++) {
    if (which < EXACT && !r[0].survey->scheme[which].counted) continue;
    put_mark(f, x + 4, 60, which, TS_CURVE_HILBERT);
    const char *label = which == EXACT && sampled ? "owners of senders (of a sample of ranks)"
                                                  : series[which].label;
    put_text(f, x + 14, 64, "class=\"tick\"", label);
    x += 40 + 6.4 * (double)strlen(label);
  }
  put_text(f, x, 64, "class=\"tick\"",
           curve[0] && curve[1] ? "solid: hilbert, dashed: morton" : ts_plan_curve_word(curve[1]));
}

/* ---- the picture of the slice ---- */

/* One of red, green and blue (0, 8, 4) of a hue in [0, 12) at a lightness and a saturation. */
static int channel(double hue, double light, double saturation, int offset)
{
  const double k = fmod(offset + hue, 12);
  const double edge = fmax(-1, fmin(1, fmin(k - 3, 9 - k)));
  return (int)lround(255 * (light - saturation * fmin(light, 1 - light) * edge));
}

/* Neighbouring numbers get distant hues, and three kinds of lightness. */
static void colour_of(int rank, char text[32])
{
  const double hue = 12 * fmod(rank * 0.61803398875, 1), light = 0.45 + rank % 3 * 0.15;
  snprintf(text, 32, "#%02x%02x%02x", channel(hue, light, 0.6, 0), channel(hue, light, 0.6, 8),
           channel(hue, light, 0.6, 4));
}

static void put_slice(FILE *f, const ts_plan_slice *s)
{
  const double x0 = LEFT + PANEL_W + GAP_X, y0 = TOP + PANEL_H + GAP_Y;
  const double scale = fmin(PANEL_W / s->width, PANEL_H / s->height);
  const double w = scale * s->width / s->columns, h = scale * s->height / s->rows;
  char title[96], a[32], b[32], c[32], d[32], colour[32];
  snprintf(title, sizeof title, "Shards of %d ranks (%s) in the plane at 7/16 of c", s->ranks,
           ts_plan_curve_word(s->curve));
  put_text(f, x0, y0 - 12, "class=\"title\"", title);
  fputs("<g shape-rendering=\"crispEdges\">\n", f);
  for (int row = 0; row < s->rows; row++)
    for (int from = 0, to; from < s->columns; from = to) {
      const int32_t owner = s->owner[row * s->columns + from];
      for (to = from + 1; to < s->columns && s->owner[row * s->columns + to] == owner;)
        to++;
      if (owner < 0) continue;
      colour_of(owner, colour);
      fprintf(f, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n",
              point(x0 + from * w, a), point(y0 + (s->rows - 1 - row) * h, b),
              point((to - from) * w + 0.2, c), point(h + 0.2, d), colour);
    }
  fputs("</g>\n", f);
  fprintf(f, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" class=\"frame\"/>\n", point(x0, a),
          point(y0, b), point(scale * s->width, c), point(scale * s->height, d));
  snprintf(title, sizeof title, "%.0f by %.0f Å", s->width, s->height);
  put_text(f, x0, y0 + PANEL_H + 18, "class=\"tick\"", title);
}

/* Up to its semicolon as a head, the rest below. */
static void put_title(FILE *f, const char *title)
{
  char head[512];
  const size_t end = strcspn(title, ";");
  snprintf(head, sizeof head, "%.*s", (int)end, title);
  put_text(f, LEFT, 22, "class=\"head\"", head);
  if (title[end]) put_text(f, LEFT, 40, "class=\"tick\"", title + end + 2);
}

int ts_plan_plot(const char *path, const char *title, int n, const ts_plan_result *result,
                 const ts_plan_slice *slice)
{
  const int width = LEFT + 2 * PANEL_W + GAP_X + 30, height = TOP + 2 * PANEL_H + GAP_Y + 60;
  ts_aside aside;
  TS_TRY(ts_aside_open(path, &aside));
  FILE *f = aside.file;
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
          "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
          "<style>.head{font-size:15px;font-weight:bold}.title{font-size:14px}"
          ".tick{font-size:12px;fill:#333}.grid{stroke:#ddd}.frame{fill:none;stroke:#333}</style>\n"
          "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
          width, height, width, height, width, height);
  put_title(f, title);
  put_legend(f, n, result);
  put_panel(f, 0, 0, "Ranks that a rank asks, itself included (most)", n, result, peers_of);
  put_panel(f, 1, 0, "Candidates of a rank: atoms and images (most)", n, result, candidates_of);
  put_panel(f, 0, 1, "Metadata that a rank sends at a rebuild, bytes (most)", n, result,
            metadata_of);
  if (slice->ranks) put_slice(f, slice);
  fputs("</svg>\n", f);
  return ts_aside_commit(&aside);
}
