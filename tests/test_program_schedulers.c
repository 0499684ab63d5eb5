/* SPDX-License-Identifier: MIT
 *
 * A chain of 100 dependent tasks beside 100 free ones finishes, in order and twice, under every
 * scheduler that a job may name.  Each runs in a process of its own, with a watchdog: a policy that
 * stalls or crashes is named, with the tasks it held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/program.h"
#include "tests/watchdog.h"

enum { LENGTH = 100 };

typedef struct link_args {
  ts_task_header header;
  int number;
} link_args;

static void link_cpu(void *buffers[], void *cl_arg)
{
  const link_args *a = cl_arg;
  int *count = (int *)STARPU_VARIABLE_GET_PTR(buffers[0]);
  if (*count != a->number)
    tsi_program_fail(&a->header,
                     tsi_fail(TS_ERR_STARPU, "link %d runs after %d", a->number, *count));
  *count = a->number + 1;
}

static void free_cpu(void *buffers[], void *cl_arg)
{
  (void)buffers;
  (void)cl_arg;
}

static struct starpu_codelet link_codelet = {
    .cpu_funcs = {link_cpu}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "link"};
static struct starpu_codelet free_codelet = {.cpu_funcs = {free_cpu}, .name = "free"};

static int record_and_run(starpu_data_handle_t handle, int *count)
{
  ts_program *program = NULL;
  TS_TRY(ts_program_create(&program));
  for (int i = 0; i < LENGTH; i++) {
    const link_args args = {.number = i};
    const ts_access access = {handle, STARPU_RW};
    TS_TRY(ts_program_add(program, &(ts_task_desc){.codelet = &link_codelet,
                                                   .access = &access,
                                                   .naccess = 1,
                                                   .args = &args,
                                                   .args_size = sizeof args,
                                                   .priority = 1000 - i}));
    TS_TRY(ts_program_add(program, &(ts_task_desc){.codelet = &free_codelet, .priority = -1000}));
  }
  for (int run = 0; run < 2; run++) {
    *count = 0;
    TS_TRY(ts_program_run(program, run));
    if (*count != LENGTH) return tsi_fail(TS_ERR_STARPU, "%d of %d links ran", *count, LENGTH);
  }
  ts_program_destroy(&program);
  return 0;
}

static int run_under(const char *scheduler)
{
  ts_topology topology;
  ts_engine_params params;
  ts_engine *engine = NULL;
  starpu_data_handle_t handle;
  int count = 0;
  watchdog(120);
  ts_engine_params_init(&params);
  params.workers = 2;
  params.scheduler = scheduler;
  TS_TRY(ts_topology_read(&topology));
  TS_TRY(ts_engine_create(&topology, &params, &engine));
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&count, sizeof count);
  TS_TRY(record_and_run(handle, &count));
  starpu_data_unregister(handle);
  ts_engine_destroy(&engine);
  return 0;
}

static void chain_finishes_under_every_scheduler(void **state)
{
  (void)state;
  const char *names[128];
  const int count = ts_engine_schedulers(names, 128);
  int failed = 0;
  assert_true(count > 0 && count <= 128);
  for (int i = 0; i < count; i++) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = run_under(names[i]);
      if (status) fprintf(stderr, "%s: %s\n", names[i], ts_error_message());
      _exit(status != 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fprintf(stderr, "%s ends with wait status %#x\n", names[i], (unsigned)status);
    failed += status != 0;
  }
  assert_int_equal(failed, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(chain_finishes_under_every_scheduler)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
