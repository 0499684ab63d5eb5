/* SPDX-License-Identifier: MIT
 *
 * The log: lines for a person, on standard error (the table of the run itself goes to standard
 * output).  Quiet by default: one line per fact that a user may need, said once, by rank 0. */
#ifndef TS_LOG_H
#define TS_LOG_H

#include <stdbool.h>

typedef enum ts_log_level { TS_LOG_ERROR, TS_LOG_WARNING, TS_LOG_INFO, TS_LOG_DEBUG } ts_log_level;

/** Show lines up to this level (default TS_LOG_INFO).  Not collective. */
void ts_log_set_level(ts_log_level level);

/** Only rank 0 speaks; errors and warnings of other ranks carry their rank.  Not collective. */
void ts_log_set_rank(int rank);

/** The rank set above, 0 before.  Not collective. */
int ts_log_rank(void);

/** A progress bar stands on the terminal's last line (or no longer): the next line takes its place
 * instead of joining it.  Not collective. */
void ts_log_set_bar(bool on);

/** Print one line; a newline is added.  Thread-safe.  Not collective. */
void ts_log(ts_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
