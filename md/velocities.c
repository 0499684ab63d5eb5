/* SPDX-License-Identifier: MIT
 *
 * Drawing velocities in two phases; see velocities.h. */
#include "md/velocities.h"

#include "md/random.h"
#include "md/ts_units.h"

#include <math.h>

void ts_velocities_draw(uint64_t seed, ts_lidx n, const ts_gidx *gid, const double *mass,
                        double (*v)[3], ts_velocity_sums *sums)
{
  for (ts_lidx i = 0; i < n; i++) {
    const double width = 1.0 / sqrt(mass[i]);
    double xi[3];
    ts_random_normal3(seed, TS_PURPOSE_VELOCITIES, gid[i], 0, xi);
    for (int k = 0; k < 3; k++) {
      v[i][k] = width * xi[k];
      ts_sum_add(&sums->momentum[k], mass[i] * v[i][k]);
      ts_sum_add(&sums->kinetic, 0.5 * mass[i] * v[i][k] * v[i][k]);
    }
    ts_sum_add(&sums->mass, mass[i]);
    ts_sum_add(&sums->atoms, 1.0);
  }
}

void ts_velocity_sums_merge(ts_velocity_sums *sums, const ts_velocity_sums *other)
{
  ts_sum_merge(&sums->atoms, &other->atoms);
  ts_sum_merge(&sums->mass, &other->mass);
  for (int k = 0; k < 3; k++)
    ts_sum_merge(&sums->momentum[k], &other->momentum[k]);
  ts_sum_merge(&sums->kinetic, &other->kinetic);
}

void ts_velocities_settle(double temperature, const ts_velocity_sums *sums, ts_lidx n,
                          double (*v)[3])
{
  const double dof = 3.0 * ts_sum_value(&sums->atoms) - 3.0, mass = ts_sum_value(&sums->mass);
  double centre[3], kinetic = ts_sum_value(&sums->kinetic), factor = 0.0;
  for (int k = 0; k < 3; k++) {
    centre[k] = ts_sum_value(&sums->momentum[k]) / mass;
    kinetic -= 0.5 * mass * centre[k] * centre[k];
  }
  if (dof > 0.0) factor = sqrt(0.5 * dof * TS_BOLTZMANN * temperature / kinetic);
  for (ts_lidx i = 0; i < n; i++)
    for (int k = 0; k < 3; k++)
      v[i][k] = dof > 0.0 ? factor * (v[i][k] - centre[k]) : 0.0;
}
