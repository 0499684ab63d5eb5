/* SPDX-License-Identifier: MIT
 *
 * A test that hangs ends, and says how many tasks StarPU still holds. */
#ifndef TS_TESTS_WATCHDOG_H
#define TS_TESTS_WATCHDOG_H

#include <signal.h>
#include <starpu.h>
#include <stdio.h>
#include <unistd.h>

static inline void watchdog_bark(int signal)
{
  (void)signal;
  char text[128];
  const int length =
      snprintf(text, sizeof text, "watchdog: %d tasks submitted, %d ready, none finishes\n",
               starpu_task_nsubmitted(), starpu_task_nready());
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(2);
  _exit(1);
}

/** End the process unless called again, or with 0, within `seconds`. */
static inline void watchdog(unsigned seconds)
{
  signal(SIGALRM, watchdog_bark);
  alarm(seconds);
}

#endif
