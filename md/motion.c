/* SPDX-License-Identifier: MIT
 *
 * Glue of the integrator and the observables. */
#include "md/motion.h"

struct slice_args {
  ts_task_header header;
  const ts_slice *slice;
};

/* data: x, motion */
static void move_cpu(void *buffers[], void *cl_arg)
{
  const ts_slice *s = ((const struct slice_args *)cl_arg)->slice;
  const ts_system *sys = s->system;
  (void)buffers;
  ts_integrate_first(s->now->motion, s->now->number, s->n, sys->gid + s->first,
                     sys->mass + s->first, (const double(*)[3])(s->f + s->first), sys->v + s->first,
                     sys->x + s->first, (const double(*)[3])(s->x_build + s->first), s->report);
}

/* data: x, energy, motion */
static void kick_cpu(void *buffers[], void *cl_arg)
{
  const ts_slice *s = ((const struct slice_args *)cl_arg)->slice;
  const ts_system *sys = s->system;
  const ts_motion *motion = s->now->motion;
  const double(*f)[3] = (const double(*)[3])(s->f + s->first);
  const double *energy = (const double *)STARPU_VECTOR_GET_PTR(buffers[1]);
  if (motion) ts_integrate_second(motion, s->n, sys->mass + s->first, f, sys->v + s->first);
  ts_observe_slice(motion ? motion->timestep : 0, s->n, sys->gid + s->first, sys->mass + s->first,
                   (const double(*)[3])(sys->x + s->first), (const double(*)[3])(sys->v + s->first),
                   f, energy, (const double(*)[9])(s->virial + s->first),
                   motion ? &s->report->heat : NULL, s->partial);
}

static struct starpu_perfmodel move_model = {.type = STARPU_HISTORY_BASED, .symbol = "ts_move"};
static struct starpu_perfmodel kick_model = {.type = STARPU_HISTORY_BASED, .symbol = "ts_kick"};

static const struct starpu_codelet move_codelet = {.cpu_funcs = {move_cpu},
                                                   .nbuffers = 2,
                                                   .modes = {STARPU_RW, STARPU_RW},
                                                   .model = &move_model,
                                                   .name = "ts_move"};

static const struct starpu_codelet kick_codelet = {.cpu_funcs = {kick_cpu},
                                                   .nbuffers = 3,
                                                   .modes = {STARPU_R, STARPU_R, STARPU_RW},
                                                   .model = &kick_model,
                                                   .name = "ts_kick"};

static int submit(const ts_recorder *r, const struct starpu_codelet *codelet, ts_phase_id phase,
                  const ts_slice *slice, int naccess, const ts_access *access)
{
  const struct slice_args args = {.slice = slice};
  const ts_task_desc desc = {.codelet = codelet,
                             .access = access,
                             .naccess = naccess,
                             .args = &args,
                             .args_size = sizeof args,
                             .priority = r->priority,
                             .phase = (int)phase};
  return ts_program_add(r->program, &desc);
}

int ts_submit_move(const ts_recorder *r, const ts_slice *slice, starpu_data_handle_t x,
                   starpu_data_handle_t motion)
{
  const ts_access access[] = {{x, STARPU_RW}, {motion, STARPU_RW}};
  return submit(r, &move_codelet, TS_PHASE_MOVE, slice, 2, access);
}

int ts_submit_kick(const ts_recorder *r, const ts_slice *slice, starpu_data_handle_t x,
                   starpu_data_handle_t energy, starpu_data_handle_t motion)
{
  const ts_access access[] = {{x, STARPU_R}, {energy, STARPU_R}, {motion, STARPU_RW}};
  return submit(r, &kick_codelet, TS_PHASE_OBSERVE, slice, 3, access);
}
