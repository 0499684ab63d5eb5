/* SPDX-License-Identifier: MIT
 *
 * Memory that the ranks of a node share: a POSIX segment under /dev/shm.  Its name says user, job
 * and process, and is gone as soon as all ranks have mapped it, so that whatever ends them leaves
 * nothing behind.  Every rank holds a lock on its byte of the file; the kernel releases it when
 * the process ends in any way (a zombie has, though its pid still answers), which is how peers
 * notice and how names of dead jobs are told from those of starting ones. */
#ifndef TS_SHM_H
#define TS_SHM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ts_shm ts_shm;

/** Create a segment of `bytes` zero bytes after removing what dead jobs left.  Not collective.
 * \return 0; TS_ERR_SYSTEM, with the sizes where /dev/shm is too small. */
int ts_shm_create(size_t bytes, ts_shm **out);

/** Map the segment that another process created.  \return 0 or TS_ERR_SYSTEM. */
int ts_shm_attach(const char *name, size_t bytes, ts_shm **out);

const char *ts_shm_name(const ts_shm *shm); /**< borrowed */
void *ts_shm_memory(const ts_shm *shm);     /**< borrowed until ts_shm_destroy() */

/** From now on this process is `rank`, alive until it ends or destroys its ts_shm. */
int ts_shm_enlist(ts_shm *shm, int rank);

/** Whether another process that enlisted as `rank` is still there. */
bool ts_shm_alive(const ts_shm *shm, int rank);

/** Remove the name; the memory stays for those who have mapped it. */
void ts_shm_unlink(ts_shm *shm);

/** Unmap.  Accepts NULL, sets *shm to NULL. */
void ts_shm_destroy(ts_shm **shm);

/** Remove the segments of this user's dead jobs; returns how many.  Not collective. */
int ts_shm_sweep(void);

#endif
