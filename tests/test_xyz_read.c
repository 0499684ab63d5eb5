/* SPDX-License-Identifier: MIT
 *
 * Which (extended) XYZ files are read, what they mean, and what is said about the others. */
#include "comm/peers.h"
#include "md/ts_units.h"
#include "md/xyz.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tests/comma_locale.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static int read_bytes(const char *text, size_t size, ts_system **out)
{
  FILE *stream = fmemopen((void *)(uintptr_t)text, size, "rb");
  assert_non_null(stream);
  const int status = tsi_xyz_read_stream(stream, (int64_t)size, "t", out);
  fclose(stream);
  return status;
}

static ts_system *accept(const char *text)
{
  ts_system *s = NULL;
  if (read_bytes(text, strlen(text), &s)) fail_msg("%s\nin: %s", ts_error_message(), text);
  assert_int_equal(ts_system_check(s), 0);
  return s;
}

static const struct {
  const char *text, *message; /* a part of the message */
} bad[] = {
    {"", "t:1: the file ends where the number of atoms"},
    {"\n1\n\nH 0 0 0\n", "t:1: '': expected the number of atoms alone"},
    {"1 2\n\nH 0 0 0\n", "t:1: '1 2'"},
    {"1.0\n\nH 0 0 0\n", "t:1:"},
    {"0x1\n\nH 0 0 0\n", "t:1:"},
    {"0\n\n", "t:1: 0 atoms"},
    {"-3\n\n", "t:1: -3 atoms"},
    {"4000000000\n\nH 0 0 0\n", "room for at most"},
    {"99999999999999999999\n\nH 0 0 0\n", "t:1:"},
    {"1", "t:2: the file ends"},
    {"2\n\nH 0 0 0\n", "t:4: the file ends where atom 2 of 2"},
    {"1\n\nH 0 0\n", "t:3: 3 values; expected at least 4"},
    {"1\n\nHx 0 0 0\n", "t:3: 'Hx' is no element"},
    {"1\n\nCL 0 0 0\n", "t:3: 'CL' is no element"},
    {"1\n\n119 0 0 0\n", "'119' is no element"},
    {"1\n\n0 0 0 0\n", "'0' is no element"},
    {"1\n\nH nan 0 0\n", "t:3: 'nan' is not a number"},
    {"1\n\nH 0 inf 0\n", "'inf'"},
    {"1\n\nH 0 0 1e999\n", "'1e999'"},
    {"1\n\nH 0x10 0 0\n", "'0x10'"},
    {"1\n\nH 0 1,5 0\n", "'1,5'"},
    {"1\n\nH 0 0 1.5*^-6\n", "'1.5*^-6'"},
    {"1\n\nH 1e9 0 0\n", "out of range"},
    {"1\nLattice=\"1e-3 0 0 0 1e-3 0 0 0 1e-3\"\nH 1e8 0 0\n", "t:3: the atom is too many cells"},
    /* the cell is understood or refused */
    {"1\nLattice=9 0 0 0 9 0 0 0 9\nH 0 0 0\n", "t:2: Lattice=9: expected nine numbers in quotes"},
    {"1\nLattice=[9,0,0,0,9,0,0,0,9]\nH 0 0 0\n", "t:2: Lattice="},
    {"1\nLattice=\"9 0 0 0 9 0 0 0\"\nH 0 0 0\n", "Lattice has 8 numbers"},
    {"1\nLattice=\"9 0 0 0 9 0 0 0 9 9\"\nH 0 0 0\n", "Lattice has 10 numbers"},
    {"1\nLattice=\"9 0 0 0 nine 0 0 0 9\"\nH 0 0 0\n", "'nine' in Lattice"},
    {"1\nLattice=\"9 0 0 0 9 0 0 0 9\nH 0 0 0\n", "t:2: Lattice is mentioned"},
    {"1\nid='x Lattice=\"9 0 0 0 9 0 0 0 9\"\nH 0 0 0\n", "t:2: Lattice is mentioned"},
    {"1\nLattice \"9 0 0 0 9 0 0 0 9\"\nH 0 0 0\n", "t:2: Lattice is mentioned"},
    {"1\nLattice=\"9 0 0 0 9 0 0 0 9\" Lattice=\"8 0 0 0 8 0 0 0 8\"\nH 0 0 0\n", "given twice"},
    {"1\nLattice=\"0 0 0 0 0 0 0 0 0\"\nH 0 0 0\n", "t:2:"},
    {"1\nLattice=\"9 0 0 9 0 0 0 0 9\"\nH 0 0 0\n", "t:2:"},
    {"1\npbc=\"T T T\"\nH 0 0 0\n", "t:2: pbc is periodic, but there is no Lattice"},
    {"1\nLattice=\"9 0 0 0 9 0 0 0 9\" pbc=T\nH 0 0 0\n", "pbc has 1 values"},
    {"1\nLattice=\"9 0 0 0 9 0 0 0 9\" pbc=\"T T x\"\nH 0 0 0\n", "'x' in pbc"},
    /* columns */
    {"1\nProperties=species:S:1\nH\n", "no column pos:R:3"},
    {"1\nProperties=pos:R:3\n0 0 0\n", "neither species:S:1 nor Z:I:1"},
    {"1\nProperties=species:S:1:pos:R\nH 0 0 0\n", "t:2: Properties="},
    {"1\nProperties=species:S:1:pos:R:2\nH 0 0\n", "Properties: pos:R:2; expected pos:R:3"},
    {"1\nProperties=species:S:1:pos:S:3\nH 0 0 0\n", "pos:S:3; expected pos:R:3"},
    {"1\nProperties=species:S:1:pos:R:3:x:R:-1\nH 0 0 0\n", "Properties="},
    {"1\nProperties=species:S:1:pos:R:3:x:R:999999999\nH 0 0 0\n", "Properties="},
    {"1\nProperties=species:S:1:pos:R:3:pos:R:3\nH 0 0 0 0 0 0\n", "second column"},
    {"1\nProperties=species:S:1:pos:R:3\nH 0 0 0 7\n", "t:3: 5 values; expected 4"},
    {"1\nProperties=species:S:1:pos:R:3:q:R:1\nH 0 0 0\n", "t:3: 4 values; expected 5"},
    {"1\nProperties=species:S:1:Z:I:1:pos:R:3\nH 2 0 0 0\n", "the atomic number is 2"},
    /* nothing is guessed about velocities */
    {"1\nProperties=species:S:1:pos:R:3:velo:R:3\nH 0 0 0 1 2 3\n", "velocities without a unit"},
    {"1\nProperties=species:S:1:pos:R:3:vel:R:3 velocity_unit=au\nH 0 0 0 1 2 3\n",
     "velocity_unit=au: expected A/fs"},
    {"1\nProperties=species:S:1:pos:R:3:velo:R:3 velocity_unit=A/fs\nH 0 0 0 1 2 x\n", "velocity"},
    {"1\nProperties=species:S:1:pos:R:3:masses:R:1\nH 0 0 0 0\n", "a mass of 0 u"},
    {"1\ncharge=0.5\nH 0 0 0\n", "charge=0.5: expected a whole number"},
    {"1\ncharge=1 multiplicity=0\nH 0 0 0\n", "multiplicity=0: out of range"},
    /* what follows the first frame is the end or another frame */
    {"1\n\nH 0 0 0\nH 0 0 1\n", "t:4: 'H 0 0 1' behind the last atom"},
    {"1\n\nH 0 0 0\n1341.3 1403.4 1525.1\nC#N\nInChI=1S\n", "t:4: '1341.3 1403.4 1525.1'"},
    {"1\n\nH 0 0 0\n\n \t\nend\n", "t:6: 'end'"},
};

static void test_bad(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
    ts_system *s = NULL;
    const size_t size = strlen(bad[k].text);
    const int status = size ? read_bytes(bad[k].text, size, &s) : read_bytes("x", 1, &s);
    if (status != TS_ERR_INPUT || s) fail_msg("accepted (%d): %s", status, bad[k].text);
    if (size && !strstr(ts_error_message(), bad[k].message))
      fail_msg("for\n%s\nthe message '%s' lacks '%s'", bad[k].text, ts_error_message(),
               bad[k].message);
  }
  ts_system *s = NULL;
  assert_int_equal(read_bytes("1\n\nH 0 0 0\0\n", 12, &s), TS_ERR_INPUT);
  assert_non_null(strstr(ts_error_message(), "t:3: a NUL byte"));
  const ts_ranks alone = ts_ranks_virtual(1);
  assert_int_equal(ts_xyz_read(&alone, "/nonexistent.xyz", &s), TS_ERR_INPUT);
  assert_int_equal(ts_xyz_read(&alone, "/tmp", &s), TS_ERR_INPUT);
}

static const char *const good[] = {
    "1\n\nH 0 0 0",
    " 1 \r\ntitle\r\nH\t0\t0\t0\r\n\r\n \r\n",
    "1\nit's a plain comment, 'tis = true\nH 0 0 0 -0.3 extra\n",
    "1\nBravais lattice of silicon; properties unknown\nSi 0 0 0\n",
    "1\n\nH .5 -1. +1.5E-3\n2\n\nH 0 0 0\nH 0 0 1\n",
    "1\n\nH 1d0 1.5D+2 0\n",
    "1\n\n14 0 0 0\n",
    "1\nProperties=x:S:2:pos:R:3:Z:I:1:L:L:1\na b 0 0 0 6 T\n",
    "1\nproperties=SPECIES:S:1:POS:R:3 PBC=\"0 false F\"\nFe 0 0 0\n",
};

static void test_good(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof good / sizeof *good; ++k) {
    ts_system *s = accept(good[k]);
    assert_int_equal(s->natoms, 1);
    assert_false(s->cell.periodic[0] || s->cell.periodic[1] || s->cell.periodic[2]);
    assert_false(s->has_velocities || s->has_charge);
    ts_system_destroy(&s);
    assert_null(s);
  }
}

/* Lattice without Properties, and beside tokens that confuse others. */
static void test_cells(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "Lattice=\"9 0 0 1 8 0 0 2 7\" pbc=\"T T F\"",
      "generated=2024-05-05T14:23:15 id=mp-111 shear=\"1 -2 a=b\" Lattice=\"9 0 0 1 8 0 0 2 7\" "
      "-x- "
      "pbc='True True False'",
      "Lattice = {9 0 0\t1 8 0 0 2 7} x={[1 {2}] \"} pbc={1 1 0} y=\"\\\"\" =z ==",
      "lattice='9. 0 0 1 0.8E1 0 0 2 7d0' Pbc=\"t t f\" \"quoted key\"=\"a b\" flag",
  };
  for (size_t k = 0; k < sizeof lines / sizeof *lines; ++k) {
    char text[512];
    snprintf(text, sizeof text, "1\n%s\nO 10 0 0\n", lines[k]);
    ts_system *s = accept(text);
    const double h[9] = {9, 0, 0, 1, 8, 0, 0, 2, 7};
    assert_memory_equal(s->cell.h, h, sizeof h);
    assert_true(s->cell.periodic[0] && s->cell.periodic[1] && !s->cell.periodic[2]);
    assert_true(fabs(s->x[0][0] - 1.0) < 1e-12);
    assert_int_equal(s->image[0][0], 1);
    ts_system_destroy(&s);
  }
  ts_system *s = accept("1\nLattice=\"9 0 0 0 9 0 0 0 9\"\nO 0 0 0\n"); /* as ASE reads it */
  assert_true(s->cell.periodic[0] && s->cell.periodic[1] && s->cell.periodic[2]);
  ts_system_destroy(&s);
}

/* One molecule 100 cells away is the same molecule. */
static void test_far(void **state)
{
  (void)state;
  ts_system *s = accept("2\nLattice=\"12.5 0 0 0 12.5 0 0 0 12.5\"\nO 1 2 3\nO 1251 -1248 12503\n");
  for (int k = 0; k < 3; ++k)
    assert_true(fabs(s->x[0][k] - s->x[1][k]) < 1e-9);
  const int32_t image[3] = {100, -100, 1000};
  assert_memory_equal(s->image[1], image, sizeof image);
  ts_system_destroy(&s);
}

static void test_motion(void **state)
{
  (void)state;
  ts_system *s = accept(
      "1\nProperties=species:S:1:velo:R:3:pos:R:3 velocity_unit=A/ps charge=-1 multiplicity=2.0\n"
      "H 1 -2 3 0 0 0\n");
  assert_true(s->has_velocities && s->has_charge && s->charge == -1 && s->multiplicity == 2);
  assert_true(s->v[0][1] == -2.0 * 1e-3);
  assert_true(s->mass[0] == 1.008 * TS_ATOMIC_MASS);
  ts_system_destroy(&s);
  /* ASE: 1 u moving at 1 sqrt(eV/u) has 0.5 eV */
  s = accept("1\nProperties=species:S:1:pos:R:3:momenta:R:3:masses:R:1\nH 0 0 0 2 0 0 2\n");
  assert_true(fabs(0.5 * s->mass[0] * s->v[0][0] * s->v[0][0] - 1.0) < 1e-14);
  assert_true(s->mass[0] == 2.0 * TS_ATOMIC_MASS);
  ts_system_destroy(&s);
}

static void test_locale(void **state)
{
  (void)state;
  if (!use_comma_locale()) return;
  ts_system *s = accept("1\nLattice=\"9.5 0 0 0 9.5 0 0 0 9.5\"\nO 1.25 0 0\n");
  assert_true(s->cell.h[0][0] == 9.5 && s->x[0][0] == 1.25);
  ts_system_destroy(&s);
  assert_int_equal(read_bytes("1\n\nO 1,25 0 0\n", 14, &s), TS_ERR_INPUT);
  setlocale(LC_ALL, "C");
}

int main(void)
{
  ts_log_set_level(TS_LOG_ERROR);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad), cmocka_unit_test(test_good),   cmocka_unit_test(test_cells),
      cmocka_unit_test(test_far), cmocka_unit_test(test_motion), cmocka_unit_test(test_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
