/* SPDX-License-Identifier: MIT
 *
 * One row per option: its name, what a value may be, and where it goes.  A value that is not
 * understood is refused with what was expected; nothing is guessed. */
#include "md/plan_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/tensors.h"
#include "runtime/error.h"
#include "runtime/number.h"

const char ts_plan_usage[] =
    "tessera plan STRUCTURE.xyz|--system KIND --ranks K[,K...] [OPTION VALUE]...\n\n"
    "What K ranks would do: who talks to whom, how much, and what a rebuild costs.  K virtual "
    "ranks\n"
    "in this process run the cut, Level 1, the search and the plans that real ranks run.\n\n"
    "System\n"
    "  --system KIND          uniform, water, salt-water, blob, slab or droplet\n"
    "  --atoms N              of it in all, or\n"
    "  --per-rank N           of it for each rank (25000)\n"
    "  --density D            atoms per Å³ (0.1)\n"
    "  --grow abc|ab|a        axes along which the cell grows with the ranks (abc)\n"
    "  --seed S               of its places (1)\n"
    "  --repeat A,B,C         copies of a structure file along its vectors (1,1,1)\n"
    "Model\n"
    "  --model FILE           weights, or a description (.json); else the published widths\n"
    "  --stages R[xLAYERS],.. cutoffs [Å] instead of the model's, one or two (5x3,8x1)\n"
    "  --precision float|double\n"
    "Run\n"
    "  --curve LIST           hilbert, morton (hilbert)\n"
    "  --normalization axes|longest   what fills the curve's cube: every axis of the cell, or\n"
    "                         only the longest, so that shards of a long cell are compact (axes)\n"
    "  --scheme LIST          all, box, boxes, bins, routed (all five)\n"
    "  --boxes B, --bin W     of the schemes boxes (8) and bins [Å] (automatic)\n"
    "  --skin S               [Å] (0.5)\n"
    "  --chunk N              of the search (512)\n"
    "  --cut atoms|edges      what ranks get equal shares of (atoms)\n"
    "  --slack S              cut by edges: at most (1 + S) N/K atoms on a rank (0.5)\n"
    "  --workers N            of a rank, for the memory of its tiles (1)\n"
    "  --interval N           steps between rebuilds (10)\n"
    "  --sample N|all|auto    ranks whose edges are found (auto: all of some 400,000 atoms,\n"
    "                         else evenly spread ranks; the output says how many)\n"
    "Output\n"
    "  --csv FILE, --json FILE, --plot FILE.svg\n"
    "Times\n"
    "  --costs FILE           costs of a rank as bench/bench_costs measures them, with\n"
    "  --latency-us L, --bandwidth-GBps B   of a message between ranks (2, 10)\n"
    "  --share S              ranks that take turns on one core (1)\n";

typedef enum form { TEXT, WHOLE, REAL, WORD, SPECIAL } form;

typedef struct option {
  const char *name;
  form form;
  size_t at;
  double least, most;       /* WHOLE, REAL */
  const char *const *words; /* WORD: the index goes to an int */
  int (*take)(const char *name, const char *text, ts_plan_words *out);
} option;

static int refuse(const char *name, const char *text, const char *expected)
{
  return tsi_fail(TS_ERR_INPUT, "plan: %s is \"%s\"; expected %s", name, text, expected);
}

/* The next item of a list; false at its end. */
static bool next_item(const char **rest, const char **item, size_t *length)
{
  if (!*rest) return false;
  *item = *rest;
  *length = strcspn(*rest, ",");
  *rest = (*rest)[*length] ? *rest + *length + 1 : NULL;
  return true;
}

static bool whole(const char *text, size_t length, int64_t least, int64_t most, int64_t *out)
{
  return tsi_number_int64(text, length, out) && *out >= least && *out <= most;
}

static int take_ranks(const char *name, const char *text, ts_plan_words *out)
{
  const char *rest = text, *item;
  size_t length;
  int64_t k;
  out->nranks = 0;
  while (next_item(&rest, &item, &length)) {
    if (out->nranks == TS_PLAN_LIST || !whole(item, length, 1, TS_PLAN_MOST_RANKS, &k))
      return refuse(name, text, "up to 64 numbers from 1 to 65536, with commas between");
    out->ranks[out->nranks++] = (int)k;
  }
  return 0;
}

static int find_word(const char *text, size_t length, const char *const *words)
{
  for (int i = 0; words[i]; i++)
    if (strlen(words[i]) == length && !strncmp(words[i], text, length)) return i;
  return -1;
}

static int take_set(const char *name, const char *text, const char *const *words,
                    const char *expected, int count, bool *set)
{
  const char *rest = text, *item;
  size_t length;
  memset(set, 0, (size_t)count * sizeof *set);
  while (next_item(&rest, &item, &length)) {
    const int i = find_word(item, length, words);
    if (i < 0) return refuse(name, text, expected);
    set[i] = true;
  }
  return 0;
}

/* in the order of ts_plan_kind */
static const char *const kind_words[] = {"uniform", "water",   "salt-water", "blob",
                                         "slab",    "droplet", NULL};
static const char *const curve_words[] = {"hilbert", "morton", NULL};
static const char *const normalization_words[] = {"axes", "longest", NULL};
static const char *const scheme_words[] = {"all", "box", "boxes", "bins", "routed", NULL};

const char *ts_plan_curve_word(int curve)
{
  return curve_words[curve];
}

const char *ts_plan_normalization_word(int normalization)
{
  return normalization_words[normalization];
}

const char *ts_plan_scheme_word(int scheme)
{
  return scheme_words[scheme];
}

const char *ts_plan_kind_word(int kind)
{
  return kind_words[kind];
}

static int take_curves(const char *name, const char *text, ts_plan_words *out)
{
  return take_set(name, text, curve_words, "hilbert, morton or both with a comma", 2, out->curve);
}

static int take_schemes(const char *name, const char *text, ts_plan_words *out)
{
  return take_set(name, text, scheme_words, "some of all, box, boxes, bins, routed",
                  TS_PLAN_SCHEMES, out->scheme);
}

static int take_repeat(const char *name, const char *text, ts_plan_words *out)
{
  const char *rest = text, *item;
  size_t length;
  int count = 0;
  int64_t n = 0;
  while (next_item(&rest, &item, &length)) {
    if (count == 3 || !whole(item, length, 1, 100000, &n)) count = 4;
    if (count > 3) break;
    out->repeat[count++] = (int)n;
  }
  return count == 3 ? 0 : refuse(name, text, "three numbers from 1 up, such as 2,2,1");
}

/* "5x3,8x1": cutoffs and layers. */
static int take_stages(const char *name, const char *text, ts_plan_words *out)
{
  static const char expected[] =
      "one or two cutoffs above 0 up to 1000 with their layers, such as "
      "5x3,8x1";
  ts_model_desc *d = &out->desc;
  const char *rest = text, *item;
  size_t length;
  d->nstages = 0;
  while (next_item(&rest, &item, &length)) {
    const char *cross = memchr(item, 'x', length);
    const size_t before = cross ? (size_t)(cross - item) : length;
    int64_t layers = 1;
    double cutoff;
    if (d->nstages == TS_MAX_STAGES || !tsi_number_double(item, before, &cutoff) ||
        !(cutoff > 0 && cutoff <= 1000) ||
        (cross && !whole(cross + 1, length - before - 1, 1, TS_MAX_LAYERS, &layers)))
      return refuse(name, text, expected);
    d->stage[d->nstages++] = (ts_stage_desc){.cutoff = cutoff, .nlayers = (int)layers};
  }
  if (d->nstages == 1) d->merge = TS_MERGE_NONE;
  return 0;
}

static int take_sample(const char *name, const char *text, ts_plan_words *out)
{
  int64_t n = 0;
  if (!strcmp(text, "all"))
    n = TS_PLAN_MOST_RANKS;
  else if (strcmp(text, "auto") && !whole(text, strlen(text), 1, TS_PLAN_MOST_RANKS, &n))
    return refuse(name, text, "a number from 1 up, all or auto");
  out->sample = n;
  return 0;
}

static const char *const grow_words[] = {"", "a", "ab", "abc", NULL}; /* by number */
static const char *const cut_words[] = {"atoms", "edges", NULL};
static const char *const precision_words[] = {"float", "double", NULL};

#define AT(member) offsetof(ts_plan_words, member)
static const option options[] = {
    {.name = "--system", .form = WORD, .at = AT(kind), .words = kind_words},
    {.name = "--atoms", .form = WHOLE, .at = AT(atoms), .least = 1, .most = INT32_MAX},
    {.name = "--per-rank", .form = WHOLE, .at = AT(per_rank), .least = 1, .most = INT32_MAX},
    {.name = "--density", .form = REAL, .at = AT(density), .least = 1e-6, .most = 10},
    {.name = "--grow", .form = WORD, .at = AT(grow), .words = grow_words},
    {.name = "--seed", .form = WHOLE, .at = AT(seed), .least = 0, .most = 1e15},
    {.name = "--repeat", .form = SPECIAL, .take = take_repeat},
    {.name = "--ranks", .form = SPECIAL, .take = take_ranks},
    {.name = "--model", .form = TEXT, .at = AT(model)},
    {.name = "--stages", .form = SPECIAL, .take = take_stages},
    {.name = "--precision", .form = WORD, .at = AT(is_double), .words = precision_words},
    {.name = "--curve", .form = SPECIAL, .take = take_curves},
    {.name = "--normalization",
     .form = WORD,
     .at = AT(normalization),
     .words = normalization_words},
    {.name = "--scheme", .form = SPECIAL, .take = take_schemes},
    {.name = "--boxes", .form = WHOLE, .at = AT(boxes), .least = 1, .most = TS_LEVEL1_MOST_BOXES},
    {.name = "--bin", .form = REAL, .at = AT(bin), .least = 0, .most = 1e6},
    {.name = "--skin", .form = REAL, .at = AT(skin), .least = 0, .most = 10},
    {.name = "--chunk", .form = WHOLE, .at = AT(chunk), .least = 1, .most = 1e6},
    {.name = "--cut", .form = WORD, .at = AT(weighted), .words = cut_words},
    {.name = "--slack", .form = REAL, .at = AT(slack), .least = 0, .most = 1000},
    {.name = "--workers", .form = WHOLE, .at = AT(workers), .least = 1, .most = 4096},
    {.name = "--interval", .form = WHOLE, .at = AT(interval), .least = 1, .most = 1e9},
    {.name = "--sample", .form = SPECIAL, .take = take_sample},
    {.name = "--csv", .form = TEXT, .at = AT(csv)},
    {.name = "--json", .form = TEXT, .at = AT(json)},
    {.name = "--plot", .form = TEXT, .at = AT(plot)},
    {.name = "--costs", .form = TEXT, .at = AT(costs)},
    {.name = "--latency-us", .form = REAL, .at = AT(latency), .least = 0, .most = 1e9},
    {.name = "--bandwidth-GBps", .form = REAL, .at = AT(bandwidth), .least = 1e-9, .most = 1e9},
    {.name = "--share", .form = REAL, .at = AT(share), .least = 1, .most = 1e6},
};
enum { OPTIONS = sizeof options / sizeof *options };

static int take_value(const option *o, const char *text, ts_plan_words *out)
{
  char *at = (char *)out + o->at;
  char expected[160];
  if (o->form == SPECIAL) return o->take(o->name, text, out);
  if (o->form == TEXT) {
    memcpy(at, &text, sizeof text);
    return *text ? 0 : refuse(o->name, text, "the name of a file");
  }
  if (o->form == WORD) {
    const int i = *text ? find_word(text, strlen(text), o->words) : -1;
    if (i >= 0) memcpy(at, &i, sizeof i);
    if (i >= 0) return 0;
    expected[0] = '\0';
    for (int w = 0; o->words[w]; w++)
      if (*o->words[w])
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                 *expected ? ", " : "one of ", o->words[w]);
    return refuse(o->name, text, expected);
  }
  if (o->form == WHOLE) {
    int64_t n;
    if (whole(text, strlen(text), (int64_t)o->least, (int64_t)o->most, &n)) {
      memcpy(at, &n, sizeof n);
      return 0;
    }
    snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", o->least, o->most);
  } else {
    double x;
    if (tsi_number_double(text, strlen(text), &x) && x >= o->least && x <= o->most) {
      memcpy(at, &x, sizeof x);
      return 0;
    }
    snprintf(expected, sizeof expected, "a number from %g to %g", o->least, o->most);
  }
  return refuse(o->name, text, expected);
}

static int bad_usage(const char *what, const char *word)
{
  return tsi_fail(TS_ERR_INPUT, "plan: %s%s%s; see tessera plan --help", what, *word ? " " : "",
                  word);
}

static int take_word(int argc, char **argv, int *i, bool *given, ts_plan_words *out)
{
  const char *word = argv[*i];
  if (word[0] != '-') {
    if (out->structure) return bad_usage("one structure file is expected, not also", word);
    out->structure = word;
    return 0;
  }
  int k = 0;
  while (k < OPTIONS && strcmp(word, options[k].name))
    k++;
  if (k == OPTIONS) return bad_usage("unknown option", word);
  if (given[k]) return bad_usage("given twice:", word);
  if (*i + 1 == argc) return bad_usage("a value is expected behind", word);
  given[k] = true;
  return take_value(&options[k], argv[++*i], out);
}

static bool is_given(const bool *given, const char *name)
{
  for (int k = 0; k < OPTIONS; k++)
    if (!strcmp(options[k].name, name)) return given[k];
  return false;
}

/* Options that mean nothing together. */
static int check_together(const bool *given, const ts_plan_words *w)
{
  static const char *const generated[] = {"--atoms", "--per-rank", "--density", "--grow", "--seed"};
  const bool kind = is_given(given, "--system");
  if (!w->structure == !kind) return bad_usage("a structure file or --system is expected", "");
  for (size_t k = 0; k < sizeof generated / sizeof *generated; k++)
    if (w->structure && is_given(given, generated[k]))
      return bad_usage("only a generated system has", generated[k]);
  if (kind && is_given(given, "--repeat"))
    return bad_usage("only a structure file has", "--repeat");
  if (is_given(given, "--atoms") && is_given(given, "--per-rank"))
    return bad_usage("either --atoms or", "--per-rank");
  if (!w->nranks) return bad_usage("a number of ranks is expected:", "--ranks");
  if (w->model && is_given(given, "--stages")) return bad_usage("either --model or", "--stages");
  if (!w->costs && (is_given(given, "--latency-us") || is_given(given, "--bandwidth-GBps") ||
                    is_given(given, "--share")))
    return bad_usage("times need", "--costs");
  if (!w->weighted && is_given(given, "--slack")) return bad_usage("--slack needs", "--cut edges");
  return 0;
}

static int load_description(const char *path, ts_model_desc *desc)
{
  const size_t length = strlen(path);
  if (length < 5 || strcmp(path + length - 5, ".json")) {
    ts_weights *weights;
    TS_TRY(ts_model_load(path, false, desc, &weights));
    ts_weights_destroy(&weights);
    return 0;
  }
  ts_json *doc;
  TS_TRY(ts_json_read(path, &doc));
  const int status = ts_model_desc_parse(ts_json_root(doc), path, desc);
  ts_json_destroy(&doc);
  return status;
}

/* The sizes that the paper and bench/bench_step have. */
static const ts_model_desc published = {
    .channels = 256,
    .heads = 128,
    .head_dim = 8,
    .head_channels = 2,
    .lmax = 2,
    .bases = 256,
    .nstages = 2,
    .stage = {{.cutoff = 5, .nlayers = 3}, {.cutoff = 8, .nlayers = 1}},
    .merge = TS_MERGE_CLUSTER};

int ts_plan_words_parse(int argc, char **argv, ts_plan_words *out)
{
  bool given[OPTIONS] = {false};
  *out = (ts_plan_words){.repeat = {1, 1, 1},
                         .density = 0.1,
                         .grow = 3,
                         .seed = 1,
                         .curve = {true, false},
                         .scheme = {true, true, true, true, true},
                         .boxes = 8,
                         .desc = published,
                         .skin = 0.5,
                         .chunk = 512,
                         .slack = 0.5,
                         .workers = 1,
                         .latency = 2,
                         .bandwidth = 10,
                         .share = 1,
                         .interval = 10};
  for (int i = 0; i < argc; i++)
    TS_TRY(take_word(argc, argv, &i, given, out));
  TS_TRY(check_together(given, out));
  if (!out->structure && !out->atoms && !out->per_rank) out->per_rank = 25000;
  return out->model ? load_description(out->model, &out->desc) : 0;
}
