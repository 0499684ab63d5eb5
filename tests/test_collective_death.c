/* SPDX-License-Identifier: MIT
 *
 * A process is killed while others wait for its message, without mpirun to notice: they end within
 * five seconds and name it, whether they yield or not.  The victim stays a zombie meanwhile, whose
 * pid still answers. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "comm/collective_shot.h"
#include "comm/shm.h"
#include "runtime/error.h"

enum { RANKS = 4, WORDS = 16, VICTIM = 2, NOTICED = 42 };

static bool alive(const void *shm, int rank)
{
  return ts_shm_alive(shm, rank);
}

/* Two rounds all together; in the third one rank is missing. */
static int play(ts_shm *shm, ts_cmode mode, int rank, bool yield)
{
  const size_t bytes = ts_cbuffer_bytes(mode, RANKS, WORDS);
  const tsi_cwait wait = {.yield = yield, .alive = alive, .arg = shm};
  tsi_combine *add = tsi_combine_find(TS_CTYPE_INT64, TS_COP_SUM);
  _Atomic int *here = (void *)((unsigned char *)ts_shm_memory(shm) + bytes);
  ts_cbuffer b;
  TS_TRY(ts_shm_enlist(shm, rank));
  TS_TRY(ts_cbuffer_init(&b, mode, rank, RANKS, WORDS, ts_shm_memory(shm), &wait));
  atomic_fetch_add(here, 1);
  while (atomic_load(here) < RANKS)
    sched_yield();
  int status = 0;
  for (int round = 0; round < 3 && !status; round++) {
    ts_word x = 1;
    if (round == 2 && rank == VICTIM) raise(SIGKILL);
    status = tsi_shot_one(&b, add, &x, &x, 1);
    if (!status && x != RANKS) status = TS_ERR_SIMULATION;
  }
  ts_cbuffer_release(&b);
  return status;
}

static int child(const char *name, size_t bytes, ts_cmode mode, int rank, bool yield)
{
  ts_shm *shm = NULL;
  if (ts_shm_attach(name, bytes, &shm)) return 1;
  const int status = play(shm, mode, rank, yield);
  return status == TS_ERR_MPI && strstr(ts_error_message(), "rank 2 ended") ? NOTICED : 1;
}

static void kill_one(ts_cmode mode, bool yield)
{
  const size_t bytes = ts_cbuffer_bytes(mode, RANKS, WORDS) + TSI_LINE;
  ts_shm *shm = NULL;
  pid_t pid[RANKS];
  int status;
  assert_int_equal(ts_shm_create(bytes, &shm), 0);
  ts_cbuffer_fill(mode, RANKS, WORDS, ts_shm_memory(shm));
  for (int r = 0; r < RANKS; r++) {
    pid[r] = fork();
    if (pid[r] == 0) _exit(child(ts_shm_name(shm), bytes, mode, r, yield));
    assert_true(pid[r] > 0);
  }
  const time_t start = time(NULL);
  for (int r = 0; r < RANKS; r++) {
    if (r == VICTIM) continue;
    assert_int_equal(waitpid(pid[r], &status, 0), pid[r]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), NOTICED);
  }
  assert_true(time(NULL) - start <= 5);
  assert_int_equal(waitpid(pid[VICTIM], &status, 0), pid[VICTIM]);
  assert_true(WIFSIGNALED(status));
  ts_shm_destroy(&shm);
}

static void noticed_ll(void **state)
{
  (void)state;
  kill_one(TS_CMODE_LL, false);
  kill_one(TS_CMODE_LL, true);
}

static void noticed_sentinel(void **state)
{
  (void)state;
  kill_one(TS_CMODE_SENTINEL, false);
  kill_one(TS_CMODE_SENTINEL, true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(noticed_ll),
                                     cmocka_unit_test(noticed_sentinel)};
  alarm(60);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
