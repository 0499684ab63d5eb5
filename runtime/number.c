/* SPDX-License-Identifier: MIT
 *
 * strtod and printf of the C library in a C locale of our own, which costs a switch of a pointer of
 * the thread. */
#include "runtime/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t tsi_number_plain(void)
{
  pthread_once(&c_locale_once, make_c_locale);
  return uselocale(c_locale);
}

/* [+-] digits [. digits] [exponent], at least one digit before the exponent and one in it. */
static bool is_decimal(const char *s)
{
  size_t digits = 0;
  if (*s == '+' || *s == '-') ++s;
  for (; *s >= '0' && *s <= '9'; ++s)
    ++digits;
  if (*s == '.')
    for (++s; *s >= '0' && *s <= '9'; ++s)
      ++digits;
  if (!digits) return false;
  if (*s != 'e') return !*s;
  ++s;
  if (*s == '+' || *s == '-') ++s;
  if (!*s) return false;
  while (*s >= '0' && *s <= '9')
    ++s;
  return !*s;
}

bool tsi_number_double(const char *token, size_t length, double *out)
{
  char copy[64];
  if (length >= sizeof copy) return false;
  for (size_t i = 0; i < length; ++i)
    copy[i] = token[i] != '\0' && strchr("EdD", token[i]) ? 'e' : token[i];
  copy[length] = '\0';
  if (strlen(copy) != length || !is_decimal(copy)) return false;
  const locale_t old = tsi_number_plain();
  const double value = strtod(copy, NULL);
  uselocale(old);
  if (!isfinite(value)) return false;
  *out = value;
  return true;
}

bool tsi_number_int64(const char *token, size_t length, int64_t *out)
{
  char copy[24];
  if (length >= sizeof copy || !length) return false;
  memcpy(copy, token, length);
  copy[length] = '\0';
  const size_t sign = copy[0] == '+' || copy[0] == '-';
  if (length == sign || strspn(copy + sign, "0123456789") != length - sign) return false;
  errno = 0;
  const long long value = strtoll(copy, NULL, 10);
  if (errno) return false;
  *out = value;
  return true;
}

int tsi_number_write(double value, char text[TSI_NUMBER_TEXT])
{
  const locale_t old = tsi_number_plain();
  int length = 0;
  for (int digits = 15; digits <= 17; ++digits) {
    length = snprintf(text, TSI_NUMBER_TEXT, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  uselocale(old);
  return length;
}
