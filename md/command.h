/* SPDX-License-Identifier: MIT
 *
 * The parts of the command line that are more than one call; md/main.c chooses among them.  Each
 * takes the words behind its name and returns a status; main prints the message. */
#ifndef TS_COMMAND_H
#define TS_COMMAND_H

#include "md/job.h"

/** `tessera check`: print the filled-in job on standard output and, on standard error, what it will
 * work on.  Nothing is started or written.  Not collective. */
int ts_check_job(const ts_job *job);

/** `tessera model seed|show|convert`: weight files.  Not collective.
 * \param [in] argc, argv  The words behind `model`. */
int ts_model_command(int argc, char **argv);

/** `tessera plan`: survey virtual ranks, print and write what they would do.  Not collective.
 * \param [in] argc, argv  The words behind `plan`. */
int ts_plan_command(int argc, char **argv);

/** `tessera info`: what this program was built with and finds on this machine.  Not collective. */
int ts_info_print(void);

#endif
