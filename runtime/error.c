/* SPDX-License-Identifier: MIT
 *
 * The thread's message and the meaning of the codes. */
#include "runtime/error.h"

#include <stdarg.h>
#include <stdbool.h>
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

/* Control characters of a hostile file do not reach the terminal. */
void ts_error_print(int status)
{
  static bool said;
  char text[sizeof message];
  if (said) return;
  said = true;
  snprintf(text, sizeof text, "%s", *message ? message : ts_status_text(status));
  for (char *c = text; *c; ++c)
    if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
  fprintf(stderr, "tessera: %s%s\n", status == TS_ERR_STOPPED ? "" : "error: ", text);
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
