/* SPDX-License-Identifier: MIT
 *
 * From the words of a job to the objects that they ask for, so that `run` uses what `check` has
 * checked. */
#ifndef TS_SETUP_H
#define TS_SETUP_H

#include "md/elements.h"
#include "md/job.h"
#include "md/step.h"

/** What the atoms of all ranks are. */
typedef struct tsi_contents {
  int64_t count[TS_ELEMENTS + 1]; /**< [atomic number] atoms */
  ts_sum mass;                    /**< [eV fs^2/Å^2] */
} tsi_contents;

/** Collective on the ranks.  \return 0 or TS_ERR_MPI. */
int tsi_setup_contents(const ts_ranks *ranks, const ts_system *system, tsi_contents *out);

/** Load the job's model and pack it for the elements, the charge and the precision at hand.
 * The charge is the job's, else the structure's.  Not collective.
 * \param [out] out  Released by ts_model_destroy; NULL on failure.
 * \return 0, TS_ERR_INPUT (also an element that the model was not taught), TS_ERR_UNSUPPORTED or
 * TS_ERR_MEMORY. */
int tsi_setup_model(const ts_job *job, const ts_system *system, const tsi_contents *contents,
                    ts_model **out);

/** The job's parameters of a step.  Not collective.
 * \param [in] model  Borrowed as long as the parameters are used. */
void tsi_setup_step(const ts_job *job, const ts_model *model, int workers, ts_step_params *out);

/** An instruction set of the kernels, in words. */
const char *tsi_setup_kernels(const char *isa);

/** What is computed and how, as lines of the log.  Not collective.
 * \param [in] edges  [stages] candidate edges per atom */
void tsi_setup_log_system(const char *path, const ts_system *system, const tsi_contents *contents);
void tsi_setup_log_model(const ts_job *job, const ts_model *model);
void tsi_setup_log_edges(const ts_model *model, double skin, const double *edges);
void tsi_setup_log_memory(const ts_model *model, size_t step_bytes);

#endif
