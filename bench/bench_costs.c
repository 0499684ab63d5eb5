/* SPDX-License-Identifier: MIT
 *
 * mpirun -n 2 bench_costs FILE [ROUNDS]: what `tessera plan --costs FILE` wants to know, from the
 * example's salt water (632 atoms, or $TS_BENCH_STRUCTURE) with its 32-channel model in float, one
 * worker.  First each rank computes the system by itself, both at once, because cores share caches
 * and memory in a run too; then they share it, which tells what a halo costs: packing, and that an
 * atom's sum has two halves.  Times of tasks come from the phases of a step, medians of rounds;
 * what a worker is idle by itself is counted as the cost of a step.
 *
 * Messages are measured as a step sends them, as handles of a recorded program: one handle to and
 * fro for the latency, a large one for the bandwidth, many at once for the handling of one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/example_model.h"
#include "bench/median.h"
#include "md/report.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "runtime/json_write.h"
#include "runtime/memory.h"
#include "tests/case.h"
#include "tests/ranks_start.h"

enum { MOST = 101, NEVER = 1000000, HOPS = 32, MANY = 64, LARGE = 1 << 20 };

/* Medians over rounds. */
typedef struct timing {
  double phase[TS_PHASE_COUNT]; /* [s] busy in an evaluation */
  double idle, rebuild;         /* [s] */
} timing;

static ts_step *begin(const ts_model *model, const ts_ranks *among, int64_t rebuild,
                      ts_system **system)
{
  const char *given = getenv("TS_BENCH_STRUCTURE");
  const ts_ranks alone = ts_ranks_virtual(1);
  ts_step_params params = case_params(model, 0.5);
  ts_step *step;
  params.workers = 1;
  params.rebuild = rebuild;
  params.period = NEVER;
  params.ranks = among;
  params.transfers = ts_engine_transfers(engine);
  params.collective = collective;
  must(ts_xyz_read(among ? among : &alone,
                   given ? given : TS_SOURCE_TREE "/examples/salt-water/salt-water-216.xyz",
                   system));
  must(ts_step_create(&params, *system, &step));
  return step;
}

/* Evaluations at rest; then, with rebuilds on every step, what a rebuild takes. */
static timing measure(const ts_model *model, const ts_ranks *among, int rounds,
                      ts_step_stats *stats)
{
  static double phase[TS_PHASE_COUNT][MOST], idle[MOST], rebuild[MOST];
  const ts_motion motion = {.timestep = 1e-6};
  timing out;
  ts_system *system;
  ts_partial total;
  ts_step *step = begin(model, among, NEVER, &system);
  must(ts_step_evaluate(step, 0, &total));
  for (int i = 0; i < rounds; i++) {
    const ts_step_stats a = ts_step_statistics(step);
    must(ts_step_evaluate(step, i + 1, &total));
    *stats = ts_step_statistics(step);
    idle[i] = stats->run_seconds - a.run_seconds;
    for (int p = 0; p < TS_PHASE_COUNT; p++) {
      phase[p][i] = stats->phase_seconds[p] - a.phase_seconds[p];
      idle[i] -= phase[p][i];
    }
  }
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  step = begin(model, among, 1, &system);
  must(ts_step_evaluate(step, 0, &total));
  for (int i = 0; i < rounds; i++) {
    const ts_step_stats a = ts_step_statistics(step);
    must(ts_step_advance(step, &motion, i + 1, &total));
    rebuild[i] = ts_step_statistics(step).rebuild_seconds - a.rebuild_seconds;
  }
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  for (int p = 0; p < TS_PHASE_COUNT; p++)
    out.phase[p] = bench_median(phase[p], rounds);
  out.idle = bench_median(idle, rounds);
  out.rebuild = bench_median(rebuild, rounds);
  return out;
}

/* ---- messages ---- */

static void add_transfer(ts_program *program, starpu_data_handle_t handle, int tag, bool send)
{
  const ts_transfer t = {.handle = handle, .rank = 1 - ranks.first, .tag = tag, .send = send};
  must(ts_program_add_transfer(program, ts_engine_transfers(engine), &t));
}

/* Seconds of a program of transfers of `bytes` bytes: `hops` in turns, to and fro, of each of
 * `handles` handles. */
static double exchange(int handles, int hops, size_t bytes, int rounds)
{
  static starpu_data_handle_t handle[MANY];
  double seconds[MOST];
  char *data = NULL;
  ts_program *program;
  must(tsi_alloc((size_t)handles, bytes, (void **)&data));
  must(ts_program_create(&program));
  for (int h = 0; h < handles; h++)
    starpu_vector_data_register(&handle[h], STARPU_MAIN_RAM, (uintptr_t)(data + (size_t)h * bytes),
                                (uint32_t)bytes, 1);
  for (int hop = 0; hop < hops; hop++)
    for (int h = 0; h < handles; h++)
      add_transfer(program, handle[h], hop * MANY + h, hop % 2 == ranks.first);
  for (int i = 0; i < rounds; i++) {
    MPI_Barrier(ranks.comm);
    const double from = ts_clock();
    must(ts_program_run(program, i));
    seconds[i] = ts_clock() - from;
  }
  ts_program_destroy(&program);
  for (int h = 0; h < handles; h++)
    starpu_data_unregister_no_coherency(handle[h]);
  free(data);
  return bench_median(seconds, rounds);
}

/* ---- all of it ---- */

static double edge_uses(const ts_model *model, const ts_step_stats *stats)
{
  double uses = 0;
  for (int k = 0; k < model->desc.nstages; k++)
    uses += (double)stats->candidates[k] * model->desc.stage[k].nlayers;
  return uses;
}

/* Attention, both ways. */
static double attention(const timing *t)
{
  const double *p = t->phase;
  return p[TS_PHASE_ATTEND] + p[TS_PHASE_ATTEND_REMOTE] + p[TS_PHASE_ATTEND_BACK] +
         p[TS_PHASE_SEND_BACK];
}

static void save(const char *path, const ts_model *model, ts_lidx atoms, const timing *one,
                 const ts_step_stats *alone, double row, double message)
{
  const double layers = ts_model_layers(model), n = atoms;
  const double *p = one->phase;
  const double uses = edge_uses(model, alone);
  double edges = 0;
  ts_json_writer *w;
  for (int k = 0; k < model->desc.nstages; k++)
    edges += (double)alone->candidates[k];
  must(ts_json_writer_create(&w));
  ts_json_put_string(w, "note", "seconds of one worker, by bench/bench_costs");
  ts_json_put_number(w, "atom_s",
                     (p[TS_PHASE_PROJECT] + p[TS_PHASE_UPDATE] + p[TS_PHASE_UPDATE_BACK] +
                      p[TS_PHASE_PROJECT_BACK]) /
                         (n * layers));
  ts_json_put_number(w, "step_atom_s",
                     (p[TS_PHASE_MOVE] + p[TS_PHASE_HEAD] + p[TS_PHASE_OBSERVE]) / n);
  ts_json_put_number(w, "edge_forward_s", p[TS_PHASE_ATTEND] / uses);
  ts_json_put_number(w, "edge_back_s", (p[TS_PHASE_ATTEND_BACK] + p[TS_PHASE_SEND_BACK]) / uses);
  ts_json_put_number(
      w, "edge_geometry_s",
      (p[TS_PHASE_GEOMETRY] + p[TS_PHASE_EMBED] + p[TS_PHASE_EMBED_BACK] + p[TS_PHASE_FORCE]) /
          edges);
  ts_json_put_number(w, "row_s", row);
  ts_json_put_number(w, "message_s", message);
  ts_json_put_number(w, "step_s", one->idle);
  ts_json_put_number(w, "rebuild_atom_s", 0);
  ts_json_put_number(w, "rebuild_edge_s", one->rebuild / edges);
  must(ts_json_writer_save(w, path));
  ts_json_writer_destroy(&w);
}

/* Atoms that a rank sends and receives in a step, each as often as layers do. */
static double rows_of(const ts_model *model, const ts_step_stats *both)
{
  double rows = 0;
  for (int k = 0; k < model->desc.nstages; k++)
    rows += 4.0 * both->halo[k] * model->desc.stage[k].nlayers; /* out and in, forth and back */
  return rows;
}

int main(int argc, char **argv)
{
  const int rounds = argc > 2 ? atoi(argv[2]) : 31;
  if (argc < 2 || rounds < 1 || rounds > MOST) {
    fprintf(stderr, "usage: mpirun -n 2 bench_costs FILE [ROUNDS 1..%d]\n", MOST);
    return 1;
  }
  start();
  if (ranks.size != 2) must(tsi_fail(TS_ERR_ARG, "%d ranks; expected 2", ranks.size));
  ts_model *model = bench_example_model();
  ts_step_stats alone = {0}, both = {0};
  ts_system *system;
  ts_step *step = begin(model, NULL, NEVER, &system);
  const ts_lidx atoms = system->n;
  ts_step_destroy(&step);
  ts_system_destroy(&system);
  MPI_Barrier(ranks.comm);
  const timing one = measure(model, NULL, rounds, &alone);
  MPI_Barrier(ranks.comm);
  const timing two = measure(model, &ranks, rounds, &both);
  const double halves =
      attention(&two) - attention(&one) * edge_uses(model, &both) / edge_uses(model, &alone);
  const double row = (two.phase[TS_PHASE_PACK] + two.phase[TS_PHASE_RETURN] + fmax(halves, 0)) /
                     rows_of(model, &both);
  const double latency = exchange(1, HOPS, 1024, rounds) / HOPS;
  const double many = exchange(MANY, 2, 1024, rounds) / 2;
  const double large = exchange(1, 8, LARGE, rounds) / 8;
  const double message = many > latency ? (many - latency) / (2 * MANY) : 0;
  if (ranks.first == 0) {
    save(argv[1], model, atoms, &one, &alone, row, message);
    printf("--latency-us %.1f --bandwidth-GBps %.3f\n", 1e6 * latency,
           1e-9 * LARGE / (large > latency ? large - latency : large));
  }
  ts_model_destroy(&model);
  stop();
  return 0;
}
