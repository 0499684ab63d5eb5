/* SPDX-License-Identifier: MIT
 *
 * Errors: one convention for the whole program.  A fallible function returns 0 or one of the
 * negative codes below and leaves a message that names the value, where it stood and what was
 * expected.  The message belongs to the thread (a StarPU worker's failure is carried to the caller
 * by the program that ran the task).  Results go to out-parameters. */
#ifndef TS_ERROR_H
#define TS_ERROR_H

/* code, name, exit status of the command line, meaning */
#define TS_STATUS_MAP(X)                                                  \
  X(0, TS_OK, 0, "success")                                               \
  X(-1, TS_ERR_ARG, 1, "an argument is out of range")                     \
  X(-2, TS_ERR_INPUT, 1, "the job or an input file is wrong")             \
  X(-3, TS_ERR_SIMULATION, 2, "the simulation failed")                    \
  X(-4, TS_ERR_MEMORY, 3, "memory ran out")                               \
  X(-5, TS_ERR_IO, 3, "a file could not be read or written")              \
  X(-6, TS_ERR_MPI, 3, "MPI reported an error")                           \
  X(-7, TS_ERR_STARPU, 3, "StarPU reported an error")                     \
  X(-8, TS_ERR_HDF5, 3, "HDF5 reported an error")                         \
  X(-9, TS_ERR_SYSTEM, 3, "the operating system refused a request")       \
  X(-10, TS_ERR_STOPPED, 4, "stopped early by a signal or the wall time") \
  X(-11, TS_ERR_UNSUPPORTED, 1, "not supported by this build or version")

#define TS_STATUS_ENUM(code, name, exit, text) name = (code),
typedef enum ts_status { TS_STATUS_MAP(TS_STATUS_ENUM) } ts_status;
#undef TS_STATUS_ENUM

/** Record a message for this thread and return `status`.  Not collective.
 * Usage: `return tsi_fail(TS_ERR_INPUT, "%s:%d: ...", path, line);` */
int tsi_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The last message recorded by this thread ("" if none); borrowed until the next failure. */
const char *ts_error_message(void);

/** Print the last message (or what `status` means) as one line on standard error: once per process,
 * so that rank 0 can speak before any rank leaves and mpirun ends the others.  Not collective. */
void ts_error_print(int status);

/** What a code means, in words; never NULL. */
const char *ts_status_text(int status);

/** The exit status of the command line for a code: 0 to 4, see docs. */
int ts_status_exit(int status);

/** Return the failure of `call`, if it fails, to the caller. */
#define TS_TRY(call)                           \
  do {                                         \
    const int ts_try_status_ = (call);         \
    if (ts_try_status_) return ts_try_status_; \
  } while (0)

/** Keep the failure of `call` in `status` and go to `label`, which releases everything. */
#define TS_TRY_GOTO(status, call, label) \
  do {                                   \
    (status) = (call);                   \
    if (status) goto label;              \
  } while (0)

#endif
