/* SPDX-License-Identifier: MIT
 *
 * Record and replay.
 *
 * StarPU offers three ways to run the same tasks again.  Inserting them anew builds every task and
 * finds every dependency in every step.  Resubmitting a task under implicit data dependencies is
 * not allowed: the dependencies of all earlier submissions stay with it and pile up.  What StarPU
 * supports, and what is used here, is resubmission under dependencies that were declared before the
 * first submission: they are found once, from the access modes, by the rule that StarPU itself
 * applies (a reader waits for the last writer, a writer for the readers since, or for the last
 * writer), and the handles are kept on the task for the transfers between memory nodes.  On two
 * workers an empty task of a typical step then costs about 2 us instead of 3.5 (bench_program).
 * (Tasks that resubmit themselves, StarPU's `regenerate`, cost the same, and never count as
 * finished for anyone who waits.)
 *
 * A failure with index i turns tasks after i into no-ops and lets those before it run: they only
 * depend on tasks before i, so what they compute, and whether they fail, does not depend on timing.
 * The failure that is reported is therefore the same in every run. */
#include "runtime/program.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/memory.h"
#include "runtime/number.h"

typedef struct action {
  int phase;
  starpu_cpu_func_t cpu; /* what the codelet runs; NULL: nothing */
  ts_transfer transfer;
  ts_message *message; /* of the transfer; owned; NULL: a task */
  bool barrier;
  struct starpu_task *task; /* its cl_arg is ours, its dyn_ arrays are StarPU's to free */
  double busy;              /* seconds of the last run */
} action;

/* Stands for a transfer among the tasks: it runs nowhere, posts the transfer when it becomes ready
 * and ends when that has ended.  It holds no handle, because the transfer itself takes it. */
static struct starpu_codelet transfer_codelet = {.where = STARPU_NOWHERE, .name = "ts_transfer"};
static struct starpu_codelet barrier_codelet = {.where = STARPU_NOWHERE, .name = "ts_barrier"};

/* A codelet as StarPU sees it: the user's, with our wrapper as its function. */
typedef struct wrapped {
  const struct starpu_codelet *original;
  struct starpu_codelet codelet;
  struct wrapped *next;
} wrapped;

struct ts_program {
  action *actions;
  int count, capacity;
  wrapped *codelets;
  bool sealed; /* dependencies are declared: nothing can be added */
  bool broken; /* StarPU refused a task in the middle of a run */
  long iteration;
  double seconds;
  int64_t sent_bytes;
  int sent_messages;
  double phase_seconds[TS_PROGRAM_PHASES];
  bool rests;              /* the workers did when the run began */
  atomic_int left;         /* tasks and transfers that have not ended */
  atomic_int first_failed; /* index; INT_MAX: none */
  pthread_mutex_t lock;    /* of the two below */
  int status;
  char message[2048];
};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- on a worker ---- */

/* An action is about to end.  After the last one the workers sleep, so that the thread that waits
 * for them has its core at once. */
static void count_end(ts_program *program)
{
  const int left = atomic_fetch_sub_explicit(&program->left, 1, memory_order_relaxed) - 1;
  if (left == 0 && program->rests) ts_engine_rest(true);
}

static void run_cpu(void *buffers[], void *cl_arg)
{
  const ts_task_header *header = cl_arg;
  ts_program *program = header->program;
  action *a = &program->actions[header->index];
  if (header->index <= atomic_load_explicit(&program->first_failed, memory_order_relaxed)) {
    tsi_transfers_task_begins();
    const double start = now();
    a->cpu(buffers, cl_arg);
    a->busy = now() - start;
    tsi_transfers_task_ends();
  }
  count_end(program);
}

static void end_transfer(void *task_)
{
  struct starpu_task *task = task_;
  const ts_task_header *header = task->cl_arg;
  count_end(header->program);
  starpu_task_end_dep_release(task);
}

static void post_transfer(void *task_)
{
  struct starpu_task *task = task_;
  const ts_task_header *header = task->cl_arg;
  ts_message_post(header->program->actions[header->index].message, end_transfer, task);
}

void tsi_program_fail(const ts_task_header *header, int status)
{
  ts_program *program = header->program;
  pthread_mutex_lock(&program->lock);
  if (header->index < atomic_load(&program->first_failed)) {
    program->status = status;
    snprintf(program->message, sizeof program->message, "%s", ts_error_message());
    atomic_store(&program->first_failed, header->index);
  }
  pthread_mutex_unlock(&program->lock);
}

/* ---- recording ---- */

int ts_program_create(ts_program **out)
{
  TS_TRY(TSI_NEW(*out, 1));
  atomic_init(&(*out)->first_failed, INT_MAX);
  pthread_mutex_init(&(*out)->lock, NULL);
  return 0;
}

static int check_desc(const ts_program *program, const ts_task_desc *desc)
{
  const struct starpu_codelet *cl = desc->codelet;
  const char *name = cl && cl->name ? cl->name : "a codelet without a name";
  if (program->sealed) return tsi_fail(TS_ERR_ARG, "%s: added to a program that has run", name);
  if (!cl || !cl->cpu_funcs[0] || cl->cpu_funcs[1])
    return tsi_fail(TS_ERR_ARG, "%s: exactly one CPU function is needed", name);
  if (desc->phase < 0 || desc->phase >= TS_PROGRAM_PHASES)
    return tsi_fail(TS_ERR_ARG, "%s: phase %d is not in 0..%d", name, desc->phase,
                    TS_PROGRAM_PHASES - 1);
  if (desc->naccess < 0 || (desc->args && desc->args_size < sizeof(ts_task_header)))
    return tsi_fail(TS_ERR_ARG, "%s: %d handles, %zu bytes of arguments", name, desc->naccess,
                    desc->args_size);
  const bool fixed = cl->nbuffers != STARPU_VARIABLE_NBUFFERS;
  if (fixed && cl->nbuffers != desc->naccess)
    return tsi_fail(TS_ERR_ARG, "%s: %d handles given, the codelet takes %d", name, desc->naccess,
                    cl->nbuffers);
  for (int i = 0; i < desc->naccess; i++) {
    const enum starpu_data_access_mode mode = desc->access[i].mode;
    if (!desc->access[i].handle) return tsi_fail(TS_ERR_ARG, "%s: handle %d is NULL", name, i);
    if (mode != STARPU_R && mode != STARPU_W && mode != STARPU_RW && mode != STARPU_SCRATCH)
      return tsi_fail(TS_ERR_ARG, "%s: handle %d: mode %d is none of R, W, RW, SCRATCH", name, i,
                      (int)mode);
    if (fixed && STARPU_CODELET_GET_MODE(cl, i) != mode)
      return tsi_fail(TS_ERR_ARG, "%s: handle %d: mode %d, the codelet says %d", name, i, (int)mode,
                      (int)STARPU_CODELET_GET_MODE(cl, i));
  }
  return 0;
}

static int wrap(ts_program *program, const struct starpu_codelet *original,
                struct starpu_codelet **out)
{
  wrapped *w = program->codelets;
  while (w && w->original != original)
    w = w->next;
  if (!w) {
    TS_TRY(TSI_NEW(w, 1));
    *w = (wrapped){.original = original, .codelet = *original, .next = program->codelets};
    w->codelet.cpu_funcs[0] = run_cpu;
    w->codelet.nbuffers = STARPU_VARIABLE_NBUFFERS; /* modes are on the task */
    program->codelets = w;
  }
  *out = &w->codelet;
  return 0;
}

static int grow(ts_program *program)
{
  if (program->count < program->capacity) return 0;
  const int capacity = program->capacity ? 2 * program->capacity : 256;
  action *actions = NULL;
  TS_TRY(TSI_NEW(actions, capacity));
  if (program->count > 0)
    memcpy(actions, program->actions, (size_t)program->count * sizeof *actions);
  free(program->actions);
  program->actions = actions;
  program->capacity = capacity;
  return 0;
}

/* The handles and modes on the task: inside it, or in arrays when they are too many for that. */
static int set_accesses(struct starpu_task *task, const ts_task_desc *desc)
{
  const size_t n = (size_t)desc->naccess;
  task->nbuffers = desc->naccess;
  if (desc->naccess > STARPU_NMAXBUFS) {
    task->dyn_handles = malloc(n * sizeof *task->dyn_handles);
    task->dyn_modes = malloc(n * sizeof *task->dyn_modes);
    if (!task->dyn_handles || !task->dyn_modes)
      return tsi_fail(TS_ERR_MEMORY, "%d handles of %s", desc->naccess, desc->codelet->name);
  }
  for (int i = 0; i < desc->naccess; i++) {
    STARPU_TASK_SET_HANDLE(task, desc->access[i].handle, i);
    STARPU_TASK_SET_MODE(task, desc->access[i].mode, i);
  }
  return 0;
}

static int clamp_priority(int priority)
{
  const int low = starpu_sched_get_min_priority(), high = starpu_sched_get_max_priority();
  return priority < low ? low : priority > high ? high : priority;
}

int ts_program_add(ts_program *program, const ts_task_desc *desc)
{
  int status;
  TS_TRY(check_desc(program, desc));
  TS_TRY(grow(program));
  const size_t size = desc->args ? desc->args_size : sizeof(ts_task_header);
  struct starpu_codelet *codelet = NULL;
  TS_TRY(wrap(program, desc->codelet, &codelet));
  ts_task_header *args = NULL;
  TS_TRY(tsi_alloc(size, 1, (void **)&args));
  if (desc->args) memcpy(args, desc->args, size);
  *args = (ts_task_header){.program = program, .index = program->count};

  struct starpu_task *task = starpu_task_create();
  task->destroy = 0;
  task->sequential_consistency = 0; /* dependencies are ours */
  task->cl = codelet;
  task->cl_arg = args;
  task->cl_arg_size = size;
  task->cl_arg_free = 1;
  task->name = desc->codelet->name;
  task->priority = clamp_priority(desc->priority);
  TS_TRY_GOTO(status, set_accesses(task, desc), fail);
  program->actions[program->count++] =
      (action){.phase = desc->phase, .cpu = desc->codelet->cpu_funcs[0], .task = task};
  return 0;
fail:
  starpu_task_destroy(task);
  return status;
}

/* A task that runs nowhere, added to the program.  */
static int add_nowhere(ts_program *program, struct starpu_codelet *codelet, const char *name,
                       struct starpu_task **out)
{
  ts_task_header *args = NULL;
  if (program->sealed) return tsi_fail(TS_ERR_ARG, "%s: added to a program that has run", name);
  TS_TRY(grow(program));
  TS_TRY(TSI_NEW(args, 1));
  *args = (ts_task_header){.program = program, .index = program->count};
  struct starpu_task *task = starpu_task_create();
  task->destroy = 0;
  task->sequential_consistency = 0;
  task->cl = codelet;
  task->cl_arg = args;
  task->cl_arg_size = sizeof *args;
  task->cl_arg_free = 1;
  task->name = name;
  program->actions[program->count++] = (action){.task = task};
  *out = task;
  return 0;
}

int ts_program_add_transfer(ts_program *program, ts_transfers *transfers,
                            const ts_transfer *transfer)
{
  ts_message *message;
  struct starpu_task *task;
  TS_TRY(ts_message_create(transfers, transfer, &message));
  const int status =
      add_nowhere(program, &transfer_codelet, transfer->send ? "ts_send" : "ts_receive", &task);
  if (status) {
    ts_message_destroy(&message);
    return status;
  }
  task->prologue_callback_func = post_transfer;
  task->prologue_callback_arg = task;
  program->actions[program->count - 1].transfer = *transfer;
  program->actions[program->count - 1].message = message;
  if (transfer->send) {
    program->sent_messages++;
    program->sent_bytes += (int64_t)starpu_data_get_size(transfer->handle);
  }
  return 0;
}

int ts_program_add_barrier(ts_program *program)
{
  struct starpu_task *task;
  TS_TRY(add_nowhere(program, &barrier_codelet, "ts_barrier", &task));
  program->actions[program->count - 1].barrier = true;
  return 0;
}

/* ---- dependencies ---- */

/* The k-th datum of an action. */
static int accesses(const action *a)
{
  return a->message ? 1 : a->task->nbuffers;
}

static ts_access access_of(const action *a, int k)
{
  if (a->message) return (ts_access){a->transfer.handle, a->transfer.send ? STARPU_R : STARPU_W};
  return (ts_access){STARPU_TASK_GET_HANDLE(a->task, k), STARPU_TASK_GET_MODE(a->task, k)};
}

typedef struct reader {
  int index;
  struct reader *next;
} reader;

typedef struct use {
  starpu_data_handle_t handle;
  int last_writer; /* -1: none */
  reader *readers; /* since the last writer */
} use;

/* What the walk over the actions knows. */
typedef struct analysis {
  use *uses; /* [nuses], sorted by handle */
  int nuses;
  reader *readers; /* pool: one per access at most */
  int *seen;       /* [count] index + 1 of the last task that listed this one */
  struct starpu_task **before;
  int nbefore;
} analysis;

static int compare_uses(const void *a, const void *b)
{
  const uintptr_t x = (uintptr_t)((const use *)a)->handle, y = (uintptr_t)((const use *)b)->handle;
  return (x > y) - (x < y);
}

static int prepare(const ts_program *program, analysis *s)
{
  size_t total = 0;
  for (int i = 0; i < program->count; i++)
    total += (size_t)accesses(&program->actions[i]);
  TS_TRY(TSI_NEW(s->uses, total));
  TS_TRY(TSI_NEW(s->readers, total));
  TS_TRY(TSI_NEW(s->seen, program->count));
  TS_TRY(TSI_NEW(s->before, program->count));
  size_t n = 0;
  for (int i = 0; i < program->count; i++)
    for (int k = 0; k < accesses(&program->actions[i]); k++)
      s->uses[n++] = (use){.handle = access_of(&program->actions[i], k).handle, .last_writer = -1};
  if (n > 0) qsort(s->uses, n, sizeof *s->uses, compare_uses);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || s->uses[i].handle != s->uses[i - 1].handle) s->uses[s->nuses++] = s->uses[i];
  return 0;
}

static void wait_for(const ts_program *program, analysis *s, int index, int before)
{
  if (before < 0 || before == index || s->seen[before] == index + 1) return;
  s->seen[before] = index + 1;
  s->before[s->nbefore++] = program->actions[before].task;
}

static void analyse_access(const ts_program *program, analysis *s, int index,
                           starpu_data_handle_t handle, enum starpu_data_access_mode mode)
{
  if (mode == STARPU_SCRATCH) return;
  const use key = {.handle = handle};
  use *u = bsearch(&key, s->uses, (size_t)s->nuses, sizeof key, compare_uses);
  if (mode & STARPU_W) {
    if (!u->readers) wait_for(program, s, index, u->last_writer);
    for (const reader *r = u->readers; r; r = r->next)
      wait_for(program, s, index, r->index);
    u->readers = NULL;
    u->last_writer = index;
  } else {
    wait_for(program, s, index, u->last_writer);
    *s->readers = (reader){.index = index, .next = u->readers};
    u->readers = s->readers++;
  }
}

/* Find and declare the dependencies, once. */
static int seal(ts_program *program)
{
  analysis s = {0};
  const int status = prepare(program, &s);
  reader *pool = s.readers;
  for (int i = 0, barrier = -1; !status && i < program->count; i++) {
    const action *a = &program->actions[i];
    s.nbefore = 0;
    wait_for(program, &s, i, barrier);
    for (int k = barrier + 1; k < i && a->barrier; k++)
      wait_for(program, &s, i, k);
    if (a->barrier) barrier = i;
    for (int k = 0; k < accesses(a); k++) {
      const ts_access access = access_of(a, k);
      analyse_access(program, &s, i, access.handle, access.mode);
    }
    starpu_task_declare_deps_array(a->task, (unsigned)s.nbefore, s.before);
  }
  free(s.uses);
  free(pool);
  free(s.seen);
  free(s.before);
  program->sealed = !status;
  return status;
}

/* ---- running ---- */

static int submit(ts_program *program)
{
  int left = 0;
  for (int i = 0; i < program->count; i++)
    left += !program->actions[i].barrier;
  atomic_store(&program->left, left);
  for (int i = 0; i < program->count; i++) {
    action *a = &program->actions[i];
    a->busy = 0;
    /* StarPU allocates this array at every submission and frees it only with the task */
    free(a->task->dyn_interfaces);
    a->task->dyn_interfaces = NULL;
    /* Set, where starpu_task_end_dep_add() would add: in 1.3 and 1.4 the counter ends one too low
     * when a transfer ends at the same moment as its task (jobs.c looks at it before locking). */
    if (a->message) a->task->nb_termination_call_required = 1;
    const int failed = starpu_task_submit(a->task);
    if (failed) {
      program->broken = true; /* later tasks would wait for this one for ever */
      return tsi_fail(TS_ERR_STARPU, "%s (task %d): StarPU does not take it: %s", a->task->name, i,
                      strerror(-failed));
    }
  }
  return 0;
}

static void account(ts_program *program)
{
  memset(program->phase_seconds, 0, sizeof program->phase_seconds);
  for (int i = 0; i < program->count; i++)
    program->phase_seconds[program->actions[i].phase] += program->actions[i].busy;
}

int ts_program_run(ts_program *program, long iteration)
{
  if (program->broken) return tsi_fail(TS_ERR_STARPU, "the program was broken by an earlier run");
  if (!program->sealed) TS_TRY(seal(program));
  const double start = now();
  program->iteration = iteration;
  atomic_store(&program->first_failed, INT_MAX);
  starpu_iteration_push((unsigned long)iteration);
  const locale_t before = tsi_number_plain(); /* a codelet's first task reads its timings */
  program->rests = ts_engine_resting();
  const int status = submit(program);
  uselocale(before);
  /* Not earlier: a worker that wakes on this thread's core would look for tasks until its time
   * slice is over. */
  ts_engine_rest(false);
  const int waited = starpu_task_wait_for_all();
  ts_engine_rest(program->rests);
  starpu_iteration_pop();
  program->seconds = now() - start;
  account(program);
  if (status) return status;
  if (waited) return tsi_fail(TS_ERR_STARPU, "waiting for the tasks: %s", strerror(-waited));
  if (atomic_load(&program->first_failed) == INT_MAX) return 0;
  return tsi_fail(program->status, "%s", program->message);
}

void ts_program_destroy(ts_program **program)
{
  ts_program *p = *program;
  if (!p) return;
  for (int i = 0; i < p->count; i++) {
    starpu_task_destroy(p->actions[i].task);
    ts_message_destroy(&p->actions[i].message);
  }
  for (wrapped *w = p->codelets; w;) {
    wrapped *next = w->next;
    free(w);
    w = next;
  }
  pthread_mutex_destroy(&p->lock);
  free(p->actions);
  free(p);
  *program = NULL;
}

int ts_program_size(const ts_program *program)
{
  return program->count;
}

int64_t ts_program_sent_bytes(const ts_program *program)
{
  return program->sent_bytes;
}

int ts_program_sent_messages(const ts_program *program)
{
  return program->sent_messages;
}

double ts_program_phase_seconds(const ts_program *program, int phase)
{
  return program->phase_seconds[phase];
}

double ts_program_seconds(const ts_program *program)
{
  return program->seconds;
}

long ts_program_iteration(const ts_program *program)
{
  return program->iteration;
}
