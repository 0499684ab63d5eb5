/* SPDX-License-Identifier: MIT
 *
 * A job: what one run is told.  The struct mirrors the job file key by key (docs/job-file.md); the
 * table of md/job_table.c says for every key its type, limits, default and meaning, and everything
 * else follows from that table: reading, `--set`, the filled-in job that `tessera check` prints and
 * the JSON Schema.  A job is plain data without pointers: copy it freely, send it as bytes. */
#ifndef TS_JOB_H
#define TS_JOB_H

#include "comm/collective.h"
#include "neighbor/curve.h"
#include "neighbor/edges.h"
#include "neighbor/level1.h"
#include "runtime/types.h"

#include <stdio.h>

enum {
  TS_JOB_TEXT = 1024, /* bytes of a path, with its end */
  TS_JOB_NAME = 64,   /* bytes of a name, with its end */
  TS_JOB_PAIRS = 16   /* pairs of elements in an RDF */
};

/** Stored in an integer whose key is null: not given. */
#define TS_JOB_UNSET INT64_MIN

typedef enum ts_task { TS_TASK_MD, TS_TASK_ENERGY } ts_task;
typedef enum ts_ensemble { TS_ENSEMBLE_NVE, TS_ENSEMBLE_NVT } ts_ensemble;
typedef enum ts_thermostat { TS_THERMOSTAT_LANGEVIN } ts_thermostat;
typedef enum ts_velocity_source { TS_VELOCITIES_DRAW, TS_VELOCITIES_READ } ts_velocity_source;
typedef enum ts_sort_kind { TS_SORT_DISTRIBUTED, TS_SORT_ROOT } ts_sort_kind;
typedef enum ts_cut_kind { TS_CUT_ATOMS, TS_CUT_EDGES } ts_cut_kind;
typedef enum ts_precision { TS_PRECISION_FLOAT, TS_PRECISION_DOUBLE } ts_precision;
typedef enum ts_trajectory_format { TS_TRAJECTORY_H5MD, TS_TRAJECTORY_XYZ } ts_trajectory_format;

typedef struct ts_job {
  char path[TS_JOB_TEXT]; /* of the job file itself */

  char structure[TS_JOB_TEXT], model[TS_JOB_TEXT]; /* as written: see ts_job_input */
  ts_task task;
  int64_t steps;
  double timestep;              /* [fs] */
  int64_t charge, multiplicity; /* both TS_JOB_UNSET, or both given */
  int64_t max_walltime;         /* [s]; 0: no limit */

  struct {
    ts_ensemble kind;
    ts_thermostat thermostat;
    double temperature; /* [K] */
    double friction;    /* [1/ps] */
  } ensemble;

  struct {
    ts_velocity_source source;
    double temperature; /* [K] */
    int64_t seed;       /* also of the thermostat's noise */
  } velocities;

  struct {
    double skin; /* [Å] */
    int64_t rebuild;
    ts_search_backend backend;
    ts_level1_scheme level1;
    int64_t chunk;
    struct {
      ts_route_mode mode;
      int64_t seed;
    } routing;
  } neighbors;

  struct {
    ts_curve curve;
    ts_normalization normalization;
    int64_t period; /* 0: automatic */
    ts_sort_kind sort;
    ts_cut_kind cut;
    double slack; /* with TS_CUT_EDGES: a rank has at most (1 + slack) N/K atoms */
  } partition;

  struct {
    ts_precision precision;
    char matrix[TS_JOB_NAME]; /* a back end of models/matrix.h, or auto */
    int64_t tile_atoms;       /* 0: automatic */
    bool overlap;
    double recompute; /* 0..1: part of the tiles that keep nothing for backward */
    bool replay;
    bool reproducible;
    ts_algorithm collectives;
    ts_transport transfers;
    char scheduler[TS_JOB_NAME];
    int64_t workers;         /* 0: automatic */
    double radial_tolerance; /* 0: automatic */
  } execution;

  struct {
    char directory[TS_JOB_TEXT]; /* as written: see ts_job_output */
    int64_t log_every;
    struct {
      char file[TS_JOB_NAME];
      ts_trajectory_format format; /* by the file's extension */
      int64_t every;               /* 0: no trajectory */
      bool velocities, forces;
    } trajectory;
    struct {
      char file[TS_JOB_NAME];
      int64_t every; /* 0: only when stopped early and at the end */
      int64_t keep;
    } checkpoint;
    struct {
      char file[TS_JOB_NAME];
      int64_t npairs;                /* 0: no RDF */
      uint8_t pair[TS_JOB_PAIRS][2]; /* atomic numbers */
      double r_max, bin;             /* [Å] */
      int64_t every;                 /* 0: no RDF */
    } rdf;
  } output;
} ts_job;

/** Read and check a job file.
 * Not collective (each caller reads).
 * \param [in]  path  The job file.
 * \param [in]  nset  Overrides in `set`.
 * \param [in]  set   [nset] "key=value" with the full key path, applied after the file in order;
 *                    the value is JSON, or bare text where the key takes text.
 * \param [out] out   Every key set, to its default where absent; untouched bytes are zero.
 * \return 0; TS_ERR_INPUT (file, line, key path, value and expectation in the message),
 * TS_ERR_UNSUPPORTED (known to the design, but not there yet) or TS_ERR_MEMORY. */
int ts_job_read(const char *path, int nset, const char *const *set, ts_job *out);

/** The same from `length` bytes in memory; `path` names them and is what paths are relative to. */
int ts_job_parse(const char *text, size_t length, const char *path, int nset,
                 const char *const *set, ts_job *out);

/** Write a job with every key, as JSON that reads back to the same job.  Not collective.
 * \return 0, TS_ERR_MEMORY or TS_ERR_IO. */
int ts_job_print(const ts_job *job, FILE *file);

/** Write the JSON Schema (draft 2020-12) of job files.  Not collective.
 * \return 0, TS_ERR_MEMORY or TS_ERR_IO. */
int ts_job_print_schema(FILE *file);

/** Write the table of all keys as Markdown, for docs/job-file.md.  Not collective. */
void ts_job_print_table(FILE *file);

/** Where an input file named in the job is: relative names start at the job file's folder.
 * \return 0 or TS_ERR_INPUT (path too long). */
int ts_job_input(const ts_job *job, const char *name, char out[TS_JOB_TEXT]);

/** Where an output file is: `name` inside output.directory; "" gives the directory itself.
 * \return 0 or TS_ERR_INPUT (path too long). */
int ts_job_output(const ts_job *job, const char *name, char out[TS_JOB_TEXT]);

#endif
