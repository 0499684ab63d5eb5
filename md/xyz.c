/* SPDX-License-Identifier: MIT
 *
 * One pass over the lines of the first frame, or of a part of it.  Memory follows the size of the
 * file, never a number that the file claims. */
#include "md/xyz_impl.h"

#include "md/ts_units.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/number.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Farther out is a mistake: squares of distances must stay exact enough to compare. */
#define FARTHEST 1e8 /* [Å] */

typedef tsi_xyz_reader reader;

typedef struct token {
  const char *at;
  size_t length;
} token;

static int fail(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(const reader *r, const char *format, ...)
{
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return tsi_fail(TS_ERR_INPUT, "%s:%ld: %s", r->origin, (long)r->number, what);
}

/* The message of a function below, with the place in front. */
static int fail_again(const reader *r)
{
  char what[512];
  snprintf(what, sizeof what, "%s", ts_error_message());
  return fail(r, "%s", what);
}

/* Read a line; *more is false at the end of the file. */
static int next_line(reader *r, bool *more)
{
  errno = 0;
  const ssize_t length = getline(&r->line, &r->room, r->stream);
  *more = length >= 0;
  ++r->number;
  if (length < 0) {
    if (errno == ENOMEM) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for a line", r->origin);
    return ferror(r->stream) ? fail(r, "cannot be read: %s", strerror(errno)) : 0;
  }
  r->used += length;
  if (memchr(r->line, '\0', (size_t)length)) return fail(r, "a NUL byte; this is not a text file");
  size_t end = (size_t)length;
  if (end && r->line[end - 1] == '\n') --end;
  if (end && r->line[end - 1] == '\r') --end;
  r->line[end] = '\0';
  return 0;
}

static int expect_line(reader *r, const char *what)
{
  bool more;
  TS_TRY(next_line(r, &more));
  return more ? 0 : fail(r, "the file ends where %s was expected", what);
}

static bool next_token(const char **text, token *out)
{
  *text += strspn(*text, " \t");
  *out = (token){*text, strcspn(*text, " \t")};
  *text += out->length;
  return out->length > 0;
}

static int shown(token t)
{
  return t.length > 40 ? 40 : (int)t.length;
}

/* The line holds one whole number and nothing else. */
static bool is_count(const char *line, int64_t *count)
{
  token first, second;
  return next_token(&line, &first) && tsi_number_int64(first.at, first.length, count) &&
         !next_token(&line, &second);
}

int tsi_xyz_read_count(reader *r, ts_gidx *natoms)
{
  int64_t count = 0;
  TS_TRY(expect_line(r, "the number of atoms"));
  if (!is_count(r->line, &count))
    return fail(r, "'%.40s': expected the number of atoms alone", r->line);
  if (count < 1) return fail(r, "%ld atoms; expected at least one", (long)count);
  /* a row has at least four values of one character */
  const int64_t most = (r->size - r->used) / 8 + 1;
  if (count > most || count > INT32_MAX)
    return fail(r, "%ld atoms, but the file has room for at most %ld", (long)count,
                (long)(most < INT32_MAX ? most : INT32_MAX));
  *natoms = count;
  return 0;
}

static int use_header(reader *r, tsi_xyz_header *header, ts_system *s)
{
  if (tsi_xyz_header_parse(r->line, header)) return fail_again(r);
  if (header->first[TSI_XYZ_VELOCITY] >= 0) {
    if (header->velocity_factor == 0.0)
      return fail(r,
                  "velocities without a unit: add velocity_unit=A/fs (or A/ps, nm/ps, m/s) to "
                  "this line, or drop the column");
    if (header->first[TSI_XYZ_MOMENTUM] >= 0)
      return fail(r, "both velocities and momenta; expected one of them");
  }
  if (ts_cell_init(&s->cell, header->has_lattice ? header->h : NULL, header->periodic))
    return fail_again(r);
  if (header->has_multiplicity && !header->has_charge)
    return fail(r, "multiplicity without charge; expected both");
  s->has_charge = header->has_charge;
  s->charge = header->charge;
  s->multiplicity = header->multiplicity;
  s->has_velocities = header->first[TSI_XYZ_VELOCITY] >= 0 || header->first[TSI_XYZ_MOMENTUM] >= 0;
  if (!header->has_lattice)
    ts_log(TS_LOG_INFO, "%s: no Lattice: an isolated system without periodic images", r->origin);
  return 0;
}

static int read_number(const reader *r, token t, const char *what, double *out)
{
  return tsi_number_double(t.at, t.length, out)
             ? 0
             : fail(r, "'%.*s' is not a number (%s)", shown(t), t.at, what);
}

/* An atomic number, or a symbol where those are allowed. */
static int read_element(const reader *r, token t, bool symbol, uint8_t *z)
{
  int64_t number = symbol ? ts_element_number(t.at, t.length) : 0;
  if (number == 0 && !tsi_number_int64(t.at, t.length, &number)) number = 0;
  if (number < 1 || number > TS_ELEMENTS)
    return fail(r, "'%.*s' is no element; expected %s", shown(t), t.at,
                symbol ? "a symbol like Cl or an atomic number" : "an atomic number");
  *z = (uint8_t)number;
  return 0;
}

static int read_elements(const reader *r, const token *species, const token *number, uint8_t *z)
{
  uint8_t other;
  if (!species->length) return read_element(r, *number, false, z);
  TS_TRY(read_element(r, *species, true, z));
  if (!number->length) return 0;
  TS_TRY(read_element(r, *number, false, &other));
  if (other != *z)
    return fail(r, "the species is %.*s, but the atomic number is %d", shown(*species), species->at,
                other);
  return 0;
}

/* Where the values of each column stand in this line. */
typedef struct values {
  token column[TSI_XYZ_COLUMNS][3];
} values;

static int split_row(const reader *r, const tsi_xyz_header *h, values *out)
{
  static const int width[TSI_XYZ_COLUMNS] = {1, 1, 3, 3, 3, 1};
  memset(out, 0, sizeof *out);
  const char *rest = r->line;
  token t;
  int count = 0;
  for (; next_token(&rest, &t); ++count)
    for (int c = 0; c < TSI_XYZ_COLUMNS; ++c) {
      const int k = h->first[c] < 0 ? -1 : count - h->first[c];
      if (k >= 0 && k < width[c]) out->column[c][k] = t;
    }
  /* without Properties, what stands behind the positions is not ours */
  if (count < h->width || (h->has_properties && count > h->width))
    return fail(r, "%d values; expected %s%d%s", count, h->has_properties ? "" : "at least ",
                h->width, h->has_properties ? " (see Properties)" : " (species x y z)");
  return 0;
}

static int read_motion(const reader *r, const tsi_xyz_header *h, const values *row, ts_system *s,
                       ts_lidx i)
{
  double mass; /* [u] */
  s->mass[i] = ts_element_mass(s->z[i]);
  if (h->first[TSI_XYZ_MASS] >= 0) {
    TS_TRY(read_number(r, row->column[TSI_XYZ_MASS][0], "mass", &mass));
    if (!(mass > 0.0 && mass < 1e6)) return fail(r, "a mass of %g u; expected more than 0", mass);
    s->mass[i] = mass * TS_ATOMIC_MASS;
  }
  if (!s->has_velocities) return 0;
  const bool momenta = h->first[TSI_XYZ_MOMENTUM] >= 0;
  /* ASE: p in sqrt(u eV), so p/m in sqrt(eV/u), which is Å per sqrt(u/eV) Å = sqrt(103.6) fs */
  const double factor = momenta ? sqrt(TS_ATOMIC_MASS) / s->mass[i] : h->velocity_factor;
  const token *t = row->column[momenta ? TSI_XYZ_MOMENTUM : TSI_XYZ_VELOCITY];
  for (int k = 0; k < 3; ++k) {
    TS_TRY(read_number(r, t[k], momenta ? "momentum" : "velocity", &s->v[i][k]));
    s->v[i][k] *= factor;
    if (!(fabs(s->v[i][k]) < 1e3)) /* 1e3 Å/fs is a third of the speed of light */
      return fail(r, "a velocity of %g Å/fs is out of range", s->v[i][k]);
  }
  return 0;
}

static int read_row(reader *r, const tsi_xyz_header *h, ts_system *s, ts_lidx i)
{
  char what[64];
  values row;
  snprintf(what, sizeof what, "atom %ld of %ld", (long)s->gid[i] + 1, (long)s->natoms);
  TS_TRY(expect_line(r, what));
  TS_TRY(split_row(r, h, &row));
  TS_TRY(read_elements(r, row.column[TSI_XYZ_SPECIES], row.column[TSI_XYZ_NUMBER], &s->z[i]));
  for (int k = 0; k < 3; ++k) {
    TS_TRY(read_number(r, row.column[TSI_XYZ_POSITION][k], "position", &s->x[i][k]));
    if (!(fabs(s->x[i][k]) <= FARTHEST))
      return fail(r, "a position of %g Å is out of range (%g)", s->x[i][k], FARTHEST);
  }
  if (ts_cell_wrap(&s->cell, 1, &s->x[i], &s->image[i]))
    return fail(r, "the atom is too many cells away");
  return read_motion(r, h, &row, s, i);
}

int tsi_xyz_read_header(reader *r, ts_gidx natoms, ts_gidx first, ts_lidx n, tsi_xyz_header *header,
                        ts_system **out)
{
  ts_system *s = NULL;
  *out = NULL;
  TS_TRY(expect_line(r, "the line with Lattice and Properties"));
  TS_TRY(ts_system_create(natoms, n, &s));
  snprintf(s->title, sizeof s->title, "%s", r->line);
  const int status = use_header(r, header, s);
  if (status) {
    ts_system_destroy(&s);
    return status;
  }
  for (ts_lidx i = 0; i < n; ++i)
    s->gid[i] = first + i;
  *out = s;
  return 0;
}

int tsi_xyz_read_rows(reader *r, const tsi_xyz_header *header, ts_system *s)
{
  for (ts_lidx i = 0; i < s->n; ++i)
    TS_TRY(read_row(r, header, s, i));
  return 0;
}

/* Nothing, or something that begins like another frame. */
int tsi_xyz_read_rest(reader *r, int64_t *next)
{
  bool more = true;
  int64_t count;
  *next = 0;
  do {
    TS_TRY(next_line(r, &more));
  } while (more && !r->line[strspn(r->line, " \t")]);
  if (!more) return 0;
  if (!is_count(r->line, &count) || count < 1)
    return fail(r, "'%.40s' behind the last atom; expected the end, or the next frame's number",
                r->line);
  *next = r->number;
  return 0;
}

void tsi_xyz_log_rest(const char *origin, int64_t next)
{
  if (next)
    ts_log(TS_LOG_INFO, "%s: more frames from line %ld on; the first one is used", origin,
           (long)next);
}

static int read_frame(reader *r, ts_system **out)
{
  tsi_xyz_header header;
  ts_gidx natoms;
  int64_t next;
  TS_TRY(tsi_xyz_read_count(r, &natoms));
  TS_TRY(tsi_xyz_read_header(r, natoms, 0, (ts_lidx)natoms, &header, out));
  int status = tsi_xyz_read_rows(r, &header, *out);
  if (!status) status = tsi_xyz_read_rest(r, &next);
  if (status)
    ts_system_destroy(out);
  else
    tsi_xyz_log_rest(r->origin, next);
  return status;
}

int tsi_xyz_read_stream(FILE *stream, int64_t size, const char *origin, ts_system **out)
{
  reader r = {.stream = stream, .origin = origin, .size = size};
  *out = NULL;
  const int status = read_frame(&r, out);
  free(r.line);
  return status;
}
