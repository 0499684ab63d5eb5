/* SPDX-License-Identifier: MIT
 *
 * See plan_time.h. */
#include "md/plan_time.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "models/kernels.h"
#include "runtime/error.h"

/* ---- the file ---- */

static const struct {
  const char *key;
  size_t at;
} costs_keys[] = {
    {"atom_s", offsetof(ts_plan_costs, atom)},
    {"step_atom_s", offsetof(ts_plan_costs, step_atom)},
    {"edge_forward_s", offsetof(ts_plan_costs, edge_forward)},
    {"edge_back_s", offsetof(ts_plan_costs, edge_back)},
    {"edge_geometry_s", offsetof(ts_plan_costs, edge_geometry)},
    {"row_s", offsetof(ts_plan_costs, row)},
    {"message_s", offsetof(ts_plan_costs, message)},
    {"step_s", offsetof(ts_plan_costs, step)},
    {"rebuild_atom_s", offsetof(ts_plan_costs, rebuild_atom)},
    {"rebuild_edge_s", offsetof(ts_plan_costs, rebuild_edge)},
};
enum { KEYS = sizeof costs_keys / sizeof *costs_keys };

static int take_cost(const char *path, const ts_json_node *node, ts_plan_costs *out)
{
  const char *key = ts_json_key(node);
  char shown[64];
  if (!strcmp(key, "note")) return 0;
  int k = 0;
  while (k < KEYS && strcmp(costs_keys[k].key, key))
    k++;
  if (k == KEYS)
    return tsi_fail(TS_ERR_INPUT,
                    "%s:%d: unknown key \"%s\"; expected the keys that "
                    "bench/bench_costs writes",
                    path, ts_json_line(node), key);
  if (ts_json_node_kind(node) != TS_JSON_NUMBER || !(ts_json_number(node) >= 0))
    return tsi_fail(TS_ERR_INPUT, "%s:%d: %s is %s; expected a number of seconds, 0 or more", path,
                    ts_json_line(node), key, ts_json_show(node, shown, sizeof shown));
  *(double *)(void *)((char *)out + costs_keys[k].at) = ts_json_number(node);
  return 0;
}

int ts_plan_costs_read(const char *path, ts_plan_costs *out)
{
  ts_json *doc;
  *out = (ts_plan_costs){.atom = 0};
  TS_TRY(ts_json_read(path, &doc));
  const ts_json_node *root = ts_json_root(doc);
  int status = 0;
  if (ts_json_node_kind(root) != TS_JSON_OBJECT)
    status = tsi_fail(TS_ERR_INPUT, "%s: expected an object of costs", path);
  for (int i = 0; i < ts_json_size(root) && !status; i++)
    status = take_cost(path, ts_json_at(root, i), out);
  for (int k = 0; k < KEYS && !status; k++)
    if (!ts_json_member(root, costs_keys[k].key))
      status = tsi_fail(TS_ERR_INPUT, "%s: the key \"%s\" is missing", path, costs_keys[k].key);
  ts_json_destroy(&doc);
  return status;
}

/* ---- prediction ---- */

typedef struct setting {
  const ts_plan_params *params;
  const ts_plan_costs *costs;
  const ts_plan_network *net;
  double row_bytes;
  int layers; /* of all stages */
} setting;

/* Of one rank, in seconds. */
typedef struct parts {
  double work, wait, rebuild;
} parts;

/* An exchange of rows of so many bytes, behind `hidden` seconds of work. */
static double exchange_wait(const setting *s, double row_bytes, const ts_plan_stage_load *l,
                            double hidden)
{
  const int messages = l->sources + l->targets;
  if (messages == 0) return 0;
  const double bytes = row_bytes * fmax(l->sent, l->halo); /* both ways at once */
  const double tc = s->net->latency + bytes / s->net->bandwidth + messages * s->costs->message;
  return fmax(tc - hidden, 0);
}

static parts of_stage(const setting *s, const ts_plan_load *load, int k, double speed)
{
  const ts_plan_stage_load *l = &load->stage[k];
  const ts_plan_costs *c = s->costs;
  const int layers = s->params->step.model->desc.stage[k].nlayers;
  const double local = (double)(l->edges - l->remote), edges = (double)l->edges;
  const double inside = (double)(load->n - l->boundary) / load->n; /* tiles that wait for nobody */
  const double pack = (l->sent + l->halo) * c->row * speed;
  const double forward = exchange_wait(s, s->row_bytes, l, local * c->edge_forward * speed);
  const double back = exchange_wait(s, s->row_bytes, l, inside * local * c->edge_back * speed);
  const double places =
      exchange_wait(s, 3 * sizeof(double), l, inside * local * c->edge_geometry * speed);
  return (parts){.work = edges * c->edge_geometry * speed +
                         layers * (edges * (c->edge_forward + c->edge_back) * speed + 2 * pack),
                 .wait = layers * (forward + back) + 2 * places, /* and forces */
                 .rebuild = edges * c->rebuild_edge};
}

static parts of_rank(const setting *s, const ts_plan_load *load)
{
  const ts_plan_costs *c = s->costs;
  const double speed = s->net->share / s->net->workers;
  const int stages = s->params->step.model->desc.nstages;
  parts sum = {
      .work = load->n * (c->atom * s->layers + c->step_atom) * speed + c->step * s->net->share,
      .rebuild = load->n * c->rebuild_atom};
  for (int k = 0; k < stages; k++) {
    const parts p = of_stage(s, load, k, speed);
    sum.work += p.work;
    sum.wait += p.wait;
    sum.rebuild += p.rebuild + load->stage[k].halo * c->rebuild_atom;
  }
  sum.rebuild *= s->net->share; /* on the calling thread */
  return sum;
}

/* The same rank with all its senders at home. */
static ts_plan_load without_others(const ts_plan_load *load)
{
  ts_plan_load alone = *load;
  for (int k = 0; k < TS_MAX_STAGES; k++)
    alone.stage[k] = (ts_plan_stage_load){.edges = load->stage[k].edges};
  return alone;
}

void ts_plan_predict(const ts_plan_params *params, const ts_survey *survey,
                     const ts_plan_costs *costs, const ts_plan_network *net, ts_plan_time *out)
{
  const ts_model *model = params->step.model;
  const ts_shape shape = ts_model_shape(model, 1);
  const setting s = {.params = params,
                     .costs = costs,
                     .net = net,
                     .row_bytes = (double)(ts_kv_width(&shape) * model->real_size),
                     .layers = ts_model_layers(model)};
  const double reductions = 2 * ceil(log2(survey->ranks)) * net->latency;
  double alone = 0, alone_rebuild = 0;
  *out = (ts_plan_time){.step = 0};
  for (int i = 0; i < survey->sampled; i++) {
    const ts_plan_load single = without_others(&survey->load[i]);
    const parts p = of_rank(&s, &survey->load[i]), one = of_rank(&s, &single);
    out->hit = fmax(out->hit, p.work + p.wait + reductions);
    out->rebuild = fmax(out->rebuild, p.rebuild);
    out->wait += p.wait / survey->sampled;
    alone += one.work / survey->sampled;
    alone_rebuild += one.rebuild / survey->sampled;
  }
  out->step = out->hit + out->rebuild / net->interval;
  out->alone = alone;
  out->efficiency = (alone + alone_rebuild / net->interval) / out->step;
}
