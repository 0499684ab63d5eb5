/* SPDX-License-Identifier: MIT
 *
 * Reordering moves every array of a system alike, wrapping keeps atoms where they are, and a broken
 * system is named by atom. */
#include "md/system.h"
#include "md/ts_units.h"
#include "runtime/error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ATOMS = 257 };

static ts_system *make(void)
{
  ts_system *s = NULL;
  const double h[3][3] = {{11, 0, 0}, {3, 12, 0}, {-4, 2, 9}};
  assert_int_equal(ts_system_create(ATOMS, ATOMS, &s), 0);
  assert_int_equal(ts_cell_init(&s->cell, h, NULL), 0);
  for (ts_lidx i = 0; i < ATOMS; ++i) {
    s->z[i] = (uint8_t)(1 + i % TS_ELEMENTS);
    s->mass[i] = ts_element_mass(s->z[i]);
    for (int k = 0; k < 3; ++k) {
      s->x[i][k] = 31.7 * sin(i + 2.1 * k);
      s->v[i][k] = i + 0.1 * k;
      s->image[i][k] = i - 7 * k;
    }
  }
  return s;
}

/* A shuffle by a linear congruential generator. */
static void shuffle(ts_lidx *order)
{
  uint64_t state = 12345;
  for (ts_lidx i = 0; i < ATOMS; ++i)
    order[i] = i;
  for (ts_lidx i = ATOMS - 1; i > 0; --i) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const ts_lidx j = (ts_lidx)((state >> 33) % (uint64_t)(i + 1)), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

static void test_permute(void **state)
{
  (void)state;
  ts_lidx order[ATOMS];
  shuffle(order);
  ts_system *s = make(), *old = make();
  assert_int_equal(ts_system_permute(s, order), 0);
  for (ts_lidx k = 0; k < ATOMS; ++k) {
    const ts_lidx i = order[k];
    assert_int_equal(s->gid[k], i);
    assert_int_equal(s->z[k], old->z[i]);
    assert_true(s->mass[k] == old->mass[i]);
    assert_memory_equal(s->x[k], old->x[i], sizeof *s->x);
    assert_memory_equal(s->v[k], old->v[i], sizeof *s->v);
    assert_memory_equal(s->image[k], old->image[i], sizeof *s->image);
  }
  assert_int_equal(ts_system_check(s), 0);
  /* refused, and nothing has moved */
  order[3] = order[4];
  assert_int_equal(ts_system_permute(old, order), TS_ERR_ARG);
  order[3] = -1;
  assert_int_equal(ts_system_permute(old, order), TS_ERR_ARG);
  for (ts_lidx i = 0; i < ATOMS; ++i)
    assert_int_equal(old->gid[i], i);
  ts_system_destroy(&s);
  ts_system_destroy(&old);
}

static void unwrapped(const ts_system *s, ts_lidx i, double u[3])
{
  double shift[3];
  ts_cell_shift(&s->cell, s->image[i], shift);
  for (int k = 0; k < 3; ++k)
    u[k] = s->x[i][k] + shift[k];
}

static void test_wrap(void **state)
{
  (void)state;
  ts_system *s = make(), *old = make();
  assert_int_equal(ts_system_wrap(s), 0);
  for (ts_lidx i = 0; i < ATOMS; ++i) {
    double f[3], here[3], there[3];
    ts_cell_fraction(&s->cell, s->x[i], f);
    unwrapped(s, i, here);
    unwrapped(old, i, there);
    for (int k = 0; k < 3; ++k) {
      assert_true(f[k] > -1e-12 && f[k] < 1.0 + 1e-12);
      assert_true(fabs(here[k] - there[k]) < 1e-10);
    }
  }
  ts_system_destroy(&s);
  ts_system_destroy(&old);
}

static void test_check(void **state)
{
  (void)state;
  ts_system *s = make();
  s->x[4][1] = NAN;
  assert_int_equal(ts_system_check(s), TS_ERR_SIMULATION);
  assert_non_null(strstr(ts_error_message(), "atom 5 is at"));
  s->x[4][1] = 0.0;
  s->v[5][2] = INFINITY;
  assert_int_equal(ts_system_check(s), TS_ERR_SIMULATION);
  assert_non_null(strstr(ts_error_message(), "atom 6 has the velocity"));
  s->v[5][2] = 0.0;
  s->gid[6] = 3;
  assert_int_equal(ts_system_check(s), TS_ERR_SIMULATION);
  assert_non_null(strstr(ts_error_message(), "two atoms have the id 4"));
  s->gid[6] = 6;
  s->z[7] = 0;
  assert_int_equal(ts_system_check(s), TS_ERR_SIMULATION);
  ts_system_destroy(&s);
  ts_system_destroy(&s);
  assert_int_equal(ts_system_create(3, 4, &s), TS_ERR_ARG);
  assert_null(s);
}

static void test_elements(void **state)
{
  (void)state;
  ts_system *s = make();
  int64_t count[TS_ELEMENTS + 1];
  ts_system_count(s, count);
  for (int z = 1; z <= TS_ELEMENTS; ++z) {
    const char *symbol = ts_element_symbol(z);
    assert_int_equal(ts_element_number(symbol, strlen(symbol)), z);
    assert_true(ts_element_mass(z) > 1.0 * TS_ATOMIC_MASS);
    assert_int_equal(count[z], ATOMS / TS_ELEMENTS + (z <= ATOMS % TS_ELEMENTS));
  }
  assert_int_equal(ts_element_number("cl", 2), 0);
  assert_int_equal(ts_element_number("", 0), 0);
  assert_null(ts_element_symbol(0));
  assert_null(ts_element_symbol(119));
  /* 1 u = 1.66053906660e-27 kg */
  assert_true(fabs(ts_element_mass(8) / 15.999 - 103.642696526805) < 1e-9);
  ts_system_destroy(&s);
}

/* Room is made seldom, keeps every atom, and never beyond the whole system. */
static void test_reserve(void **state)
{
  (void)state;
  ts_system *s = make(), *old = make();
  s->natoms = 1000;
  assert_int_equal(s->capacity, ATOMS);
  assert_int_equal(ts_system_reserve(s, ATOMS), 0);
  assert_int_equal(s->capacity, ATOMS);
  assert_int_equal(ts_system_reserve(s, 500), 0);
  assert_true(s->capacity >= 501 && s->capacity < 600);
  assert_int_equal(ts_system_reserve(s, 990), 0);
  assert_int_equal(s->capacity, 1000);
  assert_int_equal(ts_system_reserve(s, 1001), TS_ERR_ARG);
  assert_int_equal(s->n, ATOMS);
  assert_memory_equal(s->x, old->x, ATOMS * sizeof *s->x);
  assert_memory_equal(s->image, old->image, ATOMS * sizeof *s->image);
  assert_memory_equal(s->v, old->v, ATOMS * sizeof *s->v);
  assert_memory_equal(s->mass, old->mass, ATOMS * sizeof *s->mass);
  assert_memory_equal(s->z, old->z, ATOMS * sizeof *s->z);
  assert_memory_equal(s->gid, old->gid, ATOMS * sizeof *s->gid);
  s->n = 1000; /* all of the room can be written */
  memset(s->x, 0, 1000 * sizeof *s->x);
  memset(s->gid, 0, 1000 * sizeof *s->gid);
  ts_system_destroy(&s);
  ts_system_destroy(&old);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_permute),  cmocka_unit_test(test_wrap),    cmocka_unit_test(test_check),
      cmocka_unit_test(test_elements), cmocka_unit_test(test_reserve),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
