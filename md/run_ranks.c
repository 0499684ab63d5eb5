/* SPDX-License-Identifier: MIT
 *
 * How evenly the ranks of a run share its work, for the table at the end and summary.json. */
#include <string.h>

#include "md/run_impl.h"
#include "runtime/error.h"

/* Seconds per step in which this rank's workers had nothing to do although its tasks were not done:
 * what they needed was under way, or a task of another worker. */
static double wait_seconds(const tsi_run *run, const ts_step_stats *s)
{
  double busy = 0;
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    busy += s->phase_seconds[p];
  const double waited = s->run_seconds - busy / ts_engine_workers(run->engine);
  return s->evaluations && waited > 0 ? waited / (double)s->evaluations : 0;
}

static void measure(const tsi_run *run, const ts_step_stats *s, double value[TSI_SPREADS])
{
  int64_t halo = 0, edges = 0;
  for (int k = 0; k < run->model->desc.nstages; k++) {
    halo = s->halo[k] > halo ? s->halo[k] : halo;
    edges += s->candidates[k];
  }
  const double all[TSI_SPREADS] = {run->system->n,
                                   (double)halo,
                                   (double)edges,
                                   s->peers,
                                   s->sent_messages,
                                   (double)s->sent_bytes,
                                   wait_seconds(run, s),
                                   (double)s->rebuilds[TS_REBUILD_DISPLACEMENT],
                                   (double)s->rebuilds[TS_REBUILD_PASSIVE],
                                   (double)s->bytes};
  memcpy(value, all, sizeof all);
}

int tsi_run_spreads(const tsi_run *run, const ts_step_stats *stats, ts_spread out[TSI_SPREADS])
{
  static const struct {
    const char *key, *name;
    double unit; /* on the screen */
  } about[TSI_SPREADS] = {{"atoms", "atoms", 1},
                          {"halo_atoms", "halo atoms", 1},
                          {"candidate_edges", "candidate edges", 1},
                          {"peers", "peers", 1},
                          {"messages_per_step", "messages a step", 1},
                          {"bytes_per_step", "KiB sent a step", 1024},
                          {"wait_s_per_step", "ms of waiting a step", 1e-3},
                          {"rebuilds_displacement", "rebuilds: own atoms", 1},
                          {"rebuilds_passive", "rebuilds: others' atoms", 1},
                          {"step_bytes", "MiB of a step", 1048576}};
  double value[TSI_SPREADS], sum[TSI_SPREADS], most[2 * TSI_SPREADS];
  measure(run, stats, value);
  for (int i = 0; i < TSI_SPREADS; i++) {
    most[i] = value[i];
    most[TSI_SPREADS + i] = -value[i];
  }
  TS_TRY(ts_collective_allreduce(run->collective, TS_CTYPE_DOUBLE, TS_COP_SUM, value, sum,
                                 TSI_SPREADS));
  TS_TRY(ts_collective_allreduce(run->collective, TS_CTYPE_DOUBLE, TS_COP_MAX, most, most,
                                 2 * TSI_SPREADS));
  for (int i = 0; i < TSI_SPREADS; i++)
    out[i] = (ts_spread){.key = about[i].key,
                         .name = about[i].name,
                         .unit = about[i].unit,
                         .min = -most[TSI_SPREADS + i],
                         .mean = sum[i] / run->ranks.size,
                         .max = most[i]};
  return 0;
}
