/* SPDX-License-Identifier: MIT
 *
 * One job from start to end. */
#include "md/run.h"

#include "runtime/error.h"

int ts_run_job(const ts_job *job, bool resume)
{
  (void)resume;
  return tsi_fail(TS_ERR_UNSUPPORTED, "%s: running is not supported in this version", job->path);
}
