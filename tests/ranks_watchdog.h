/* SPDX-License-Identifier: MIT
 *
 * A test over ranks that hangs ends: a message that never comes is a failure, not a wait. */
#ifndef TS_TESTS_RANKS_WATCHDOG_H
#define TS_TESTS_RANKS_WATCHDOG_H

#include <signal.h>
#include <unistd.h>

static inline void ranks_watchdog_bark(int signal)
{
  (void)signal;
  static const char text[] = "watchdog: this rank waits for others\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(2);
  _exit(1);
}

/** End the process after `seconds`. */
static inline void ranks_watchdog(unsigned seconds)
{
  signal(SIGALRM, ranks_watchdog_bark);
  alarm(seconds);
}

#endif
