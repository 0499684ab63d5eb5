/* SPDX-License-Identifier: MIT
 *
 * A structure read in slices is the structure read by one rank, cut into blocks of ids; a mistake
 * is the same message on every rank wherever it stands.  Run by mpirun (test_files_ranks.sh). */
#include "comm/blocks.h"
#include "md/xyz.h"
#include "tests/ranks_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static ts_world *world;
static ts_ranks ranks;
static char folder[64], path[96];

/* How a file is odd. */
enum { PLAIN, CRLF, UNENDED, FRAMES, BLANKS, MOVING, KINDS };

static void put_frame(FILE *f, long n, int kind)
{
  const char *end = kind == CRLF ? "\r\n" : "\n";
  fprintf(f, "%ld%sLattice=\"11 0 0 3 12 0 -4 2 9\" Properties=species:S:1:pos:R:3%s%s", n, end,
          kind == MOVING ? ":velo:R:3:junk:R:1 velocity_unit=A/ps charge=-1" : "", end);
  for (long i = 0; i < n; ++i) {
    fprintf(f, "%s %.*f %g %g", ts_element_symbol((uint8_t)(1 + i % 90)), (int)(i % 13), i * 0.37,
            i * 1e-3, -0.1 * (double)(i % 1000));
    if (kind == MOVING) fprintf(f, " %g 1 -%g %ld", i * 0.01, i * 0.02, i);
    if (i < n - 1 || kind != UNENDED) fputs(end, f);
  }
}

static void put_file(long n, int kind)
{
  if (ranks.first == 0) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int frame = 0; frame < (kind == FRAMES ? 3 : 1); ++frame)
      put_frame(f, n, kind);
    if (kind == BLANKS) fputs("\n \t\n\n", f);
    assert_int_equal(fclose(f), 0);
  }
  MPI_Barrier(ranks.comm);
}

/* What one rank reads; the caller owns it. */
static ts_system *read_whole(void)
{
  ts_system *s = NULL;
  if (ts_xyz_read(&alone, path, &s)) fail_msg("%s", ts_error_message());
  return s;
}

static void compare(long n, int kind)
{
  put_file(n, kind);
  ts_system *s = NULL, *whole = read_whole();
  if (ts_xyz_read(&ranks, path, &s)) fail_msg("%s", ts_error_message());
  const size_t first = (size_t)ts_block_first(n, ranks.size, ranks.first),
               count = (size_t)ts_block_first(n, ranks.size, ranks.first + 1) - first;
  assert_int_equal(s->natoms, n);
  assert_int_equal(s->n, count);
  assert_string_equal(s->title, whole->title);
  assert_memory_equal(s->cell.h, whole->cell.h, sizeof s->cell.h);
  assert_int_equal(s->has_velocities, kind == MOVING);
  assert_int_equal(s->charge, kind == MOVING ? -1 : 0);
  if (count) {
    assert_memory_equal(s->gid, whole->gid + first, count * sizeof *s->gid);
    assert_memory_equal(s->x, whole->x + first, count * sizeof *s->x);
    assert_memory_equal(s->image, whole->image + first, count * sizeof *s->image);
    assert_memory_equal(s->v, whole->v + first, count * sizeof *s->v);
    assert_memory_equal(s->mass, whole->mass + first, count * sizeof *s->mass);
    assert_memory_equal(s->z, whole->z + first, count);
  }
  ts_system_destroy(&s);
  ts_system_destroy(&whole);
  MPI_Barrier(ranks.comm);
}

static void same_atoms(void **state)
{
  (void)state;
  static const long sizes[] = {1, 2, 7, 100, 3001};
  for (int kind = 0; kind < KINDS; ++kind)
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k)
      compare(sizes[k], kind);
  compare(8000L * ranks.size, MOVING); /* several windows */
  compare(2000L * ranks.size, FRAMES);
}

/* Change the file from `offset` of line `line` on: by other text, or by its end. */
static void spoil(long line, long offset, const char *text)
{
  if (ranks.first == 0) {
    char *data, *at;
    long size = sample_load(path, &data);
    for (at = data; line > 1; --line)
      at = strchr(at, '\n') + 1;
    at += offset;
    if (text)
      memcpy(at, text, strlen(text));
    else
      size = at - data;
    sample_store(path, data, size);
    free(data);
  }
  MPI_Barrier(ranks.comm);
}

/* The failure is that of one rank, word by word. */
static void refuse(const char *says)
{
  char message[1024];
  ts_system *s = NULL;
  assert_int_equal(ts_xyz_read(&alone, path, &s), TS_ERR_INPUT);
  snprintf(message, sizeof message, "%s", ts_error_message());
  if (!strstr(message, says)) fail_msg("%s: expected %s", message, says);
  assert_int_equal(ts_xyz_read(&ranks, path, &s), TS_ERR_INPUT);
  assert_string_equal(ts_error_message(), message);
  assert_null(s);
  MPI_Barrier(ranks.comm);
}

static void same_mistakes(void **state)
{
  (void)state;
  enum { N = 200 };
  static const long lines[] = {3, 4, 50, 101, 102, 103, 150, 201, 202};
  char place[16];
  for (size_t k = 0; k < sizeof lines / sizeof *lines; ++k) {
    snprintf(place, sizeof place, ".xyz:%ld: ", lines[k]);
    put_file(N, PLAIN);
    spoil(lines[k], 0, "?");
    refuse(place);
    put_file(N, FRAMES); /* of two mistakes the first counts */
    spoil(202, 4, "?");
    spoil(lines[k], 4, "?");
    refuse(place);
    if (lines[k] < 150) continue; /* so short a file has no room for N atoms */
    put_file(N, CRLF);
    spoil(lines[k], 0, NULL);
    refuse(place);
    put_file(N, CRLF);
    spoil(lines[k], 1, NULL);
    refuse(place);
  }
  put_file(N, PLAIN);
  spoil(1, 0, "199");
  refuse("behind the last atom");
  spoil(1, 0, "201");
  refuse("the file ends where atom 201 of 201");
  spoil(1, 0, "0  ");
  refuse("0 atoms");
  put_file(N, MOVING);
  spoil(2, 0, "Lattice=?");
  refuse(":2: ");
  if (ranks.first == 0) assert_int_equal(unlink(path), 0);
  MPI_Barrier(ranks.comm);
  refuse("cannot be opened");
  snprintf(path, sizeof path, "%s", folder);
  refuse("not a regular file");
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_atoms), cmocka_unit_test(same_mistakes)};
  if (ranks_sample_begin(&world, &ranks, folder, path)) return 1;
  strcpy(strrchr(path, '.'), ".xyz");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return ranks_sample_end(&world, &ranks, folder, failed);
}
