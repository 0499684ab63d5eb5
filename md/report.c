/* SPDX-License-Identifier: MIT
 *
 * The screen, log.csv, the progress bar and the summary; see report.h. */
#include "md/report.h"

#include "runtime/aside.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/number.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_EVERY = 20, BAR_WIDTH = 30, PATH_ROOM = 4096 };
static const double redraw_seconds = 0.2;

struct ts_report {
  ts_report_params params; /* directory: our copy */
  char *directory;
  FILE *csv;
  locale_t plain;         /* a point for every number */
  double start, row_time; /* clock at the start and at the last row */
  int64_t row_step, step; /* step of the last row, and the latest known */
  int64_t rows;           /* on the screen */
  bool bar;               /* standard error is a terminal */
  bool bar_shown;
  double bar_time;
  ts_json_writer *summary;
};

/* The columns of log.csv, in order; those that depend on the clock come last. */
static const char csv_header[] =
    "step,time_ps,potential_eV,kinetic_eV,total_eV,conserved_eV,temperature_K,pressure_bar,"
    "drift_ueV_per_atom_ps,temperature_on_step_K,stress_xx_eV_per_A3,stress_yy_eV_per_A3,"
    "stress_zz_eV_per_A3,stress_yz_eV_per_A3,stress_xz_eV_per_A3,stress_xy_eV_per_A3,"
    "momentum_x_eV_fs_per_A,momentum_y_eV_fs_per_A,momentum_z_eV_fs_per_A,max_force_eV_per_A,"
    "max_force_atom,steps_per_s,atoms_per_s\n";

static const char screen_header[] =
    "     step  time/ps       E_pot/eV     E_kin/eV      E_cons/eV      T/K     P/bar  ueV/at/ps"
    "  atoms/s\n";

double ts_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int file_path(const char *directory, const char *name, char path[PATH_ROOM])
{
  if (snprintf(path, PATH_ROOM, "%s/%s", directory, name) >= PATH_ROOM)
    return tsi_fail(TS_ERR_INPUT, "the path of %s is longer than %d bytes", name, PATH_ROOM - 1);
  return 0;
}

/* A whole row of log.csv of a step up to `last`. */
static bool keep_row(const char *line, ssize_t length, int64_t last)
{
  int columns = 0, expected = 0;
  int64_t step;
  for (const char *c = csv_header; *c; c++)
    expected += *c == ',';
  for (const char *c = line; *c; c++)
    columns += *c == ',';
  return length > 0 && line[length - 1] == '\n' && columns == expected &&
         tsi_number_int64(line, strcspn(line, ","), &step) && step <= last;
}

/* Copy the header and the rows to keep, up to the first that is later or not whole. */
static int copy_rows(FILE *from, FILE *to, const char *path, int64_t last)
{
  char *line = NULL;
  size_t room = 0;
  int status = 0;
  ssize_t length = getline(&line, &room, from);
  if (length < 0 || strcmp(line, csv_header))
    status = tsi_fail(TS_ERR_INPUT,
                      "%s:1: not the columns that this version writes; move the file away to "
                      "resume without it",
                      path);
  while (!status) {
    fwrite(line, 1, (size_t)length, to);
    length = getline(&line, &room, from);
    if (length < 0 || !keep_row(line, length, last)) break;
  }
  free(line);
  return status;
}

/* Rewrite an old log.csv without what the resumed run will write again; *found: there is one. */
static int drop_later_rows(const char *path, int64_t last, bool *found)
{
  ts_aside aside = {0};
  FILE *old = fopen(path, "re");
  *found = old != NULL;
  if (!old && errno == ENOENT) return 0;
  if (!old) return tsi_fail(TS_ERR_IO, "%s: cannot read it: %s", path, strerror(errno));
  int status = ts_aside_open(path, &aside);
  if (!status) status = copy_rows(old, aside.file, path, last);
  fclose(old);
  if (!status) return ts_aside_commit(&aside);
  ts_aside_abandon(&aside);
  return status;
}

bool ts_report_exists(const char *directory)
{
  char path[PATH_ROOM];
  if (file_path(directory, "log.csv", path)) return false;
  FILE *file = fopen(path, "re");
  if (!file) return false;
  int lines = 0;
  for (int c; lines < 2 && (c = getc(file)) != EOF;)
    lines += c == '\n';
  fclose(file);
  return lines == 2;
}

static int csv_check(ts_report *report)
{
  if (!fflush(report->csv) && !ferror(report->csv)) return 0;
  return tsi_fail(TS_ERR_IO, "%s/log.csv: cannot write it: %s", report->directory, strerror(errno));
}

int ts_report_sync(ts_report *report)
{
  TS_TRY(csv_check(report));
  if (!fsync(fileno(report->csv)) || errno == EINVAL) return 0; /* EINVAL: not a plain file */
  return tsi_fail(TS_ERR_IO, "%s/log.csv: cannot reach the disk: %s", report->directory,
                  strerror(errno));
}

static int open_csv(ts_report *report)
{
  char path[PATH_ROOM];
  bool found = false;
  TS_TRY(file_path(report->directory, "log.csv", path));
  if (report->params.resume) TS_TRY(drop_later_rows(path, report->params.first_step, &found));
  report->csv = fopen(path, found ? "ae" : "we");
  if (!report->csv) return tsi_fail(TS_ERR_IO, "%s: cannot write it: %s", path, strerror(errno));
  if (!found) fputs(csv_header, report->csv);
  return csv_check(report);
}

int ts_report_create(const ts_report_params *params, ts_report **out)
{
  int status = 0;
  ts_report *report = calloc(1, sizeof *report);
  *out = NULL;
  if (!report) return tsi_fail(TS_ERR_MEMORY, "no memory for the report");
  report->params = *params;
  report->directory = strdup(params->directory);
  report->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!report->directory || !report->plain) {
    status = tsi_fail(TS_ERR_MEMORY, "no memory for the report");
    goto fail;
  }
  TS_TRY_GOTO(status, open_csv(report), fail);
  report->bar = isatty(STDERR_FILENO);
  report->start = report->row_time = ts_clock();
  report->row_step = report->step = params->first_step;
  *out = report;
  return 0;
fail:
  ts_report_destroy(&report);
  return status;
}

void ts_report_destroy(ts_report **report)
{
  ts_report *r = *report;
  *report = NULL;
  if (!r) return;
  ts_report_pause(r);
  if (r->csv) fclose(r->csv);
  if (r->plain) freelocale(r->plain);
  ts_json_writer_destroy(&r->summary);
  free(r->directory);
  free(r);
}

static void csv_number(FILE *csv, double value)
{
  char text[TSI_NUMBER_TEXT];
  if (isfinite(value)) tsi_number_write(value, text);
  fprintf(csv, ",%s", isfinite(value) ? text : "nan");
}

static void write_csv_row(FILE *csv, const ts_observables *o, double steps_per_s, double atoms)
{
  const double first[] = {o->time,     o->epot,      o->ekin,
                          o->etot,     o->conserved, o->temperature,
                          o->pressure, o->drift,     o->temperature_on_step};
  fprintf(csv, "%" PRId64, o->step);
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    csv_number(csv, first[i]);
  for (int c = 0; c < 6; c++)
    csv_number(csv, o->stress[c]);
  for (int k = 0; k < 3; k++)
    csv_number(csv, o->momentum[k]);
  csv_number(csv, o->max_force);
  fprintf(csv, ",%" PRId64, o->max_force_gid + 1);
  csv_number(csv, steps_per_s);
  csv_number(csv, steps_per_s * atoms);
  fputc('\n', csv);
}

/* A slope over less time [ps] is mostly noise: a dash on the screen. */
static const double drift_from = 1.0;

/* A number of the screen table, or a dash. */
static void screen_number(int width, int decimals, double value)
{
  char text[64] = "-";
  if (isfinite(value)) snprintf(text, sizeof text, "%.*f", decimals, value);
  printf("%*s", width, text);
}

static void print_row(ts_report *report, const ts_observables *o, double atoms_per_s)
{
  const locale_t before = uselocale(report->plain);
  if (report->rows++ % HEADER_EVERY == 0) fputs(screen_header, stdout);
  printf("%9" PRId64, o->step);
  screen_number(9, 4, o->time);
  screen_number(15, 4, o->epot);
  screen_number(13, 4, o->ekin);
  screen_number(15, 4, o->conserved);
  screen_number(9, 2, o->temperature);
  screen_number(10, 1, o->pressure);
  screen_number(11, 3, o->time >= drift_from ? o->drift : NAN);
  screen_number(9, 0, atoms_per_s);
  fputc('\n', stdout);
  fflush(stdout);
  uselocale(before);
}

int ts_report_row(ts_report *report, const ts_observables *observed)
{
  const double now = ts_clock(), atoms = (double)report->params.natoms;
  double steps_per_s = NAN; /* no step was made before the row of step 0 */
  if (observed->step > report->row_step && now > report->row_time)
    steps_per_s = (double)(observed->step - report->row_step) / (now - report->row_time);
  report->row_time = now;
  report->row_step = report->step = observed->step;
  write_csv_row(report->csv, observed, steps_per_s, atoms);
  ts_report_pause(report);
  print_row(report, observed, steps_per_s * atoms);
  return csv_check(report);
}

static void duration_text(double seconds, char *text, size_t room)
{
  const long s = lrint(fmin(seconds, 3e8));
  if (s < 60)
    snprintf(text, room, "%ld s", s);
  else if (s < 3600)
    snprintf(text, room, "%ld min %02ld s", s / 60, s % 60);
  else if (s < 86400)
    snprintf(text, room, "%ld h %02ld min", s / 3600, s / 60 % 60);
  else
    snprintf(text, room, "%ld d %02ld h", s / 86400, s / 3600 % 24);
}

static void draw_bar(ts_report *report, double now)
{
  const int64_t made = report->step - report->params.first_step;
  const int64_t left = report->params.last_step - report->step;
  const double part = (double)report->step / (double)report->params.last_step;
  char bar[BAR_WIDTH + 1], time_left[32];
  memset(bar, ' ', BAR_WIDTH);
  memset(bar, '=', (size_t)(part * BAR_WIDTH));
  bar[BAR_WIDTH] = '\0';
  duration_text((double)left * (now - report->start) / (double)made, time_left, sizeof time_left);
  fprintf(stderr, "\r\033[K[%s] %3d %%  step %" PRId64 " of %" PRId64 ", %s left", bar,
          (int)(100.0 * part), report->step, report->params.last_step, time_left);
  fflush(stderr);
  report->bar_shown = true;
  ts_log_set_bar(true);
}

void ts_report_progress(ts_report *report, int64_t step)
{
  report->step = step;
  if (!report->bar || step <= report->params.first_step || step > report->params.last_step) return;
  const double now = ts_clock();
  if (report->bar_shown && now < report->bar_time + redraw_seconds) return;
  report->bar_time = now;
  draw_bar(report, now);
}

void ts_report_pause(ts_report *report)
{
  if (!report->bar_shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  report->bar_shown = false;
  ts_log_set_bar(false);
}

static int64_t steps_made(const ts_report *report)
{
  return report->step - report->params.first_step;
}

static void print_phase(const ts_report *report, const char *name, double seconds, double wall)
{
  const double steps = (double)steps_made(report);
  printf("%-24s%12.3f", name, seconds);
  screen_number(14, 6, steps > 0.0 ? seconds / steps : NAN);
  screen_number(9, 1, wall > 0.0 ? 100.0 * seconds / wall : NAN);
  fputc('\n', stdout);
}

void ts_report_phases(ts_report *report, int nphases, const ts_phase *phase)
{
  const double wall = ts_clock() - report->start;
  const locale_t before = uselocale(report->plain);
  double other = wall;
  ts_report_pause(report);
  printf("\n%-24s%12s%14s%9s\n", "phase", "seconds", "per step", "share/%");
  for (int i = 0; i < nphases; i++) {
    print_phase(report, phase[i].name, phase[i].seconds, wall);
    other -= phase[i].seconds;
  }
  print_phase(report, "other", fmax(other, 0.0), wall);
  print_phase(report, "wall", wall, wall);
  fflush(stdout);
  uselocale(before);
}

void ts_report_spreads(ts_report *report, int ranks, int n, const ts_spread *spread)
{
  const locale_t before = uselocale(report->plain);
  char title[32];
  snprintf(title, sizeof title, "of %d ranks", ranks);
  printf("\n%-24s%14s%14s%14s\n", title, "least", "mean", "most");
  for (int i = 0; i < n; i++) {
    const ts_spread *s = &spread[i];
    printf("%-24s%14.6g%14.6g%14.6g\n", s->name, s->min / s->unit, s->mean / s->unit,
           s->max / s->unit);
  }
  fflush(stdout);
  uselocale(before);
}

static void put_last(ts_json_writer *w, const ts_observables *o)
{
  ts_json_open_object(w, "last");
  ts_json_put_int(w, "step", o->step);
  ts_json_put_number(w, "time_ps", o->time);
  ts_json_put_number(w, "potential_eV", o->epot);
  ts_json_put_number(w, "kinetic_eV", o->ekin);
  ts_json_put_number(w, "total_eV", o->etot);
  ts_json_put_number(w, "conserved_eV", o->conserved);
  ts_json_put_number(w, "temperature_K", o->temperature);
  ts_json_put_number(w, "pressure_bar", o->pressure);
  ts_json_put_numbers(w, "stress_eV_per_A3", 6, o->stress);
  ts_json_put_numbers(w, "virial_stress_eV_per_A3", 6, o->virial_stress);
  ts_json_put_numbers(w, "momentum_eV_fs_per_A", 3, o->momentum);
  ts_json_put_number(w, "drift_ueV_per_atom_ps", o->drift);
  ts_json_put_number(w, "max_force_eV_per_A", o->max_force);
  ts_json_close(w);
}

static void put_mean(ts_json_writer *w, const ts_observer *o, bool pressure)
{
  const double count = o->count;
  ts_json_open_object(w, "mean");
  ts_json_put_number(w, "observations", count);
  ts_json_put_number(w, "temperature_K", o->mean_temperature);
  ts_json_put_number(w, "temperature_deviation_K", sqrt(o->temperature_m2 / fmax(count, 1.0)));
  ts_json_put_number(w, "pressure_bar", pressure ? o->mean_pressure : NAN);
  ts_json_put_number(w, "pressure_deviation_bar",
                     pressure ? sqrt(o->pressure_m2 / fmax(count, 1.0)) : NAN);
  ts_json_put_number(w, "heat_from_thermostat_eV", o->heat);
  ts_json_close(w);
}

int ts_report_summary_begin(ts_report *report, const char *status, const ts_observables *last,
                            const ts_observer *observer, int nphases, const ts_phase *phase,
                            ts_json_writer **out)
{
  const double wall = ts_clock() - report->start;
  const double speed = wall > 0.0 ? (double)steps_made(report) / wall : NAN;
  *out = NULL;
  ts_json_writer_destroy(&report->summary);
  TS_TRY(ts_json_writer_create(&report->summary));
  ts_json_writer *w = *out = report->summary;
  ts_json_put_string(w, "status", status);
  ts_json_put_int(w, "atoms", report->params.natoms);
  ts_json_put_int(w, "step", report->step);
  ts_json_put_int(w, "steps_made", steps_made(report));
  ts_json_put_number(w, "wall_s", wall);
  ts_json_put_number(w, "steps_per_s", speed);
  ts_json_put_number(w, "atoms_per_s", speed * (double)report->params.natoms);
  if (last) put_last(w, last);
  if (observer) put_mean(w, observer, last && isfinite(last->pressure));
  ts_json_open_object(w, "phases_s");
  for (int i = 0; i < nphases; i++)
    ts_json_put_number(w, phase[i].name, phase[i].seconds);
  ts_json_close(w);
  return 0;
}

int ts_report_summary_end(ts_report *report)
{
  char path[PATH_ROOM];
  TS_TRY(file_path(report->directory, "summary.json", path));
  const int status = ts_json_writer_save(report->summary, path);
  ts_json_writer_destroy(&report->summary);
  return status;
}
