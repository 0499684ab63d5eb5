/* SPDX-License-Identifier: MIT
 *
 * The table of a job's keys: the one place that knows what a job may say.  Only md/job*.c look. */
#ifndef TS_JOB_SCHEMA_H
#define TS_JOB_SCHEMA_H

#include "md/job.h"

typedef enum tsi_job_type {
  TSI_JOB_SECTION, /* an object; its members follow it in the table */
  TSI_JOB_PATH,    /* char [TS_JOB_TEXT], not empty */
  TSI_JOB_NAME,    /* char [TS_JOB_NAME], not empty; one of `words` where there are any */
  TSI_JOB_FILE,    /* char [TS_JOB_NAME], a name without folders; `words` are its endings */
  TSI_JOB_WORD,    /* an enumeration: the value of one of `words` */
  TSI_JOB_BOOL,    /* bool */
  TSI_JOB_INTEGER, /* int64_t within the limits */
  TSI_JOB_REAL,    /* double within the limits */
  TSI_JOB_TIME,    /* int64_t seconds, written "HH:MM:SS" */
  TSI_JOB_PAIRS    /* uint8_t [TS_JOB_PAIRS][2] at `offset`, their count at `count_offset` */
} tsi_job_type;

/** What may stand in place of a number; it is stored as 0 (a null integer: as TS_JOB_UNSET). */
typedef enum tsi_job_special { TSI_JOB_PLAIN, TSI_JOB_AUTO, TSI_JOB_NULL } tsi_job_special;

typedef struct tsi_job_word {
  const char *word; /* NULL ends a list */
  int value;
  bool planned; /* in the design, but not in this version: refused by name */
} tsi_job_word;

typedef struct tsi_job_key {
  const char *path; /* "output.trajectory.every" */
  tsi_job_type type;
  tsi_job_special special;
  size_t offset, count_offset; /* in ts_job */
  double min, max;             /* of numbers; infinite: no limit */
  bool above;                  /* min itself is excluded */
  const tsi_job_word *words;
  const char *fallback; /* JSON text of the default; NULL: the key is required */
  const char *needs;    /* a key of the same section that must be given with this one, or NULL */
  const char *unit;     /* for people, or NULL */
  const char *doc;      /* one line */
  bool planned;         /* the whole key is refused as not supported */
} tsi_job_key;

extern const tsi_job_key tsi_job_keys[]; /* md/job_table.c */
extern const int tsi_job_key_count;

/** The key with exactly this path, or NULL. */
const tsi_job_key *tsi_job_key_find(const char *path);

/** The key a person probably meant: fewest typing errors in the last part of the path, the same
 * section first; never a planned one. */
const tsi_job_key *tsi_job_key_nearest(const char *path);

/** The last part of a key's path. */
const char *tsi_job_key_name(const tsi_job_key *key);

/** True when `key` is a direct member of the section `path` ("" is the root). */
bool tsi_job_key_is_in(const tsi_job_key *key, const char *path);

/** What the key takes, in words, e.g. `an integer from 1 to 10 or "auto"`.  Returns `out`. */
const char *tsi_job_key_expects(const tsi_job_key *key, char *out, size_t size);

/** Seconds as "HH:MM:SS".  Returns `out`. */
const char *tsi_job_show_time(int64_t seconds, char out[32]);

#endif
