/* SPDX-License-Identifier: MIT */
#include "tests/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/json.h"
#include "runtime/memory.h"

void must(int status)
{
  if (!status) return;
  fprintf(stderr, "failed: %s: %s\n", ts_status_text(status), ts_error_message());
  exit(1);
}

static const ts_json_node *need(const ts_json_node *object, const char *key)
{
  const ts_json_node *node = ts_json_member(object, key);
  if (!node) {
    fprintf(stderr, "failed: golden file has no \"%s\"\n", key);
    exit(1);
  }
  return node;
}

static void read_triples(const ts_json_node *rows, double (*out)[3])
{
  for (int i = 0; i < ts_json_size(rows); i++)
    for (int k = 0; k < 3; k++)
      out[i][k] = ts_json_number(ts_json_at(ts_json_at(rows, i), k));
}

static void read_system(golden_case *c, const ts_json_node *root)
{
  const ts_json_node *numbers = need(root, "numbers"), *cell = need(root, "cell");
  const ts_json_node *pbc = need(root, "pbc"), *charge = need(root, "charge");
  const int n = ts_json_size(numbers);
  double h[3][3];
  bool periodic[3];
  must(ts_system_create(n, n, &c->system));
  read_triples(need(root, "positions"), c->system->x);
  for (int i = 0; i < n; i++) {
    c->system->z[i] = (uint8_t)ts_json_number(ts_json_at(numbers, i));
    c->system->mass[i] = ts_element_mass(c->system->z[i]);
  }
  for (int k = 0; k < 3; k++)
    periodic[k] = ts_json_bool(ts_json_at(pbc, k));
  if (ts_json_node_kind(cell) == TS_JSON_ARRAY) read_triples(cell, h);
  must(ts_cell_init(&c->system->cell,
                    ts_json_node_kind(cell) == TS_JSON_ARRAY ? (const double(*)[3])h : NULL,
                    periodic));
  if (ts_json_node_kind(charge) != TS_JSON_NULL) {
    c->system->has_charge = true;
    c->system->charge = (int)ts_json_number(charge);
    c->system->multiplicity = (int)ts_json_number(need(root, "multiplicity"));
  }
}

const char *case_data(void)
{
  const char *data = getenv("TS_TEST_DATA");
  return data ? data : TS_SOURCE_TREE "/tests/data";
}

golden_case case_read(const char *name)
{
  golden_case c = {0};
  char path[1024];
  if (strstr(name, ".json"))
    snprintf(path, sizeof path, "%s", name);
  else
    snprintf(path, sizeof path, "%s/golden/%s.json", case_data(), name);
  ts_json *doc;
  must(ts_json_read(path, &doc));
  const ts_json_node *root = ts_json_root(doc);
  snprintf(c.name, sizeof c.name, "%s", ts_json_string(need(root, "name")));
  must(ts_model_desc_parse(need(root, "model"), path, &c.desc));
  must(ts_weights_seed(&c.desc, (uint64_t)ts_json_number(need(root, "seed")), &c.weights));
  read_system(&c, root);
  const ts_json_node *energies = need(root, "atom_energies");
  must(TSI_NEW(c.atom_energy, c.system->n));
  must(TSI_NEW(c.force, c.system->n));
  for (int i = 0; i < c.system->n; i++)
    c.atom_energy[i] = ts_json_number(ts_json_at(energies, i));
  read_triples(need(root, "forces"), c.force);
  c.energy = ts_json_number(need(root, "energy"));
  ts_json_destroy(&doc);
  return c;
}

void case_release(golden_case *c)
{
  ts_weights_destroy(&c->weights);
  ts_system_destroy(&c->system);
  free(c->atom_energy);
  free(c->force);
}

static ts_model *make_model(const golden_case *c, bool is_double, const char *matrix,
                            const char *isa, uint64_t radial_most)
{
  int species[TS_MAX_ELEMENT], count = 0;
  bool seen[TS_MAX_ELEMENT] = {false};
  for (int i = 0; i < c->system->n; i++)
    seen[c->system->z[i]] = true;
  for (int z = 0; z < TS_MAX_ELEMENT; z++)
    if (seen[z]) species[count++] = z;
  const ts_model_params params = {.is_double = is_double,
                                  .matrix = matrix,
                                  .isa = isa,
                                  .nspecies = count,
                                  .species = species,
                                  .radial_most = radial_most,
                                  .has_charge = c->system->has_charge,
                                  .charge = c->system->charge,
                                  .multiplicity = c->system->multiplicity};
  ts_model *model;
  must(ts_model_create(&c->desc, c->weights, &params, &model));
  return model;
}

ts_model *case_model(const golden_case *c, bool is_double)
{
  return make_model(c, is_double, "auto", "auto", 0);
}

ts_model *case_model_isa(const golden_case *c, bool is_double, const char *isa)
{
  return make_model(c, is_double, "auto", isa, 0);
}

ts_model *case_model_on(const golden_case *c, bool is_double, const char *matrix, const char *isa)
{
  return make_model(c, is_double, matrix, isa, 0);
}

ts_model *case_model_split(const golden_case *c, bool is_double, const char *isa)
{
  return make_model(c, is_double, "auto", isa, 1);
}

ts_step_params case_params(const ts_model *model, double skin)
{
  ts_step_params params;
  ts_step_params_init(&params);
  params.model = model;
  params.skin = skin;
  params.workers = 2;
  return params;
}

void case_results(const ts_step *step, const ts_system *system, double *energy, double (*force)[3])
{
  for (ts_lidx i = 0; i < system->n; i++) {
    if (energy) energy[system->gid[i]] = ts_step_energy(step, i);
    if (force) memcpy(force[system->gid[i]], ts_step_forces(step)[i], sizeof force[0]);
  }
}

double case_energy(const ts_step *step, const ts_system *system)
{
  double *energy, sum = 0;
  must(TSI_NEW(energy, system->n));
  case_results(step, system, energy, NULL);
  for (ts_lidx i = 0; i < system->n; i++)
    sum += energy[i];
  free(energy);
  return sum;
}

ts_system *case_system(const double h[3][3], ts_lidx n, const uint8_t *z, const double (*x)[3])
{
  ts_system *system;
  must(ts_system_create(n, n, &system));
  must(ts_cell_init(&system->cell, h, NULL));
  for (ts_lidx i = 0; i < n; i++) {
    memcpy(system->x[i], x[i], sizeof x[i]);
    system->z[i] = z[i];
    system->mass[i] = ts_element_mass(z[i]);
  }
  return system;
}

ts_system *case_copy(const ts_system *system)
{
  ts_system *copy;
  const size_t n = (size_t)system->n;
  must(ts_system_create(system->natoms, system->n, &copy));
  memcpy(copy->x, system->x, n * sizeof *copy->x);
  memcpy(copy->image, system->image, n * sizeof *copy->image);
  memcpy(copy->v, system->v, n * sizeof *copy->v);
  memcpy(copy->mass, system->mass, n * sizeof *copy->mass);
  memcpy(copy->z, system->z, n * sizeof *copy->z);
  memcpy(copy->gid, system->gid, n * sizeof *copy->gid);
  copy->cell = system->cell;
  copy->has_velocities = system->has_velocities;
  copy->has_charge = system->has_charge;
  copy->charge = system->charge;
  copy->multiplicity = system->multiplicity;
  return copy;
}

case_output case_evaluate(const ts_step_params *params, const ts_system *system)
{
  case_output out = {.n = system->n};
  ts_system *copy = case_copy(system);
  ts_step *step;
  ts_partial total;
  must(TSI_NEW(out.energy, out.n));
  must(TSI_NEW(out.force, out.n));
  must(ts_step_create(params, copy, &step));
  must(ts_step_evaluate(step, 0, &total));
  case_results(step, copy, out.energy, out.force);
  out.total = case_energy(step, copy);
  for (ts_lidx i = 0; i < out.n; i++)
    for (int k = 0; k < 9; k++)
      out.virial[k] += ts_step_virials(step)[i][k];
  ts_step_destroy(&step);
  ts_system_destroy(&copy);
  return out;
}

void case_output_release(case_output *out)
{
  free(out->energy);
  free(out->force);
}

double case_difference(size_t count, const double *a, const double *b)
{
  double worst = 0;
  for (size_t i = 0; i < count; i++)
    if (!(fabs(a[i] - b[i]) <= worst)) worst = isnan(a[i] - b[i]) ? INFINITY : fabs(a[i] - b[i]);
  return worst;
}

double case_largest(size_t count, const double *a)
{
  double worst = 0;
  for (size_t i = 0; i < count; i++)
    if (!(fabs(a[i]) <= worst)) worst = isnan(a[i]) ? INFINITY : fabs(a[i]);
  return worst;
}

double case_random(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1.0;
}

ts_engine *case_engine(int workers, const char *scheduler)
{
  ts_topology topology;
  ts_engine_params params;
  ts_engine *engine;
  must(ts_topology_read(&topology));
  ts_engine_params_init(&params);
  params.workers = workers;
  params.scheduler = scheduler;
  must(ts_engine_create(&topology, &params, &engine));
  return engine;
}
