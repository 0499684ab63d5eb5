/* SPDX-License-Identifier: MIT
 *
 * Compiled in front of runtime/program.c and engine.c by tests/test_program_race.sh: tells
 * ThreadSanitizer what orders tasks.  A task runs after it was submitted and after those that it
 * was declared to depend on; the wait for all returns after all of them.  Nothing else counts:
 * StarPU's own locks, which also order what happens to meet in them, are ignored, so that two tasks
 * which touch the same memory without a declared dependency are found even if they never overlap.
 */
#include <sanitizer/tsan_interface.h>
#include <starpu.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/transfers.h"

/* of ThreadSanitizer, without a header */
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

extern _Thread_local bool race_ignores; /* this thread's locks */

static inline void race_ignore(bool on)
{
  if (on && !race_ignores) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  if (!on && race_ignores) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  race_ignores = on;
}

#ifdef RACE_ENGINE
_Thread_local bool race_ignores;

static void race_leave(void *unused)
{
  (void)unused;
  race_ignore(false);
}

static void race_shutdown(void)
{
  starpu_execute_on_each_worker(race_leave, NULL, STARPU_CPU);
  starpu_shutdown();
}

#define starpu_shutdown race_shutdown
#else

/* Hangs on a task's unused callback argument. */
struct race_before {
  unsigned n;
  struct starpu_task *task[];
};

static void run_cpu(void *buffers[], void *cl_arg); /* of runtime/program.c */

static struct starpu_task **race_submitted;
static size_t race_count, race_room;

static void race_acquire(const struct starpu_task *task)
{
  const struct race_before *before = task->callback_arg;
  for (unsigned i = 0; before && i < before->n; i++) {
    __tsan_acquire(before->task[i]);
    /* a barrier or a transfer runs nowhere: what it waited for counts */
    if (before->task[i]->cl->where == STARPU_NOWHERE) race_acquire(before->task[i]);
  }
}

static void race_cpu(void *buffers[], void *cl_arg)
{
  struct starpu_task *task = starpu_task_get_current();
  race_ignore(false);
  __tsan_acquire(task);
  race_acquire(task);
  run_cpu(buffers, cl_arg);
  __tsan_release(task);
  race_ignore(true); /* until the next task */
}

static void race_declare(struct starpu_task *task, unsigned n, struct starpu_task *before[])
{
  struct race_before *b = malloc(sizeof *b + n * sizeof *before);
  starpu_task_declare_deps_array(task, n, before);
  if (!b) abort();
#ifdef RACE_FORGETS /* to see the test fail */
  b->n = n ? n - 1 : 0;
#else
  b->n = n;
#endif
  for (unsigned i = 0; i < n; i++)
    b->task[i] = before[i];
  task->callback_arg = b;
  task->callback_arg_free = 1;
}

static int race_submit(struct starpu_task *task)
{
  if (race_count == race_room) {
    race_room = 2 * race_room + 256;
    race_submitted = realloc(race_submitted, race_room * sizeof *race_submitted);
    if (!race_submitted) abort();
  }
  race_submitted[race_count++] = task;
  if (task->cl->where != STARPU_NOWHERE) task->cl->cpu_funcs[0] = race_cpu;
  __tsan_release(task);
  race_ignore(true);
  const int status = starpu_task_submit(task);
  race_ignore(false);
  return status;
}

static int race_wait(void)
{
  race_ignore(true);
  const int status = starpu_task_wait_for_all();
  race_ignore(false);
  for (size_t i = 0; i < race_count; i++)
    __tsan_acquire(race_submitted[i]);
  race_count = 0;
  return status;
}

/* There are no messages here, and an atomic counter of tasks would seem to order them all. */
#define tsi_transfers_task_begins() (void)0
#define tsi_transfers_task_ends() (void)0
#define starpu_task_declare_deps_array race_declare
#define starpu_task_submit race_submit
#define starpu_task_wait_for_all race_wait
#endif
