/* SPDX-License-Identifier: MIT
 *
 * shm_open(), and locks as proofs of life. */
#include "comm/shm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/error.h"
#include "runtime/memory.h"

#define DIRECTORY "/dev/shm"
#define PREFIX "tessera-"

enum {
  CREATOR = 1 << 20
}; /* the byte that the creator locks; ranks lock the one of their number */

struct ts_shm {
  char name[128]; /* "/tessera-UID-JOB-PID-NUMBER" */
  void *memory;
  size_t bytes;
  int file;
  bool named; /* by us, and not yet unlinked */
};

static int lock(int file, int command, short type, off_t start, off_t length)
{
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  if (fcntl(file, command, &range)) return -1;
  return range.l_type == F_UNLCK ? 0 : 1;
}

int ts_shm_sweep(void)
{
  int removed = 0;
  char own[32];
  const int length = snprintf(own, sizeof own, PREFIX "%lu-", (unsigned long)getuid());
  DIR *directory = opendir(DIRECTORY);
  if (!directory) return 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    char name[sizeof entry->d_name + 1];
    if (strncmp(entry->d_name, own, (size_t)length)) continue;
    snprintf(name, sizeof name, "/%s", entry->d_name);
    const int file = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) continue;
    /* nobody holds any byte: its creator is dead, and nobody has joined */
    if (lock(file, F_GETLK, F_WRLCK, 0, 0) == 0) removed += shm_unlink(name) == 0;
    close(file);
  }
  closedir(directory);
  return removed;
}

/* The batch system's or mpirun's word for the job, in letters that a file name may have. */
static void job_name(char *text, size_t size)
{
  const char *job = getenv("SLURM_JOB_ID");
  if (!job) job = getenv("PMIX_NAMESPACE");
  if (!job) job = "0";
  size_t i = 0;
  for (; job[i] && i + 1 < size; i++)
    text[i] = isalnum((unsigned char)job[i]) ? job[i] : '_';
  text[i] = '\0';
}

/* A file of a new name, locked by us. */
static int open_new(ts_shm *shm)
{
  static int number;
  char job[48];
  job_name(job, sizeof job);
  for (int tries = 0; tries < 1000; tries++) {
    snprintf(shm->name, sizeof shm->name, "/" PREFIX "%lu-%s-%ld-%d", (unsigned long)getuid(), job,
             (long)getpid(), number++);
    shm->file = shm_open(shm->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (shm->file < 0 && errno == EEXIST) continue;
    if (shm->file < 0) break;
    struct stat status;
    if (lock(shm->file, F_SETLK, F_WRLCK, CREATOR, 1) < 0) break;
    shm->named = true;
    /* another job may have swept it away just before it was locked */
    if (!fstat(shm->file, &status) && status.st_nlink) return 0;
    close(shm->file);
    shm->file = -1;
  }
  return tsi_fail(TS_ERR_SYSTEM, DIRECTORY "%s: cannot be created: %s", shm->name, strerror(errno));
}

static int reserve(const ts_shm *shm)
{
  const int failed = posix_fallocate(shm->file, 0, (off_t)shm->bytes);
  if (!failed) return 0;
  struct statvfs space = {0};
  statvfs(DIRECTORY, &space);
  return tsi_fail(TS_ERR_SYSTEM,
                  DIRECTORY
                  ": %.1f MB are free, the collectives need %.1f MB (%s): enlarge it "
                  "(containers: --shm-size), or choose \"mpi\" for the collectives",
                  1e-6 * (double)space.f_bavail * (double)space.f_frsize, 1e-6 * (double)shm->bytes,
                  strerror(failed));
}

static int map(ts_shm *shm)
{
  void *memory = mmap(NULL, shm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shm->file, 0);
  if (memory == MAP_FAILED)
    return tsi_fail(TS_ERR_SYSTEM, DIRECTORY "%s: %zu bytes cannot be mapped: %s", shm->name,
                    shm->bytes, strerror(errno));
  shm->memory = memory;
  return 0;
}

int ts_shm_create(size_t bytes, ts_shm **out)
{
  int status = 0;
  TS_TRY(TSI_NEW(*out, 1));
  (*out)->file = -1;
  (*out)->bytes = bytes;
  ts_shm_sweep();
  TS_TRY_GOTO(status, open_new(*out), fail);
  TS_TRY_GOTO(status, reserve(*out), fail);
  TS_TRY_GOTO(status, map(*out), fail);
  return 0;
fail:
  ts_shm_destroy(out);
  return status;
}

int ts_shm_attach(const char *name, size_t bytes, ts_shm **out)
{
  TS_TRY(TSI_NEW(*out, 1));
  ts_shm *shm = *out;
  snprintf(shm->name, sizeof shm->name, "%s", name);
  shm->bytes = bytes;
  shm->file = shm_open(name, O_RDWR | O_CLOEXEC, 0);
  const int status = shm->file < 0 ? tsi_fail(TS_ERR_SYSTEM,
                                              DIRECTORY
                                              "%s: %s (do the ranks of this node "
                                              "see one " DIRECTORY "?)",
                                              name, strerror(errno))
                                   : map(shm);
  if (status) ts_shm_destroy(out);
  return status;
}

const char *ts_shm_name(const ts_shm *shm)
{
  return shm->name;
}

void *ts_shm_memory(const ts_shm *shm)
{
  return shm->memory;
}

int ts_shm_enlist(ts_shm *shm, int rank)
{
  if (lock(shm->file, F_SETLK, F_WRLCK, rank, 1) >= 0) return 0;
  return tsi_fail(TS_ERR_SYSTEM, DIRECTORY "%s: rank %d cannot lock its byte: %s", shm->name, rank,
                  strerror(errno));
}

bool ts_shm_alive(const ts_shm *shm, int rank)
{
  return lock(shm->file, F_GETLK, F_WRLCK, rank, 1) != 0;
}

void ts_shm_unlink(ts_shm *shm)
{
  if (shm->named) shm_unlink(shm->name);
  shm->named = false;
}

void ts_shm_destroy(ts_shm **shm)
{
  ts_shm *s = *shm;
  if (!s) return;
  ts_shm_unlink(s);
  if (s->memory) munmap(s->memory, s->bytes);
  if (s->file >= 0) close(s->file);
  free(s);
  *shm = NULL;
}
