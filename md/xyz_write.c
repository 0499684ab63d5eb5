/* SPDX-License-Identifier: MIT
 *
 * Extended XYZ trajectories.  Each rank puts its part of a frame together in memory and hands it
 * over in one write, behind those of the lower ranks; a kill rarely cuts a frame or leaves a hole
 * in one, and a resume drops such a frame together with the later ones.  Numbers
 * have as many digits as their bits need.  Positions are unwrapped, because the format has no place
 * for image counts; a reader that wants them in the cell can wrap them. */
#include "comm/share.h"
#include "comm/sparse.h"
#include "comm/world.h"
#include "md/trajectory_impl.h"
#include "md/xyz_header.h"
#include "runtime/error.h"
#include "runtime/file.h"
#include "runtime/number.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct xyz {
  ts_trajectory base;
  int fd;
  int64_t end; /* of the file */
} xyz;

/* ---- writing ---- */

static void put_number(FILE *out, double value)
{
  char text[TSI_NUMBER_TEXT];
  tsi_number_write(value, text);
  fputs(text, out);
}

static void put_key(FILE *out, const char *key, double value)
{
  if (isnan(value)) return;
  fprintf(out, " %s=", key);
  put_number(out, value);
}

/* Nine numbers in quotes. */
static void put_matrix(FILE *out, const char *key, const double m[3][3])
{
  fprintf(out, "%s=\"", key);
  for (int k = 0; k < 9; ++k) {
    if (k) fputc(' ', out);
    put_number(out, m[k / 3][k % 3]);
  }
  fputc('"', out);
}

static void put_values(FILE *out, const ts_frame_values *v)
{
  const double *s = v->stress; /* xx yy zz yz xz xy */
  put_key(out, "energy", v->potential_energy);
  put_key(out, "kinetic_energy", v->kinetic_energy);
  fputs(" energy_unit=eV", out);
  put_key(out, "temperature", v->temperature);
  if (!isnan(v->temperature)) fputs(" temperature_unit=K", out);
  put_key(out, "pressure", v->pressure);
  if (!isnan(v->pressure)) fputs(" pressure_unit=bar", out);
  if (isnan(s[0])) return;
  fputc(' ', out);
  put_matrix(out, "stress",
             (const double[3][3]){{s[0], s[5], s[4]}, {s[5], s[1], s[3]}, {s[4], s[3], s[2]}});
  fputs(" stress_unit=eV/A^3", out);
}

static void put_header(FILE *out, const xyz *t, const ts_frame *frame)
{
  const ts_system *s = frame->system;
  const bool *p = s->cell.periodic;
  if (p[0] || p[1] || p[2]) {
    put_matrix(out, "Lattice", s->cell.h);
    fputc(' ', out);
  }
  fprintf(out, "Properties=species:S:1:pos:R:3:id:I:1%s%s pbc=\"%c %c %c\" step=%ld time=",
          t->base.velocities ? ":velo:R:3" : "", t->base.forces ? ":forces:R:3" : "",
          p[0] ? 'T' : 'F', p[1] ? 'T' : 'F', p[2] ? 'T' : 'F', (long)frame->step);
  put_number(out, frame->time);
  fputs(" time_unit=fs length_unit=A", out);
  if (t->base.velocities) fputs(" velocity_unit=A/fs", out);
  if (t->base.forces) fputs(" force_unit=eV/A", out);
  if (frame->values) put_values(out, frame->values);
  if (s->has_charge) fprintf(out, " charge=%d multiplicity=%d", s->charge, s->multiplicity);
  fputc('\n', out);
}

static void put_vector(FILE *out, const double a[3])
{
  for (int k = 0; k < 3; ++k) {
    fputc(' ', out);
    put_number(out, a[k]);
  }
}

static void put_atoms(FILE *out, const xyz *t, const ts_cell *cell)
{
  const tsi_rows *rows = &t->base.rows;
  for (ts_lidx i = 0; i < rows->n; ++i) {
    double x[3];
    ts_cell_shift(cell, rows->image[i], x);
    for (int k = 0; k < 3; ++k)
      x[k] += rows->x[i][k];
    fputs(ts_element_symbol(rows->z[i]), out);
    put_vector(out, x);
    fprintf(out, " %ld", (long)(rows->first + i + 1));
    if (rows->v) put_vector(out, rows->v[i]);
    if (rows->f) put_vector(out, rows->f[i]);
    fputc('\n', out);
  }
}

/* This rank's part of a frame, from malloc. */
static int compose(const xyz *t, const ts_frame *frame, char **text, size_t *size)
{
  FILE *out = open_memstream(text, size);
  if (!out) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for a frame", t->base.path);
  if (t->base.ranks.first == 0) {
    fprintf(out, "%ld\n", (long)t->base.natoms);
    put_header(out, t, frame);
  }
  put_atoms(out, t, &frame->system->cell);
  if (ferror(out) | fclose(out))
    return tsi_fail(TS_ERR_MEMORY, "%s: no memory for a frame", t->base.path);
  return 0;
}

/* Bytes of the lower ranks, and of all.  Collective. */
static int find_place(const ts_ranks *ranks, int64_t size, int64_t *before, int64_t *total)
{
  *before = 0;
  *total = size;
  if (ranks->size == 1) return 0;
  TS_TRY_MPI(MPI_Exscan(&size, before, 1, MPI_INT64_T, MPI_SUM, ranks->comm));
  TS_TRY_MPI(MPI_Allreduce(&size, total, 1, MPI_INT64_T, MPI_SUM, ranks->comm));
  if (ranks->first == 0) *before = 0; /* which MPI leaves undefined */
  return 0;
}

static int write_frame(ts_trajectory *trajectory, const ts_frame *frame)
{
  xyz *t = (xyz *)trajectory;
  const ts_ranks *ranks = &trajectory->ranks;
  char *text = NULL;
  size_t size = 0;
  int64_t before, total;
  int status = tsi_ranks_agree(ranks, compose(t, frame, &text, &size));
  if (!status) status = find_place(ranks, (int64_t)size, &before, &total);
  if (!status) {
    status = tsi_file_write(trajectory->path, t->fd, text, size, t->end + before);
    status = tsi_ranks_agree(ranks, status);
  }
  if (!status) t->end += total;
  free(text);
  return status;
}

static int sync_own(const xyz *t)
{
  if (fsync(t->fd) && errno != EINVAL)
    return tsi_fail(TS_ERR_IO, "%s: cannot reach the disk: %s", t->base.path, strerror(errno));
  return 0;
}

static int sync_file(ts_trajectory *trajectory)
{
  return tsi_ranks_agree(&trajectory->ranks, sync_own((const xyz *)trajectory));
}

/* Not collective: the part of this rank. */
static int close_own(xyz *t)
{
  int status = 0;
  if (t->fd >= 0) {
    status = sync_own(t);
    if (close(t->fd) && !status)
      status = tsi_fail(TS_ERR_IO, "%s: cannot be closed: %s", t->base.path, strerror(errno));
  }
  tsi_trajectory_end(&t->base);
  return status;
}

static int close_file(ts_trajectory *trajectory)
{
  const ts_ranks ranks = trajectory->ranks;
  return tsi_ranks_agree(&ranks, close_own((xyz *)trajectory));
}

static const tsi_trajectory_ops ops = {write_frame, sync_file, close_file};

/* ---- going on ---- */

typedef struct scanner {
  FILE *stream;
  char *line; /* with its end; owned */
  size_t room;
  int64_t number; /* of the line, from 1 */
} scanner;

/* The next whole line; false when there is none: a line without an end has been cut, NUL bytes are
 * a hole where another rank's part is missing. */
static bool next_line(scanner *s)
{
  const ssize_t length = getline(&s->line, &s->room, s->stream);
  if (length < 1 || s->line[length - 1] != '\n' || memchr(s->line, '\0', (size_t)length))
    return false;
  s->line[length - 1] = '\0';
  ++s->number;
  return true;
}

/* Read over one frame of ours; *whole is false where the file ends before it does. */
static int scan_frame(scanner *s, const xyz *t, int64_t *step, bool *whole)
{
  tsi_xyz_header header;
  int64_t count = 0;
  *whole = next_line(s);
  if (!*whole) return 0;
  if (!tsi_number_int64(s->line, strlen(s->line), &count) || count != t->base.natoms)
    return tsi_fail(TS_ERR_INPUT, "%s:%ld: '%.40s'; expected a frame of %ld atoms to go on with",
                    t->base.path, (long)s->number, s->line, (long)t->base.natoms);
  *whole = next_line(s);
  if (!*whole) return 0;
  if (tsi_xyz_header_parse(s->line, &header) || !header.has_step)
    return tsi_fail(TS_ERR_INPUT, "%s:%ld: expected a frame with its step to go on with",
                    t->base.path, (long)s->number);
  *step = header.step;
  for (int64_t i = 0; i < count && *whole; ++i)
    *whole = next_line(s);
  return 0;
}

/* Offset behind the last frame that stays. */
static int find_end(scanner *s, xyz *t, int64_t resume, int64_t *end)
{
  int64_t step = 0;
  bool whole = true;
  *end = 0;
  for (;;) {
    TS_TRY(scan_frame(s, t, &step, &whole));
    if (!whole || step > resume) return 0;
    if (step <= t->base.last_step)
      return tsi_fail(TS_ERR_INPUT, "%s:%ld: step %ld behind step %ld", t->base.path,
                      (long)s->number, (long)step, (long)t->base.last_step);
    t->base.last_step = step;
    *end = ftello(s->stream);
  }
}

/* Rank 0: what stays of the old file. */
static int cut(xyz *t, int64_t resume)
{
  scanner s = {.stream = fopen(t->base.path, "rbe")};
  if (!s.stream)
    return tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", t->base.path, strerror(errno));
  const int status = find_end(&s, t, resume, &t->end);
  free(s.line);
  fclose(s.stream);
  if (status) return status;
  if (truncate(t->base.path, t->end))
    return tsi_fail(TS_ERR_IO, "%s: cannot be continued: %s", t->base.path, strerror(errno));
  return 0;
}

/* Rank 0: an empty file. */
static int create(const xyz *t)
{
  const int fd = open(t->base.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return tsi_fail(TS_ERR_IO, "%s: cannot be created: %s", t->base.path, strerror(errno));
  close(fd);
  return 0;
}

static int open_own(xyz *t)
{
  t->fd = open(t->base.path, O_WRONLY | O_CLOEXEC);
  if (t->fd < 0)
    return tsi_fail(TS_ERR_IO, "%s: cannot be opened: %s", t->base.path, strerror(errno));
  return 0;
}

static int open_file(xyz *t, const ts_trajectory_params *params)
{
  const ts_ranks *ranks = &t->base.ranks;
  bool resumes;
  int status = 0;
  TS_TRY(tsi_trajectory_resumes(&t->base, params, &resumes));
  if (ranks->first == 0) status = resumes ? cut(t, params->resume) : create(t);
  TS_TRY(tsi_ranks_agree(ranks, status));
  TS_TRY(ts_ranks_share(ranks, &t->end, sizeof t->end));
  TS_TRY(ts_ranks_share(ranks, &t->base.last_step, sizeof t->base.last_step));
  return tsi_ranks_agree(ranks, open_own(t));
}

int tsi_xyz_open(const ts_ranks *ranks, const ts_trajectory_params *params, const ts_system *system,
                 ts_trajectory **out)
{
  *out = NULL;
  xyz *t = calloc(1, sizeof *t);
  int status = t ? 0 : tsi_fail(TS_ERR_MEMORY, "%s: no memory to open it", params->path);
  if (t) {
    t->fd = -1;
    t->base.ops = &ops;
  }
  status = tsi_ranks_agree(ranks, status);
  if (!status) status = tsi_trajectory_begin(&t->base, ranks, params, system);
  if (!status) status = open_file(t, params);
  if (!status) {
    *out = &t->base;
    return 0;
  }
  if (t && t->fd >= 0) close(t->fd);
  if (t) tsi_trajectory_end(&t->base);
  return status;
}
