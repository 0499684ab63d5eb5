/* SPDX-License-Identifier: MIT
 *
 * When a step does what: run the recorded tasks (md/step_record.c), agree with the other ranks on
 * failures, rebuilds and sums, and name the atoms of what went wrong. */
#include "md/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "md/step_impl.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/log.h"

/* Two atoms closer than this are a broken structure, not a configuration [Å]. */
static const double OVERLAP = 0.1;
/* An atom that moves further than this in one step is lost [Å]. */
static const double LEAP = 1.0;

void ts_step_params_init(ts_step_params *p)
{
  *p = (ts_step_params){.workers = 1,
                        .skin = 0.5,
                        .rebuild = 10,
                        .period = 100,
                        .partition = {.curve = TS_CURVE_HILBERT},
                        .overlap = true,
                        .backend = TS_SEARCH_CELLS,
                        .chunk = 512,
                        .replay = true};
  ts_level1_params_init(&p->level1);
}

/* Tiles small enough to keep all workers busy through the layers' barriers, large enough for the
 * matrix engine: four a worker, 16 to 128 atoms. */
static int automatic_tile(ts_lidx n, int workers)
{
  const int64_t share = ((int64_t)n + 4 * workers - 1) / (4 * workers);
  const int64_t rounded = (share + 15) / 16 * 16;
  return (int)(rounded < 16 ? 16 : rounded > 128 ? 128 : rounded);
}

void tsi_step_sizes(ts_step *s, const ts_step_params *params, ts_lidx n)
{
  const int rows = params->tile_atoms ? params->tile_atoms : automatic_tile(n, params->workers);
  s->params = *params;
  s->model = params->model;
  s->layers = ts_model_layers(s->model);
  s->shape = ts_model_shape(s->model, rows);
  s->ntiles = (int)(((int64_t)n + rows - 1) / rows);
  s->stats.tiles = s->ntiles;
  s->stats.tile_atoms = rows;
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int l = 0; l < s->model->desc.stage[k].nlayers; l++)
      if (s->model->layer[k][l].order == TS_ORDER_FIRST) s->first_order = true;
}

static int check_elements(const ts_model *model, const ts_system *system)
{
  if (system->n < 1) return tsi_fail(TS_ERR_INPUT, "the structure has no atoms");
  for (ts_lidx i = 0; i < system->n; i++)
    if (model->species_index[system->z[i]] < 0)
      return tsi_fail(TS_ERR_INPUT,
                      "atom %lld has atomic number %d, which the model has no table of",
                      (long long)system->gid[i] + 1, system->z[i]);
  return 0;
}

/* Record where there is nothing to replay; no rank runs what another could not record. */
static int prepare(ts_step *s)
{
  if (!s->ready) return tsi_fail(TS_ERR_ARG, "an earlier rebuild has failed");
  if (!s->params.replay) { /* for comparison: pay for recording on every step */
    ts_program_destroy(&s->move);
    ts_program_destroy(&s->force);
  }
  if (s->force) return 0;
  return tsi_ranks_agree(&s->ranks, tsi_step_record(s));
}

static int run(ts_step *s, bool forces)
{
  TS_TRY(prepare(s));
  ts_program *program = forces ? s->force : s->move;
  for (int k = 0; k < s->model->desc.nstages && forces; k++)
    if (s->halo[k])
      memcpy(s->halo[k]->x, s->system->x, (size_t)s->system->n * sizeof *s->system->x);
  TS_TRY(ts_program_run(program, (long)s->now.number));
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    s->stats.phase_seconds[p] += ts_program_phase_seconds(program, p);
  s->stats.run_seconds += ts_program_seconds(program);
  return 0;
}

/* ---- checks that name atoms */

static int check_overlap(const ts_step *s)
{
  for (int k = 0; k < s->model->desc.nstages; k++)
    for (int t = 0; t < s->ntiles; t++) {
      const ts_closest *c = &s->closest[k * s->ntiles + t];
      if (!(c->r < OVERLAP)) continue;
      const ts_system *sys = s->system;
      const tsi_halo *halo = s->halo[k];
      const ts_lidx i = s->edges[k]->receiver[c->edge], j = s->edges[k]->sender[c->edge];
      const double *xi = sys->x[i], *xj = halo ? halo->x[j] : sys->x[j];
      const ts_gidx other = j < sys->n ? sys->gid[j] : halo->gid[j - sys->n];
      return tsi_fail(TS_ERR_SIMULATION,
                      "step %lld: atoms %lld at (%.6f, %.6f, %.6f) and %lld at (%.6f, %.6f, %.6f) "
                      "overlap: %.3g Å apart, expected at least %g Å",
                      (long long)s->now.number, (long long)sys->gid[i] + 1, xi[0], xi[1], xi[2],
                      (long long)other + 1, xj[0], xj[1], xj[2], c->r, OVERLAP);
    }
  return 0;
}

/* The atom of a tile that is furthest from where it was at the build, for a message. */
static int lost_atom(const ts_step *s, int t)
{
  const ts_system *sys = s->system;
  ts_lidx worst = s->slice[t].first;
  double most = -1;
  for (ts_lidx i = worst; i < s->slice[t].first + s->slice[t].n; i++) {
    double d2 = 0;
    for (int k = 0; k < 3; k++)
      d2 += pow(sys->x[i][k] - s->x_build[i][k], 2);
    if (!(d2 <= most)) {
      most = d2;
      worst = i;
    }
    if (!isfinite(d2)) break;
  }
  return tsi_fail(
      TS_ERR_SIMULATION,
      "step %lld: atom %lld is lost: it moved %.3g Å from (%.6f, %.6f, %.6f) to (%.6f, %.6f, %.6f) "
      "in at most %lld steps, with velocity (%.3g, %.3g, %.3g) Å/fs; is the timestep too long?",
      (long long)s->now.number, (long long)sys->gid[worst] + 1, sqrt(most), s->x_build[worst][0],
      s->x_build[worst][1], s->x_build[worst][2], sys->x[worst][0], sys->x[worst][1],
      sys->x[worst][2], (long long)s->age + 1, sys->v[worst][0], sys->v[worst][1],
      sys->v[worst][2]);
}

/* Largest squared displacement since the build, or the failure of a lost atom. */
static int largest_move(const ts_step *s, double *displacement2)
{
  const double limit = s->params.skin / 2 + LEAP;
  *displacement2 = 0;
  for (int t = 0; t < s->ntiles; t++) {
    const double d2 = s->report[t].displacement2;
    if (!(d2 <= limit * limit)) return lost_atom(s, t);
    *displacement2 = d2 > *displacement2 ? d2 : *displacement2;
  }
  return 0;
}

/* ---- what the ranks agree on */

/* Nobody goes on where one rank has failed; what moved most becomes that of all ranks. */
static int agree_largest(const ts_step *s, int status, double *displacement, double *strayed)
{
  double x[3] = {status != 0, *displacement, *strayed};
  if (s->ranks.size == 1) return status;
  TS_TRY(ts_collective_allreduce(s->params.collective, TS_CTYPE_DOUBLE, TS_COP_MAX, x, x, 3));
  if (x[0] > 0) return tsi_ranks_agree(&s->ranks, status);
  *displacement = x[1];
  *strayed = x[2];
  return 0;
}

/* Sums over all ranks: the observables, for each stage how many atoms its cap concerns, and what
 * else a rank has to tell. */
static int agree_sums(ts_step *s, int status, ts_partial *total, int64_t *bounded)
{
  enum { FAILED = TS_PARTIAL_WORDS, BOUNDED, NEWS = BOUNDED + TS_MAX_STAGES };
  int64_t word[NEWS + TS_STEP_NEWS];
  memset(s->news, 0, sizeof s->news);
  if (s->params.ask) s->params.ask(s->params.context, s->news);
  if (s->ranks.size == 1) return status;
  ts_partial_pack(total, word);
  word[FAILED] = status != 0;
  memcpy(word + BOUNDED, bounded, TS_MAX_STAGES * sizeof *bounded);
  memcpy(word + NEWS, s->news, sizeof s->news);
  TS_TRY(ts_collective_allreduce(s->params.collective, TS_CTYPE_INT64, TS_COP_SUM, word, word,
                                 sizeof word / sizeof *word));
  if (word[FAILED]) return tsi_ranks_agree(&s->ranks, status);
  ts_partial_unpack(word, total);
  memcpy(bounded, word + BOUNDED, TS_MAX_STAGES * sizeof *bounded);
  memcpy(s->news, word + NEWS, sizeof s->news);
  return 0;
}

/* ---- the public calls */

static int begin(ts_step *s, ts_rebuild cause)
{
  const double start = starpu_timing_now();
  s->stats.rebuilds[cause]++;
  TS_TRY(tsi_epoch_begin(s, cause == TS_REBUILD_START || cause == TS_REBUILD_PARTITION));
  s->stats.rebuild_seconds += (starpu_timing_now() - start) * 1e-6;
  return 0;
}

int ts_step_create(const ts_step_params *params, ts_system *system, ts_step **out)
{
  ts_step *s = NULL;
  *out = NULL;
  const ts_ranks alone = {.comm = MPI_COMM_NULL, .size = 1, .hosted = 1};
  const ts_ranks *ranks = params->ranks ? params->ranks : &alone;
  int status = check_elements(params->model, system);
  if (!status) status = TSI_NEW(s, 1);
  status = tsi_ranks_agree(ranks, status);
  if (!status) {
    ts_engine_rest(true); /* until there are tasks */
    s->ranks = *ranks;
    s->system = system;
    tsi_step_sizes(s, params, system->n);
    status = begin(s, TS_REBUILD_START);
    s->params.keys = NULL;
    s->params.owners = NULL;
    /* edges are known only now, and a long period should not begin without them */
    if (!status && ranks->size > 1 && params->weighted && !params->owners)
      status = tsi_epoch_begin(s, true);
  }
  if (status) ts_step_destroy(&s);
  *out = s;
  return status;
}

void ts_step_destroy(ts_step **step)
{
  if (!*step) return;
  tsi_epoch_destroy(*step);
  ts_engine_rest(false);
  free(*step);
  *step = NULL;
}

void tsi_step_log_bound(const ts_stage_desc *stage, int64_t bounded, int64_t atoms)
{
  ts_log(TS_LOG_WARNING,
         "%lld of %lld atoms have more than max_neighbors = %d senders within %g Å: only the "
         "nearest count, and the energy is discontinuous where they change",
         (long long)bounded, (long long)atoms, stage->max_neighbors, stage->cutoff);
}

/* Once a run, at the first step that it concerns; all ranks have the same sums, and one says so. */
static void log_bound(ts_step *s, const int64_t *bounded)
{
  if (s->ranks.first > 0) return;
  for (int k = 0; k < s->model->desc.nstages && !s->bound_said; k++) {
    if (!bounded[k]) continue;
    tsi_step_log_bound(&s->model->desc.stage[k], bounded[k], s->system->natoms);
    s->bound_said = true;
  }
}

static int forces(ts_step *s, ts_partial *total)
{
  int64_t bounded[TS_MAX_STAGES] = {0};
  int status = run(s, true);
  ts_partial_clear(total);
  if (!status) {
    for (int t = 0; t < s->ntiles; t++)
      ts_partial_merge(total, &s->partial[t]);
    for (int k = 0; k < s->model->desc.nstages; k++)
      for (int t = 0; t < s->ntiles; t++)
        bounded[k] += s->closest[k * s->ntiles + t].bounded;
    status = check_overlap(s);
  }
  TS_TRY(agree_sums(s, status, total, bounded));
  log_bound(s, bounded);
  s->stats.evaluations++;
  return 0;
}

int ts_step_evaluate(ts_step *s, int64_t number, ts_partial *total)
{
  const ts_system *sys = s->system;
  ts_lidx atom;
  double moved = ts_displacement_max(sys->n, (const double(*)[3])sys->x,
                                     (const double(*)[3])s->x_build, &atom);
  int status = 0;
  s->now = (ts_step_now){.motion = NULL, .number = number};
  if (!isfinite(moved))
    status = tsi_fail(TS_ERR_SIMULATION,
                      "step %lld: atom %lld is at (%g, %g, %g) Å, expected finite positions",
                      (long long)number, (long long)sys->gid[atom] + 1, sys->x[atom][0],
                      sys->x[atom][1], sys->x[atom][2]);
  double strayed = s->strayed;
  TS_TRY(agree_largest(s, status, &moved, &strayed));
  if (!(moved <= s->params.skin / 2)) TS_TRY(begin(s, TS_REBUILD_DISPLACEMENT));
  return forces(s, total);
}

/* Why an epoch has to begin, the own and the largest squared displacement given; COUNT: it need
 * not. */
static ts_rebuild cause_of(const ts_step *s, double own, double largest, double strayed)
{
  const double limit = s->params.skin * s->params.skin / 4;
  const bool scheduled = s->age >= s->params.rebuild;
  if (tsi_period_is_over(s, scheduled || largest > limit, strayed)) return TS_REBUILD_PARTITION;
  if (scheduled) return TS_REBUILD_SCHEDULE;
  if (own > limit) return TS_REBUILD_DISPLACEMENT;
  return largest > limit ? TS_REBUILD_PASSIVE : TS_REBUILD_COUNT;
}

int ts_step_advance(ts_step *s, const ts_motion *motion, int64_t number, ts_partial *total)
{
  double own = 0;
  s->now = (ts_step_now){.motion = motion, .number = number};
  int status = run(s, false);
  if (!status) status = largest_move(s, &own);
  double largest = own, strayed = s->strayed;
  TS_TRY(agree_largest(s, status, &largest, &strayed));
  s->age++;
  s->partition_age++;
  const ts_rebuild cause = cause_of(s, own, largest, strayed);
  if (cause != TS_REBUILD_COUNT) TS_TRY(begin(s, cause));
  return forces(s, total);
}

const double (*ts_step_forces(const ts_step *step))[3]
{
  return (const double(*)[3])step->f;
}

const double (*ts_step_virials(const ts_step *step))[9]
{
  return (const double(*)[9])step->virial;
}

double ts_step_energy(const ts_step *step, ts_lidx atom)
{
  return step->energy[atom / step->shape.atoms][atom % step->shape.atoms];
}

/* Ids and images of all senders of a stage. */
static int name_senders(const ts_step *s, int stage, ts_gidx *gid, int32_t (*image)[3])
{
  const ts_system *sys = s->system;
  const tsi_halo *halo = s->halo[stage];
  const void *own[] = {sys->image};
  void *others[] = {image + sys->n};
  memcpy(gid, sys->gid, (size_t)sys->n * sizeof *gid);
  memcpy(image, sys->image, (size_t)sys->n * sizeof *image);
  if (!halo) return 0;
  if (halo->n > 0) memcpy(gid + sys->n, halo->gid, (size_t)halo->n * sizeof *gid);
  return ts_plan_fetch(&s->ranks, &halo->plan, sizeof *image, own, others);
}

int ts_step_topology(const ts_step *s, int stage, uint64_t *hash, int64_t *active)
{
  const ts_edges *e = s->edges[stage];
  uint8_t *all = NULL;
  ts_gidx *gid = NULL;
  int32_t(*image)[3] = NULL;
  int64_t sums[2] = {0};
  int status = TSI_NEW(all, e->count);
  if (!status) status = TSI_NEW(gid, e->nsenders);
  if (!status) status = TSI_NEW(image, e->nsenders);
  status = tsi_ranks_agree(&s->ranks, status);
  if (!status) status = name_senders(s, stage, gid, image);
  for (int t = 0; t < s->ntiles && !status; t++) {
    const ts_tile *tile = &s->tiles[stage]->tile[t];
    if (tile->edges > 0)
      memcpy(all + tile->first_edge, s->active[stage * s->ntiles + t], (size_t)tile->edges);
  }
  if (!status) {
    sums[0] = (int64_t)ts_edges_hash(e, all, gid, (const int32_t(*)[3])image);
    for (int64_t i = 0; i < e->count; i++)
      sums[1] += all[i];
    status = ts_ranks_sum_i64(&s->ranks, 2, sums);
  }
  free(all);
  free(gid);
  free(image);
  *hash = (uint64_t)sums[0];
  *active = sums[1];
  return status;
}

const uint64_t *ts_step_keys(const ts_step *step)
{
  return step->key;
}

ts_step_ages ts_step_ages_get(const ts_step *step)
{
  return (ts_step_ages){step->age, step->partition_age};
}

void ts_step_ages_set(ts_step *step, ts_step_ages ages)
{
  step->age = ages.build;
  step->partition_age = ages.partition;
}

const double (*ts_step_build_positions(const ts_step *step))[3]
{
  return (const double(*)[3])step->x_build;
}

const int64_t *ts_step_news(const ts_step *step)
{
  return step->news;
}

ts_step_stats ts_step_statistics(const ts_step *step)
{
  return step->stats;
}
