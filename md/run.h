/* SPDX-License-Identifier: MIT
 *
 * One job from start to end. */
#ifndef TS_RUN_H
#define TS_RUN_H

#include "md/job.h"

/** Run a job: start MPI and StarPU, read structure and model, do the task, write the output, stop
 * everything again.  Collective on all ranks: the first call after the job has been read.
 * \param [in] job     The same on every rank; borrowed for the call.
 * \param [in] resume  Continue from the newest sound checkpoint in output.directory.
 * \return 0; TS_ERR_STOPPED (a signal or the wall time; a checkpoint is written); TS_ERR_INPUT,
 * TS_ERR_UNSUPPORTED; TS_ERR_SIMULATION (step, atoms and positions in the message); or what else
 * failed.  The same status on every rank. */
int ts_run_job(const ts_job *job, bool resume);

/** What a rank does whose job could not be read: tell the others, which wait in ts_run_job() or
 * have failed alike.  Rank 0 prints the message.  Collective; nothing is started without mpirun.
 * \return the failure of the lowest rank that has one. */
int ts_run_refuse(int status);

#endif
