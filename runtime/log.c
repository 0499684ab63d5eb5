/* SPDX-License-Identifier: MIT
 *
 * One line is put together first and handed over in a single write, so that lines of several
 * threads, or of several ranks that share a terminal, never mix. */
#include "runtime/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int shown = TS_LOG_INFO;
static atomic_int own_rank = 0;
static atomic_bool bar = false;

static const char *const prefixes[] = {"error: ", "warning: ", "", "debug: "};

void ts_log_set_level(ts_log_level level)
{
  atomic_store(&shown, (int)level);
}

void ts_log_set_rank(int rank)
{
  atomic_store(&own_rank, rank);
}

int ts_log_rank(void)
{
  return atomic_load(&own_rank);
}

void ts_log_set_bar(bool on)
{
  atomic_store(&bar, on);
}

static void write_all(const char *text, size_t length)
{
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return; /* nobody to tell */
    text += written;
    length -= (size_t)written;
  }
}

void ts_log(ts_log_level level, const char *format, ...)
{
  const int rank = atomic_load(&own_rank);
  const int saved_errno = errno;
  if ((int)level > atomic_load(&shown) || (rank != 0 && level > TS_LOG_WARNING)) return;

  char line[4096];
  const char *erase = atomic_exchange(&bar, false) ? "\r\033[K" : "";
  int length = rank ? snprintf(line, sizeof line, "%srank %d: %s", erase, rank, prefixes[level])
                    : snprintf(line, sizeof line, "%s%s", erase, prefixes[level]);
  va_list args;
  va_start(args, format);
  const int text = vsnprintf(line + length, sizeof line - (size_t)length, format, args);
  va_end(args);
  length += text > 0 ? text : 0;
  if (length > (int)sizeof line - 1) length = (int)sizeof line - 1; /* cut; the newline stays */
  line[length] = '\n';
  write_all(line, (size_t)length + 1);
  errno = saved_errno;
}
