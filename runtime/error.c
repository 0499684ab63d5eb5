/* SPDX-License-Identifier: MIT
 *
 * The thread's message and the meaning of the codes. */
#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[2048];

int tsi_fail(int status, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return status;
}

const char *ts_error_message(void)
{
  return message;
}

#define TS_STATUS_CASE_TEXT(code, name, exit, text) \
  case name:                                        \
    return text;

const char *ts_status_text(int status)
{
  switch (status) {
    TS_STATUS_MAP(TS_STATUS_CASE_TEXT)
    default:
      return "unknown status";
  }
}

#define TS_STATUS_CASE_EXIT(code, name, exit, text) \
  case name:                                        \
    return exit;

int ts_status_exit(int status)
{
  switch (status) {
    TS_STATUS_MAP(TS_STATUS_CASE_EXIT)
    default:
      return 3;
  }
}
