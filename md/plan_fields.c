/* SPDX-License-Identifier: MIT
 *
 * See plan_fields.h. */
#include "md/plan_fields.h"

#include <math.h>
#include <stdio.h>

#include "md/plan_words.h"

ts_plan_width ts_plan_width_of(const ts_model *model)
{
  const ts_shape s = ts_model_shape(model, 1);
  return (ts_plan_width){.projected = ts_kv_width(&s),
                         .unprojected = 2 * (size_t)(s.rows * s.channels),
                         .real_size = model->real_size};
}

double ts_plan_local_formula(const ts_survey *s, double reach)
{
  return 1 - 9 * reach / (8 * cbrt(s->owned_volume));
}

double ts_plan_grid_formula(const ts_survey *s)
{
  return 2 * sqrt(2 * (double)s->atoms / s->ranks * log(s->ranks));
}

static double sources(const ts_plan_load *l, int k)
{
  return l->stage[k].sources;
}

static double targets(const ts_plan_load *l, int k)
{
  return l->stage[k].targets;
}

static double halo(const ts_plan_load *l, int k)
{
  return l->stage[k].halo;
}

static double sent(const ts_plan_load *l, int k)
{
  return l->stage[k].sent;
}

static double edges(const ts_plan_load *l, int k)
{
  return (double)l->stage[k].edges;
}

static double boundary(const ts_plan_load *l, int k)
{
  return l->stage[k].boundary;
}

static double step_messages(const ts_plan_load *l, int k)
{
  (void)k;
  return l->step_messages;
}

static double step_bytes(const ts_plan_load *l, int k)
{
  (void)k;
  return (double)l->step_bytes;
}

static double memory(const ts_plan_load *l, int k)
{
  (void)k;
  return (double)l->bytes;
}

const ts_plan_quantity ts_plan_quantities[TS_PLAN_QUANTITIES] = {
    [TS_PLAN_SOURCES] = {"sources", sources},
    [TS_PLAN_TARGETS] = {"targets", targets},
    [TS_PLAN_HALO] = {"halo_atoms", halo},
    [TS_PLAN_SENT] = {"sent_atoms", sent},
    [TS_PLAN_EDGES] = {"edges", edges},
    [TS_PLAN_BOUNDARY] = {"boundary_atoms", boundary},
    [TS_PLAN_MESSAGES] = {"messages_per_step", step_messages},
    [TS_PLAN_BYTES] = {"bytes_per_step", step_bytes},
    [TS_PLAN_MEMORY] = {"memory_bytes", memory},
};

ts_plan_spread ts_plan_quantity_spread(const ts_survey *s, ts_plan_quantity_id which, int stage)
{
  return ts_survey_spread(s, stage, ts_plan_quantities[which].value);
}

/* ---- the names ---- */

static void put_spread(const ts_plan_sink *sink, const char *name, ts_plan_spread s)
{
  sink->open(sink->context, name);
  sink->number(sink->context, "least", s.least);
  sink->number(sink->context, "mean", s.mean);
  sink->number(sink->context, "most", s.most);
  sink->close(sink->context);
}

static void put_scheme(const ts_plan_sink *sink, int which, const ts_plan_scheme *s)
{
  if (!s->counted) return;
  sink->open(sink->context, ts_plan_scheme_word(which));
  put_spread(sink, "asked_itself_included", s->asked);
  put_spread(sink, "peers", s->peers);
  put_spread(sink, "candidates", s->candidates);
  if (which == TS_LEVEL1_BOX || which == TS_LEVEL1_BOXES)
    put_spread(sink, "candidates_of_whole_shards", s->whole);
  put_spread(sink, "published_bytes", s->row);
  put_spread(sink, "metadata_messages", s->messages);
  put_spread(sink, "metadata_bytes", s->bytes);
  sink->close(sink->context);
}

static void put_stage(const ts_plan_sink *sink, const ts_plan_params *p, const ts_survey *s, int k)
{
  const ts_stage_desc *d = &p->step.model->desc.stage[k];
  const ts_plan_width width = ts_plan_width_of(p->step.model);
  char name[24];
  snprintf(name, sizeof name, "stage_%d", k + 1);
  sink->open(sink->context, name);
  sink->number(sink->context, "cutoff_A", d->cutoff);
  sink->number(sink->context, "skin_A", p->step.skin);
  sink->number(sink->context, "layers", d->nlayers);
  for (int q = TS_PLAN_SOURCES; q <= TS_PLAN_BOUNDARY; q++)
    put_spread(sink, ts_plan_quantities[q].name,
               ts_plan_quantity_spread(s, (ts_plan_quantity_id)q, k));
  sink->number(sink->context, "local_fraction", ts_survey_local(s, k));
  sink->number(sink->context, "local_fraction_formula",
               ts_plan_local_formula(s, d->cutoff + p->step.skin));
  const double row = (double)(width.projected * width.real_size);
  const double wide = (double)(width.unprojected * width.real_size);
  const ts_plan_spread out = ts_plan_quantity_spread(s, TS_PLAN_SENT, k);
  const ts_plan_spread in = ts_plan_quantity_spread(s, TS_PLAN_HALO, k);
  put_spread(sink, "layer_forward_bytes",
             (ts_plan_spread){out.least * row, out.mean * row, out.most * row});
  put_spread(sink, "layer_backward_bytes",
             (ts_plan_spread){in.least * row, in.mean * row, in.most * row});
  put_spread(sink, "layer_forward_bytes_unprojected",
             (ts_plan_spread){out.least * wide, out.mean * wide, out.most * wide});
  put_spread(sink, "layer_backward_bytes_unprojected",
             (ts_plan_spread){in.least * wide, in.mean * wide, in.most * wide});
  sink->close(sink->context);
}

static void put_time(const ts_plan_sink *sink, const ts_plan_time *t)
{
  sink->open(sink->context, "time");
  sink->number(sink->context, "step_s", t->step);
  sink->number(sink->context, "hit_step_s", t->hit);
  sink->number(sink->context, "rebuild_s", t->rebuild);
  sink->number(sink->context, "exchange_wait_s", t->wait);
  sink->number(sink->context, "alone_s", t->alone);
  sink->number(sink->context, "weak_efficiency", t->efficiency);
  sink->close(sink->context);
}

void ts_plan_fields(const ts_plan_params *p, const ts_survey *s, const ts_plan_time *time,
                    const ts_plan_sink *sink)
{
  void *to = sink->context;
  sink->number(to, "ranks", s->ranks);
  sink->text(to, "curve", ts_plan_curve_word(s->curve));
  sink->text(to, "normalization", ts_plan_normalization_word(p->step.partition.normalization));
  sink->text(to, "cut", p->step.weighted ? "edges" : "atoms");
  sink->number(to, "atoms", (double)s->atoms);
  put_spread(sink, "atoms_of_rank", s->count);
  put_spread(sink, "box_over_owned_volume", s->box_ratio);
  sink->number(to, "owned_volume_A3", s->owned_volume);
  sink->number(to, "grid_count_spread", s->grid_spread);
  sink->number(to, "grid_count_spread_formula", ts_plan_grid_formula(s));
  sink->open(to, "level1");
  for (int k = 0; k < TS_PLAN_SCHEMES; k++)
    put_scheme(sink, k, &s->scheme[k]);
  sink->close(to);
  sink->number(to, "ranks_with_edges", s->sampled);
  for (int k = 0; k < s->stages; k++)
    put_stage(sink, p, s, k);
  put_spread(sink, "messages_per_step", ts_plan_quantity_spread(s, TS_PLAN_MESSAGES, 0));
  put_spread(sink, "bytes_per_step", ts_plan_quantity_spread(s, TS_PLAN_BYTES, 0));
  sink->number(to, "handshakes_per_hit_step", 0);
  sink->number(to, "handshakes_per_rebuild", s->stages);
  put_spread(sink, "memory_bytes", ts_plan_quantity_spread(s, TS_PLAN_MEMORY, 0));
  if (time) put_time(sink, time);
}
