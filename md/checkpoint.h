/* SPDX-License-Identifier: MIT
 *
 * A checkpoint: named arrays that hold the whole state of a run, so that a resumed run gives the
 * bits of an uninterrupted one.  Each part of the program puts its own state under its own name;
 * nothing here knows what a thermostat is.  Arrays of atoms are stored in the order of the
 * structure file, so the reader may hold the atoms in any order, on any number of ranks: each rank
 * writes and reads the rows of one block of ids (comm/blocks.h), and nobody has them all.
 *
 * The file is HDF5, so that any tool can look inside, behind a sealed first block: an index of the
 * arrays and a checksum of every byte.  The reader trusts only what the seal confirms and never
 * hands the file to the HDF5 library.  It is written aside, forced to the disk and renamed; `keep`
 * files are kept (checkpoint.h5, checkpoint.1.h5, ...), and a damaged one is passed over with a
 * line in the log.  Equal states give equal bytes, however many ranks write them.
 *
 * What is called collective here fails on all ranks if it fails on one. */
#ifndef TS_CHECKPOINT_H
#define TS_CHECKPOINT_H

#include "md/system.h"

struct ts_ranks; /* comm/peers.h */

enum { TS_CHECKPOINT_NAME = 48 }; /**< longest name of an array, with its NUL */

typedef struct ts_checkpoint ts_checkpoint;

/** An empty checkpoint of a step.  Not collective.
 * \param [in]  ranks  That share it, one in a process; copied, its comm and traffic are borrowed.
 * \param [in]  time   [fs]
 * \param [out] out    Owned by the caller: ts_checkpoint_destroy(); NULL on failure.
 * \return 0 or TS_ERR_MEMORY. */
int ts_checkpoint_create(const struct ts_ranks *ranks, int64_t step, double time,
                         ts_checkpoint **out);

/** Accepts NULL, sets *checkpoint to NULL. */
void ts_checkpoint_destroy(ts_checkpoint **checkpoint);

int64_t ts_checkpoint_step(const ts_checkpoint *checkpoint);
double ts_checkpoint_time(const ts_checkpoint *checkpoint);      /**< [fs] */
const char *ts_checkpoint_path(const ts_checkpoint *checkpoint); /**< where it was read, or "" */

/** Put arrays; the data is copied.  Names are [a-z0-9_]+ and new, arrays are not empty, texts are
 * shorter than 4 KiB.  ..._system puts everything in the system (x as it stands, also outside the
 * cell); ..._atoms_... put [n,width] values in the system's order.  Collective for these; the
 * others are not, but all ranks put the same.
 * \return 0; TS_ERR_ARG (name or size); TS_ERR_MEMORY; TS_ERR_SIMULATION if a double is not finite,
 * an atom is broken (ts_system_check) or lost: such a state is never stored; TS_ERR_MPI. */
int ts_checkpoint_put_system(ts_checkpoint *checkpoint, const ts_system *system);
int ts_checkpoint_put_atoms_double(ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, const double *data);
int ts_checkpoint_put_atoms_int64(ts_checkpoint *checkpoint, const ts_system *system,
                                  const char *name, int width, const int64_t *data);
int ts_checkpoint_put_double(ts_checkpoint *checkpoint, const char *name, int64_t count,
                             const double *data);
int ts_checkpoint_put_int64(ts_checkpoint *checkpoint, const char *name, int64_t count,
                            const int64_t *data);
int ts_checkpoint_put_text(ts_checkpoint *checkpoint, const char *name, const char *text);

/** Get arrays back from a checkpoint that was read.  ..._get_system makes a system of this rank's
 * block of ids; ..._atoms_... fill [n,width] in the order of the system given, whichever atoms it
 * has.  Collective.
 * \return 0; TS_ERR_INPUT if the array is missing, has another type or size or is not finite;
 *         TS_ERR_MEMORY; TS_ERR_MPI. */
int ts_checkpoint_get_system(const ts_checkpoint *checkpoint, ts_system **out);
int ts_checkpoint_get_atoms_double(const ts_checkpoint *checkpoint, const ts_system *system,
                                   const char *name, int width, double *data);
int ts_checkpoint_get_atoms_int64(const ts_checkpoint *checkpoint, const ts_system *system,
                                  const char *name, int width, int64_t *data);
int ts_checkpoint_get_double(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                             double *data);
int ts_checkpoint_get_int64(const ts_checkpoint *checkpoint, const char *name, int64_t count,
                            int64_t *data);
bool ts_checkpoint_has(const ts_checkpoint *checkpoint, const char *name);

/** Refuse a checkpoint of another run: the stored text or integer must equal `value`.  Collective.
 * \param [in] hint  What to do about it, for the message ("to continue with another seed, ...").
 * \return 0; TS_ERR_INPUT naming the file, the name, both values and the hint. */
int ts_checkpoint_expect_text(const ts_checkpoint *checkpoint, const char *name, const char *value,
                              const char *hint);
int ts_checkpoint_expect_int64(const ts_checkpoint *checkpoint, const char *name, int64_t value,
                               const char *hint);

/** Write `path`, moving older ones to path.1, ... up to keep files in all (the number goes before
 * the suffix: checkpoint.1.h5).  On the disk when it returns; at every moment the newest sound
 * checkpoint is in one of these files.  Collective.
 * \param [in] keep  1 .. 100
 * \return 0; TS_ERR_ARG; TS_ERR_IO; TS_ERR_HDF5; TS_ERR_MEMORY; TS_ERR_MPI. */
int ts_checkpoint_write(const ts_checkpoint *checkpoint, const char *path, int keep);

/** Read the newest sound checkpoint among `path` and its older ones.  Each damaged one is named in
 * the log as a warning.  Collective.
 * \param [in]  ranks  As for ts_checkpoint_create(); the file must be there for all of them.
 * \param [out] out    Owned by the caller; NULL on failure.  It holds the file open until then.
 * \return 0; TS_ERR_INPUT if there is none, with the reason for the newest; TS_ERR_MEMORY;
 *         TS_ERR_MPI. */
int ts_checkpoint_read(const struct ts_ranks *ranks, const char *path, ts_checkpoint **out);

/** Read exactly this file.  Collective.  \return 0, TS_ERR_INPUT, TS_ERR_MEMORY or TS_ERR_MPI. */
int ts_checkpoint_read_file(const struct ts_ranks *ranks, const char *path, ts_checkpoint **out);

#endif
