/* SPDX-License-Identifier: MIT
 *
 * From slices to the numbers of a step; see observe.h. */
#include "md/observe.h"

#include "md/ts_units.h"
#include "runtime/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Row and column of each of the six components, order xx yy zz yz xz xy. */
static const int component[6][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};

void ts_partial_clear(ts_partial *partial)
{
  memset(partial, 0, sizeof *partial);
  partial->force2 = -1.0;
  partial->force_gid = -1;
  partial->bad_gid = -1;
}

static double norm2(const double a[3])
{
  return a[0] * a[0] + a[1] * a[1] + a[2] * a[2];
}

static void add_outer(ts_sum sum[6], double factor, const double a[3])
{
  for (int c = 0; c < 6; c++)
    ts_sum_add(&sum[c], factor * a[component[c][0]] * a[component[c][1]]);
}

static void add_virial(ts_sum sum[6], const double virial[9])
{
  for (int c = 0; c < 6; c++) {
    const int row = component[c][0], column = component[c][1];
    ts_sum_add(&sum[c], 0.5 * (virial[3 * row + column] + virial[3 * column + row]));
  }
}

/* Keep the largest force; of equal ones the lowest id, so that merging order does not matter. */
static void note_force(ts_partial *p, double force2, ts_gidx gid, const double x[3])
{
  if (force2 < p->force2 || (force2 == p->force2 && gid > p->force_gid)) return;
  p->force2 = force2;
  p->force_gid = gid;
  memcpy(p->force_x, x, sizeof p->force_x);
}

static void note_bad(ts_partial *p, ts_gidx gid, const double x[3], const double v[3],
                     const double f[3])
{
  if (p->bad_gid >= 0 && p->bad_gid < gid) return;
  p->bad_gid = gid;
  memcpy(p->bad[0], x, sizeof p->bad[0]);
  memcpy(p->bad[1], v, sizeof p->bad[1]);
  memcpy(p->bad[2], f, sizeof p->bad[2]);
}

void ts_observe_slice(double timestep, ts_lidx n, const ts_gidx *gid, const double *mass,
                      const double (*x)[3], const double (*v)[3], const double (*f)[3],
                      const double *energy, const double (*virial)[9], const ts_sum *heat,
                      ts_partial *out)
{
  const double quarter = 0.25 * timestep * timestep;
  ts_partial_clear(out);
  if (heat) out->heat = *heat;
  for (ts_lidx i = 0; i < n; i++) {
    const double force2 = norm2(f[i]);
    if (energy) ts_sum_add(&out->energy, energy[i]);
    if (virial) add_virial(out->virial, virial[i]);
    ts_sum_add(&out->mass, mass[i]);
    for (int k = 0; k < 3; k++)
      ts_sum_add(&out->momentum[k], mass[i] * v[i][k]);
    add_outer(out->kinetic, mass[i], v[i]);
    add_outer(out->kick, quarter / mass[i], f[i]);
    if (isfinite(norm2(x[i]) + norm2(v[i]) + force2)) {
      note_force(out, force2, gid[i], x[i]);
    } else {
      out->nbad++;
      note_bad(out, gid[i], x[i], v[i], f[i]);
    }
  }
}

void ts_partial_merge(ts_partial *partial, const ts_partial *other)
{
  ts_sum_merge(&partial->energy, &other->energy);
  ts_sum_merge(&partial->heat, &other->heat);
  ts_sum_merge(&partial->mass, &other->mass);
  for (int k = 0; k < 3; k++)
    ts_sum_merge(&partial->momentum[k], &other->momentum[k]);
  for (int c = 0; c < 6; c++) {
    ts_sum_merge(&partial->kinetic[c], &other->kinetic[c]);
    ts_sum_merge(&partial->kick[c], &other->kick[c]);
    ts_sum_merge(&partial->virial[c], &other->virial[c]);
  }
  partial->nbad += other->nbad;
  if (other->force_gid >= 0) note_force(partial, other->force2, other->force_gid, other->force_x);
  if (other->bad_gid >= 0)
    note_bad(partial, other->bad_gid, other->bad[0], other->bad[1], other->bad[2]);
}

/* The sums of a partial, one after the other. */
static void list_sums(ts_partial *p, ts_sum *sum[24])
{
  int n = 0;
  sum[n++] = &p->energy;
  sum[n++] = &p->heat;
  sum[n++] = &p->mass;
  for (int k = 0; k < 3; k++)
    sum[n++] = &p->momentum[k];
  for (int c = 0; c < 6; c++) {
    sum[n++] = &p->kinetic[c];
    sum[n++] = &p->kick[c];
    sum[n++] = &p->virial[c];
  }
}

void ts_partial_pack(const ts_partial *partial, int64_t word[TS_PARTIAL_WORDS])
{
  ts_partial copy = *partial;
  ts_sum *sum[24];
  list_sums(&copy, sum);
  for (int i = 0; i < 24; i++)
    memcpy(word + 3 * i, sum[i], sizeof *sum[i]);
  word[TS_PARTIAL_WORDS - 1] = partial->nbad;
}

void ts_partial_unpack(const int64_t word[TS_PARTIAL_WORDS], ts_partial *partial)
{
  ts_sum *sum[24];
  list_sums(partial, sum);
  for (int i = 0; i < 24; i++)
    memcpy(sum[i], word + 3 * i, sizeof *sum[i]);
  partial->nbad = word[TS_PARTIAL_WORDS - 1];
}

/* An id belongs to one rank: all others add zero bits to where its atom is. */
int ts_partial_extremes(ts_partial *p, ts_collective *collective)
{
  double force2 = p->force2;
  TS_TRY(ts_collective_allreduce(collective, TS_CTYPE_DOUBLE, TS_COP_MAX, &force2, &force2, 1));
  int64_t gid[2] = {p->force_gid >= 0 && p->force2 == force2 ? p->force_gid : INT64_MAX,
                    p->bad_gid >= 0 ? p->bad_gid : INT64_MAX};
  int64_t where[12] = {0};
  TS_TRY(ts_collective_allreduce(collective, TS_CTYPE_INT64, TS_COP_MIN, gid, gid, 2));
  if (p->force_gid == gid[0]) memcpy(where, p->force_x, sizeof p->force_x);
  if (p->bad_gid == gid[1]) memcpy(where + 3, p->bad, sizeof p->bad);
  TS_TRY(ts_collective_allreduce(collective, TS_CTYPE_INT64, TS_COP_SUM, where, where, 12));
  p->force2 = force2;
  p->force_gid = gid[0] < INT64_MAX ? gid[0] : -1;
  memcpy(p->force_x, where, sizeof p->force_x);
  p->bad_gid = gid[1] < INT64_MAX ? gid[1] : -1;
  memcpy(p->bad, where + 3, sizeof p->bad);
  return 0;
}

int64_t ts_observe_dof(ts_gidx natoms, bool langevin)
{
  if (langevin) return 3 * natoms;
  return natoms > 1 ? 3 * natoms - 3 : 0;
}

/* The two kinetic tensors [eV], without the motion of the centre of mass where it is not heat. */
static void kinetic_tensors(const ts_observe_setup *setup, const ts_partial *total, double on[6],
                            double half[6])
{
  const double mass = ts_sum_value(&total->mass);
  for (int c = 0; c < 6; c++) {
    const double p = ts_sum_value(&total->momentum[component[c][0]]);
    const double q = ts_sum_value(&total->momentum[component[c][1]]);
    on[c] = ts_sum_value(&total->kinetic[c]);
    if (setup->momentum_conserved && mass > 0.0) on[c] -= p * q / mass;
    half[c] = on[c] + ts_sum_value(&total->kick[c]);
  }
}

static double temperature_of(int64_t dof, const double kinetic[6])
{
  if (dof <= 0) return 0.0;
  return (kinetic[0] + kinetic[1] + kinetic[2]) / ((double)dof * TS_BOLTZMANN);
}

static void fill_stress(double volume, const ts_partial *total, const double kinetic[6],
                        ts_observables *out)
{
  for (int c = 0; c < 6; c++) {
    const double virial = ts_sum_value(&total->virial[c]);
    out->virial_stress[c] = volume > 0.0 ? virial / volume : NAN;
    out->stress[c] = volume > 0.0 ? (virial - kinetic[c]) / volume : NAN;
  }
  out->pressure = -(out->stress[0] + out->stress[1] + out->stress[2]) / 3.0 * TS_BAR_PER_EV_A3;
}

/* Running mean and sum of squared deviations (Welford). */
static void running_mean(double count, double value, double *mean, double *m2)
{
  const double before = value - *mean;
  *mean += before / count;
  *m2 += before * (value - *mean);
}

/* Move the running statistics on by one observation; returns the slope in ueV/atom/ps. */
static double observe_drift(const ts_observe_setup *setup, const ts_observables *now,
                            ts_observer *o)
{
  const double energy = setup->natoms > 0 ? now->conserved / (double)setup->natoms : 0.0;
  o->count += 1.0;
  if (o->count == 1.0) o->origin = energy;
  const double time_before = now->time - o->mean_time;
  o->mean_time += time_before / o->count;
  o->mean_energy += (energy - o->origin - o->mean_energy) / o->count;
  o->time_time += time_before * (now->time - o->mean_time);
  o->time_energy += time_before * (energy - o->origin - o->mean_energy);
  running_mean(o->count, now->temperature, &o->mean_temperature, &o->temperature_m2);
  if (setup->volume > 0.0)
    running_mean(o->count, now->pressure, &o->mean_pressure, &o->pressure_m2);
  return o->time_time > 0.0 ? o->time_energy / o->time_time / TS_MICRO : 0.0;
}

static double temperature_limit(double target)
{
  return fmin(1e6, fmax(1e4, 100.0 * target));
}

static int check(const ts_observe_setup *setup, const ts_partial *total, const ts_observables *now)
{
  const double limit = setup->target > 0.0 ? temperature_limit(setup->target) : 1e6;
  const double hottest = fmax(now->temperature, now->temperature_on_step);
  const long long step = now->step;
  if (total->nbad > 0) {
    const double *x = total->bad[0], *v = total->bad[1], *f = total->bad[2];
    char largest[96] = "no force is finite";
    if (total->force_gid >= 0)
      snprintf(largest, sizeof largest, "the largest finite force is %g eV/Å, on atom %lld",
               now->max_force, (long long)total->force_gid + 1);
    return tsi_fail(TS_ERR_SIMULATION,
                    "step %lld: atom %lld has a value that is not finite: position (%g, %g, %g) Å, "
                    "velocity (%g, %g, %g) Å/fs, force (%g, %g, %g) eV/Å; %s",
                    step, (long long)total->bad_gid + 1, x[0], x[1], x[2], v[0], v[1], v[2], f[0],
                    f[1], f[2], largest);
  }
  if (isfinite(now->etot) && isfinite(hottest) && hottest <= limit) return 0;
  const double *x = total->force_x;
  return tsi_fail(
      TS_ERR_SIMULATION,
      "step %lld: the run has blown up: temperature %g K (limit %g K), potential energy "
      "%g eV; the largest force is %g eV/Å, on atom %lld at (%g, %g, %g) Å; are atoms "
      "too close, or is the time step (%g fs) too long?",
      step, hottest, limit, now->epot, now->max_force, (long long)total->force_gid + 1, x[0], x[1],
      x[2], setup->timestep);
}

int ts_observe(const ts_observe_setup *setup, int64_t step, const ts_partial *total,
               ts_observer *observer, ts_observables *out)
{
  double on[6], half[6];
  kinetic_tensors(setup, total, on, half);
  *out = (ts_observables){.step = step, .time = (double)step * setup->timestep / TS_FS_PER_PS};
  out->epot = ts_sum_value(&total->energy);
  out->ekin = 0.5 * (ts_sum_value(&total->kinetic[0]) + ts_sum_value(&total->kinetic[1]) +
                     ts_sum_value(&total->kinetic[2]));
  out->etot = out->epot + out->ekin;
  observer->heat += ts_sum_value(&total->heat);
  out->conserved = out->etot - observer->heat;
  out->temperature = temperature_of(setup->dof, half);
  out->temperature_on_step = temperature_of(setup->dof, on);
  fill_stress(setup->volume, total, half, out);
  for (int k = 0; k < 3; k++)
    out->momentum[k] = ts_sum_value(&total->momentum[k]);
  out->max_force = total->force2 > 0.0 ? sqrt(total->force2) : 0.0;
  out->max_force_gid = total->force_gid;
  out->drift = observe_drift(setup, out, observer);
  return check(setup, total, out);
}
