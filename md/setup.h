/* SPDX-License-Identifier: MIT
 *
 * From the words of a job to the objects that they ask for, so that `run` uses what `check` has
 * checked. */
#ifndef TS_SETUP_H
#define TS_SETUP_H

#include "md/job.h"
#include "md/step.h"

/** Load the job's model and pack it for the elements, the charge and the precision at hand.
 * The charge is the job's, else the structure's.  Not collective.
 * \param [out] out  Released by ts_model_destroy; NULL on failure.
 * \return 0, TS_ERR_INPUT, TS_ERR_UNSUPPORTED or TS_ERR_MEMORY. */
int tsi_setup_model(const ts_job *job, const ts_system *system, ts_model **out);

/** The job's parameters of a step.  Not collective.
 * \param [in] model  Borrowed as long as the parameters are used. */
void tsi_setup_step(const ts_job *job, const ts_model *model, int workers, ts_step_params *out);

#endif
