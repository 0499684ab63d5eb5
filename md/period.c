/* SPDX-License-Identifier: MIT
 *
 * When atoms are dealt out anew.  A fixed period counts steps.  An automatic one looks at what a
 * partition is for: neighbours along the curve are neighbours in space, until they have moved.  An
 * atom at distance d from its place widens the shell of other ranks' atoms around its shard by d;
 * once that is half the longest cutoff for some atom, the next rebuild, which has to come anyway,
 * is a partition.  Distances are taken once per epoch, at its build, and travel in the MAX that
 * each step needs in any case, so all ranks decide alike and no message is added. */
#include <math.h>

#include "md/step_impl.h"

static double longest_cutoff(const ts_model *model)
{
  double longest = 0;
  for (int k = 0; k < model->desc.nstages; k++)
    longest = fmax(longest, model->desc.stage[k].cutoff);
  return longest;
}

/* Where an atom would be at the build without periods. */
static void unwrapped(const ts_step *s, ts_lidx i, double out[3])
{
  const ts_system *sys = s->system;
  for (int k = 0; k < 3; k++) {
    out[k] = s->x_build[i][k];
    for (int m = 0; m < 3; m++)
      out[k] += sys->image[i][m] * sys->cell.h[m][k];
  }
}

void tsi_period_begin(ts_step *s)
{
  s->strayed = 0;
  for (ts_lidx i = 0; i < s->system->n && s->x_partition; i++)
    unwrapped(s, i, s->x_partition[i]);
}

void tsi_period_measure(ts_step *s)
{
  double most = 0;
  for (ts_lidx i = 0; i < s->system->n && s->x_partition; i++) {
    double at[3], d2 = 0;
    unwrapped(s, i, at);
    for (int k = 0; k < 3; k++)
      d2 += (at[k] - s->x_partition[i][k]) * (at[k] - s->x_partition[i][k]);
    most = fmax(most, d2);
  }
  s->strayed = sqrt(most);
}

bool tsi_period_is_over(const ts_step *s, bool rebuild, double strayed)
{
  if (s->params.period) return s->partition_age >= s->params.period;
  return rebuild && strayed > longest_cutoff(s->model) / 2;
}

const double (*ts_step_partition_positions(const ts_step *step))[3]
{
  return (const double(*)[3])step->x_partition;
}

void ts_step_partition_positions_set(ts_step *step, const double (*x)[3])
{
  for (ts_lidx i = 0; i < step->system->n && step->x_partition; i++)
    for (int k = 0; k < 3; k++)
      step->x_partition[i][k] = x[i][k];
  tsi_period_measure(step);
}
