/* SPDX-License-Identifier: MIT
 *
 * Job to model and step parameters, and what to say about them. */
#include "md/setup.h"

#include "comm/sparse.h"
#include "md/ts_units.h"
#include "models/tensors.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 4096 };

/* Append to a line. */
static void __attribute__((format(printf, 2, 3))) add(char line[LINE], const char *format, ...)
{
  const size_t used = strlen(line);
  va_list args;
  va_start(args, format);
  vsnprintf(line + used, LINE - used, format, args);
  va_end(args);
}

/* The charge of the job, else of the structure; within what models embed. */
static int choose_charge(const ts_job *job, const ts_system *system, ts_model_params *params)
{
  const bool by_job = job->charge != TS_JOB_UNSET;
  params->has_charge = by_job || system->has_charge;
  params->charge = by_job ? (int)job->charge : system->charge;
  params->multiplicity = by_job ? (int)job->multiplicity : system->multiplicity;
  if (!params->has_charge || by_job) return 0;
  if (params->charge < -10 || params->charge > 10 || params->multiplicity < 0 ||
      params->multiplicity > 20)
    return tsi_fail(TS_ERR_INPUT,
                    "%s: charge %d and multiplicity %d; expected -10 to 10 and 0 to 20",
                    job->structure, params->charge, params->multiplicity);
  return 0;
}

/* A model extrapolates blindly to an element that it was not taught, where it says which it was. */
static int check_elements(const ts_job *job, const ts_model_desc *desc, int nspecies,
                          const int *species)
{
  char known[LINE] = "";
  if (!desc->lists_elements) return 0;
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (desc->element[z]) add(known, " %s", ts_element_symbol(z));
  for (int i = 0; i < nspecies; ++i)
    if (!desc->element[species[i]])
      return tsi_fail(TS_ERR_INPUT, "%s: %s has %s, which the model %s was not taught; expected%s",
                      job->path, job->structure, ts_element_symbol(species[i]), job->model, known);
  return 0;
}

int tsi_setup_contents(const ts_ranks *ranks, const ts_system *system, tsi_contents *out)
{
  *out = (tsi_contents){0};
  ts_system_count(system, out->count);
  for (ts_lidx i = 0; i < system->n; ++i)
    ts_sum_add(&out->mass, system->mass[i]);
  return ts_ranks_sum_i64(ranks, sizeof *out / sizeof(int64_t), (int64_t *)out);
}

/* Of a small machine a quarter: loading holds tables twice. */
static uint64_t radial_most(uint64_t memory)
{
  return memory && memory / 4 < TS_RADIAL_MOST ? memory / 4 : TS_RADIAL_MOST;
}

int tsi_setup_model(const ts_job *job, const ts_system *system, const tsi_contents *contents,
                    ts_model **out)
{
  char path[TS_JOB_TEXT];
  int species[TS_MAX_ELEMENT];
  ts_model_desc desc;
  ts_weights *weights;
  ts_topology topology;
  TS_TRY(ts_topology_read(&topology));
  ts_model_params params = {.is_double = job->execution.precision == TS_PRECISION_DOUBLE,
                            .matrix = job->execution.matrix,
                            .isa = "auto",
                            .species = species,
                            .radial_tolerance = job->execution.radial_tolerance,
                            .radial_most = radial_most(topology.memory_bytes)};
  *out = NULL;
  TS_TRY(choose_charge(job, system, &params));
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (contents->count[z]) species[params.nspecies++] = z;
  TS_TRY(ts_job_input(job, job->model, path));
  TS_TRY(ts_model_load(path, params.has_charge, &desc, &weights));
  int status = check_elements(job, &desc, params.nspecies, species);
  if (!status) status = ts_model_create(&desc, weights, &params, out);
  ts_weights_destroy(&weights);
  return status;
}

void tsi_setup_step(const ts_job *job, const ts_model *model, int workers, ts_step_params *out)
{
  ts_step_params_init(out);
  out->model = model;
  out->workers = workers;
  out->skin = job->neighbors.skin;
  out->rebuild = job->neighbors.rebuild;
  out->period = job->partition.period;
  out->partition.curve = job->partition.curve;
  out->partition.normalization = job->partition.normalization;
  out->backend = job->neighbors.backend;
  out->chunk = (int)job->neighbors.chunk;
  out->tile_atoms = (int)job->execution.tile_atoms;
  out->recompute = job->execution.recompute;
  out->replay = job->execution.replay;
  out->reproducible = job->execution.reproducible;
  out->overlap = job->execution.overlap;
  out->level1.scheme = job->neighbors.level1;
  out->level1.route = job->neighbors.routing.mode;
  out->level1.seed = (uint64_t)job->neighbors.routing.seed;
  out->partition.root_sort = job->partition.sort == TS_SORT_ROOT;
  out->partition.slack = job->partition.slack;
  out->weighted = job->partition.cut == TS_CUT_EDGES;
}

/* ---- lines of the log */

static void log_cell(const ts_cell *cell)
{
  static const char axis[] = "abc";
  char line[LINE] = "cell       ";
  if (!cell->periodic[0] && !cell->periodic[1] && !cell->periodic[2]) {
    ts_log(TS_LOG_INFO, "%sisolated", line);
    return;
  }
  for (int d = 0; d < 3; ++d)
    add(line, "%s%c (%g %g %g)%s", d ? ", " : "", axis[d], cell->h[d][0], cell->h[d][1],
        cell->h[d][2], cell->periodic[d] ? "" : " open");
  ts_log(TS_LOG_INFO, "%s Å", line);
}

void tsi_setup_log_system(const char *path, const ts_system *system, const tsi_contents *contents)
{
  const int64_t *count = contents->count;
  const double mass = ts_sum_value(&contents->mass);
  char line[LINE] = "";
  add(line, "structure  %s: %lld atoms:", path, (long long)system->natoms);
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (count[z])
      add(line, " %s %lld (%g u),", ts_element_symbol(z), (long long)count[z],
          ts_element_mass(z) / TS_ATOMIC_MASS);
  add(line, " %.6g u in all%s", mass / TS_ATOMIC_MASS,
      system->has_velocities ? ", with velocities" : "");
  ts_log(TS_LOG_INFO, "%s", line);
  log_cell(&system->cell);
}

const char *tsi_setup_kernels(const char *isa)
{
  if (!strcmp(isa, "v4")) return "v4 (x86-64-v4: AVX-512)";
  if (!strcmp(isa, "v3")) return "v3 (x86-64-v3: AVX2)";
  return "base (any CPU)";
}

void tsi_setup_log_model(const ts_job *job, const ts_model *model)
{
  const ts_model_desc *desc = &model->desc;
  char line[LINE] = "";
  add(line, "model      %s: %d channels, %d heads; layers:", job->model, desc->channels,
      desc->heads);
  for (int s = 0; s < desc->nstages; ++s)
    add(line, "%s %d to %g Å", s ? "," : "", desc->stage[s].nlayers, desc->stage[s].cutoff);
  ts_log(TS_LOG_INFO, "%s", line);
  if (desc->note[0]) ts_log(TS_LOG_INFO, "note       %s", desc->note);
  ts_log(TS_LOG_INFO,
         "precision  %s; relative errors: %.1e of matrix products (mode %s), %.1e of the radial "
         "tables, %.1e of their slopes; kernels %s",
         model->is_double ? "double" : "float", ts_matrix_error(model->matrix, model->is_double),
         model->matrix->name, model->radial_error, model->radial_slope_error,
         tsi_setup_kernels(model->kernels->isa));
  if (model->embed.split)
    ts_log(TS_LOG_INFO,
           "radial     networks evaluated on every edge: tables of %d pairs of elements would take "
           "more than %.2g GiB",
           model->nspecies * model->nspecies, (double)model->radial_most / 0x1p30);
}

void tsi_setup_log_edges(const ts_model *model, double skin, const double *edges)
{
  for (int s = 0; s < model->desc.nstages; ++s)
    ts_log(TS_LOG_INFO, "edges      %.1f per atom to %g + %g Å", edges[s],
           model->desc.stage[s].cutoff, skin);
}

void tsi_setup_log_memory(const ts_model *model, size_t step_bytes)
{
  char radial[64] = "networks";
  if (!model->embed.split)
    snprintf(radial, sizeof radial, "tables of %d pairs of elements",
             model->nspecies * model->nspecies);
  ts_log(TS_LOG_INFO,
         "memory     %.1f MiB for the model (%.1f MiB of it radial %s), %.1f MiB for a step",
         (double)model->bytes / 0x1p20, (double)model->radial_bytes / 0x1p20, radial,
         (double)step_bytes / 0x1p20);
}
