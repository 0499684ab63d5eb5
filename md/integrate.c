/* SPDX-License-Identifier: MIT
 *
 * Velocity Verlet and BAOAB on a slice; see integrate.h.  Each atom moves on its own, so the result
 * does not depend on how atoms are sliced. */
#include "md/integrate.h"

#include "md/random.h"
#include "md/ts_units.h"

#include <math.h>

static void kick(double half, double mass, const double f[3], double v[3])
{
  for (int k = 0; k < 3; k++)
    v[k] += half * f[k] / mass;
}

static void drift(double time, const double v[3], double x[3])
{
  for (int k = 0; k < 3; k++)
    x[k] += time * v[k];
}

/* Friction and noise over one step; returns the kinetic energy given to the atom [eV]. */
static double thermostat(double keep, double width, double mass, const double xi[3], double v[3])
{
  double before = 0.0, after = 0.0;
  for (int k = 0; k < 3; k++) {
    before += v[k] * v[k];
    v[k] = keep * v[k] + width * xi[k];
    after += v[k] * v[k];
  }
  return 0.5 * mass * (after - before);
}

static bool finite3(const double a[3])
{
  return isfinite(a[0]) && isfinite(a[1]) && isfinite(a[2]);
}

static double distance2(const double a[3], const double b[3])
{
  const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
  const double sum = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  return isfinite(sum) ? sum : INFINITY;
}

void ts_integrate_first(const ts_motion *motion, int64_t step, ts_lidx n, const ts_gidx *gid,
                        const double *mass, const double (*f)[3], double (*v)[3], double (*x)[3],
                        const double (*x_build)[3], ts_motion_report *report)
{
  const double half = 0.5 * motion->timestep, decay = motion->friction * motion->timestep;
  const double keep = exp(-decay), noise = -expm1(-2.0 * decay); /* 1 - keep^2 */
  const double energy = noise * TS_BOLTZMANN * motion->temperature;
  *report = (ts_motion_report){.bad = -1};
  for (ts_lidx i = 0; i < n; i++) {
    kick(half, mass[i], f[i], v[i]);
    if (motion->langevin) {
      double xi[3];
      drift(half, v[i], x[i]);
      ts_random_normal3(motion->seed, TS_PURPOSE_LANGEVIN, gid[i], step, xi);
      ts_sum_add(&report->heat, thermostat(keep, sqrt(energy / mass[i]), mass[i], xi, v[i]));
      drift(half, v[i], x[i]);
    } else {
      drift(motion->timestep, v[i], x[i]);
    }
    const double moved2 = distance2(x[i], x_build[i]);
    if (moved2 > report->displacement2) report->displacement2 = moved2;
    if (report->bad < 0 && !(finite3(x[i]) && finite3(v[i]))) report->bad = i;
  }
}

void ts_integrate_second(const ts_motion *motion, ts_lidx n, const double *mass,
                         const double (*f)[3], double (*v)[3])
{
  for (ts_lidx i = 0; i < n; i++)
    kick(0.5 * motion->timestep, mass[i], f[i], v[i]);
}
