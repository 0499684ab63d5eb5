/* SPDX-License-Identifier: MIT
 *
 * A recursive descent over the text, at most 64 calls deep.  It allocates only the list of marks
 * and touches every byte once; positions are counted only when something is wrong. */
#include "runtime/json_scan.h"

#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tsi_json_fail(const tsi_json_scan *scan, size_t offset, const char *format, ...)
{
  int line = 1, column = 1;
  for (size_t i = 0; i < offset; ++i) {
    const unsigned char c = (unsigned char)scan->text[i];
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((c & 0xC0) != 0x80) {
      ++column; /* the first byte of a character */
    }
  }
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return tsi_fail(TS_ERR_INPUT, "%s:%d:%d: %s", scan->origin, line, column, what);
}

/* The next byte, or -1 at the end. */
static int peek(const tsi_json_scan *scan)
{
  return scan->at < scan->length ? (unsigned char)scan->text[scan->at] : -1;
}

static bool is_digit(int c)
{
  return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(int c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int unexpected(const tsi_json_scan *scan, const char *expected)
{
  const int c = peek(scan);
  if (c < 0) return tsi_json_fail(scan, scan->at, "the text ends where %s was expected", expected);
  if (c == 0) return tsi_json_fail(scan, scan->at, "NUL byte where %s was expected", expected);
  if (c > 0x20 && c < 0x7F)
    return tsi_json_fail(scan, scan->at, "'%c' where %s was expected", c, expected);
  return tsi_json_fail(scan, scan->at, "byte 0x%02x where %s was expected", (unsigned)c, expected);
}

static void skip_blanks(tsi_json_scan *scan)
{
  while (scan->at < scan->length) {
    const char c = scan->text[scan->at];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    ++scan->at;
  }
}

static int add_mark(tsi_json_scan *scan)
{
  if (scan->nmark == scan->room) {
    const size_t room = scan->room ? 2 * scan->room : 256;
    size_t *mark = realloc(scan->mark, room * sizeof *mark);
    if (!mark) return tsi_fail(TS_ERR_MEMORY, "%s: no memory for its JSON", scan->origin);
    scan->mark = mark;
    scan->room = room;
  }
  scan->mark[scan->nmark++] = scan->at;
  return 0;
}

/* Length of the well-formed UTF-8 sequence at s (Unicode, table 3-7), or 0. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
  const size_t length = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
  if (left < length) return 0;
  const unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
  if (s[1] < low || s[1] > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if ((s[i] & 0xC0) != 0x80) return 0;
  return length;
}

/* Four hexadecimal digits at text[at...], or -1. */
static int hex4(const tsi_json_scan *scan, size_t at)
{
  char digits[5] = "";
  for (size_t i = 0; i < 4; ++i) {
    if (at + i >= scan->length || !is_hex((unsigned char)scan->text[at + i])) return -1;
    digits[i] = scan->text[at + i];
  }
  return (int)strtol(digits, NULL, 16);
}

/* A \uXXXX escape (or a surrogate pair of two); scan->at stands on its 'u'. */
static int scan_unicode(tsi_json_scan *scan)
{
  const size_t start = scan->at - 1;
  const int code = hex4(scan, scan->at + 1);
  if (code < 0) return tsi_json_fail(scan, start, "\\u needs four hexadecimal digits");
  if (code == 0) return tsi_json_fail(scan, start, "\\u0000 is not allowed in a string");
  scan->at += 5;
  if (code < 0xD800 || code > 0xDFFF) return 0;
  const bool pair = code < 0xDC00 && scan->at + 1 < scan->length && scan->text[scan->at] == '\\' &&
                    scan->text[scan->at + 1] == 'u';
  const int second = pair ? hex4(scan, scan->at + 2) : -1;
  if (second < 0xDC00 || second > 0xDFFF)
    return tsi_json_fail(scan, start, "half of a surrogate pair in a string");
  scan->at += 6;
  return 0;
}

static int scan_escape(tsi_json_scan *scan)
{
  ++scan->at; /* the backslash */
  const int c = peek(scan);
  if (c == 'u') return scan_unicode(scan);
  if (c <= 0 || !strchr("\"\\/bfnrt", c))
    return tsi_json_fail(scan, scan->at - 1, "unknown escape in a string");
  ++scan->at;
  return 0;
}

static int scan_string(tsi_json_scan *scan)
{
  const size_t start = scan->at++; /* the quote */
  for (;;) {
    const int c = peek(scan);
    if (c < 0) return tsi_json_fail(scan, start, "this string has no end");
    if (c == '"') break;
    if (c < 0x20)
      return tsi_json_fail(scan, scan->at, "%s (byte 0x%02x) in a string",
                           c ? "control character" : "NUL byte", (unsigned)c);
    if (c == '\\') {
      TS_TRY(scan_escape(scan));
      continue;
    }
    const size_t bytes =
        utf8_length((const unsigned char *)scan->text + scan->at, scan->length - scan->at);
    if (!bytes) return tsi_json_fail(scan, scan->at, "invalid UTF-8 (byte 0x%02x)", (unsigned)c);
    scan->at += bytes;
  }
  ++scan->at;
  return 0;
}

static int scan_digits(tsi_json_scan *scan)
{
  if (!is_digit(peek(scan))) return unexpected(scan, "a digit");
  while (is_digit(peek(scan)))
    ++scan->at;
  return 0;
}

static int scan_number(tsi_json_scan *scan)
{
  const size_t start = scan->at;
  if (peek(scan) == '-') ++scan->at;
  if (peek(scan) == '0') {
    ++scan->at;
    if (is_digit(peek(scan))) return tsi_json_fail(scan, start, "a number with a leading zero");
  } else {
    TS_TRY(scan_digits(scan));
  }
  if (peek(scan) == '.') {
    ++scan->at;
    TS_TRY(scan_digits(scan));
  }
  if (peek(scan) == 'e' || peek(scan) == 'E') {
    ++scan->at;
    if (peek(scan) == '-' || peek(scan) == '+') ++scan->at;
    TS_TRY(scan_digits(scan));
  }
  if (scan->at - start > TSI_JSON_DIGITS)
    return tsi_json_fail(scan, start, "a number of %zu characters; at most %d are read",
                         scan->at - start, TSI_JSON_DIGITS);
  return 0;
}

/* true, false or null; anything else that looks like a word (NaN, Infinity) is named. */
static int scan_word(tsi_json_scan *scan)
{
  const char *word = scan->text + scan->at;
  size_t length = 0;
  while (scan->at + length < scan->length && is_letter((unsigned char)word[length]))
    ++length;
  if ((length == 4 && (!memcmp(word, "true", 4) || !memcmp(word, "null", 4))) ||
      (length == 5 && !memcmp(word, "false", 5))) {
    scan->at += length;
    return 0;
  }
  return tsi_json_fail(scan, scan->at, "unknown word '%.*s'; expected a value",
                       (int)(length < 40 ? length : 40), word);
}

static int scan_value(tsi_json_scan *scan, int depth);

/* After an element: true when another follows, false at the closing bracket. */
static int scan_next(tsi_json_scan *scan, char closing, bool *more)
{
  skip_blanks(scan);
  const int c = peek(scan);
  if (c != ',' && c != closing)
    return unexpected(scan, closing == '}' ? "',' or '}'" : "',' or ']'");
  ++scan->at;
  *more = c == ',';
  return 0;
}

static int scan_member(tsi_json_scan *scan, int depth)
{
  skip_blanks(scan);
  if (peek(scan) != '"') return unexpected(scan, "a key in double quotes");
  TS_TRY(add_mark(scan));
  TS_TRY(scan_string(scan));
  skip_blanks(scan);
  if (peek(scan) != ':') return unexpected(scan, "':' after a key");
  ++scan->at;
  return scan_value(scan, depth);
}

static int scan_container(tsi_json_scan *scan, int depth)
{
  const bool object = peek(scan) == '{';
  const char closing = object ? '}' : ']';
  if (depth >= TSI_JSON_DEPTH)
    return tsi_json_fail(scan, scan->at, "nesting deeper than %d levels", TSI_JSON_DEPTH);
  ++scan->at;
  skip_blanks(scan);
  if (peek(scan) == closing) {
    ++scan->at;
    return 0;
  }
  for (bool more = true; more;) {
    TS_TRY(object ? scan_member(scan, depth + 1) : scan_value(scan, depth + 1));
    TS_TRY(scan_next(scan, closing, &more));
  }
  return 0;
}

static int scan_value(tsi_json_scan *scan, int depth)
{
  skip_blanks(scan);
  const int c = peek(scan);
  TS_TRY(add_mark(scan));
  ++scan->nvalue;
  if (c == '{' || c == '[') return scan_container(scan, depth);
  if (c == '"') return scan_string(scan);
  if (c == '-' || is_digit(c)) return scan_number(scan);
  if (is_letter(c)) return scan_word(scan);
  return unexpected(scan, "a value");
}

int tsi_json_scan_text(const char *text, size_t length, const char *origin, tsi_json_scan *scan)
{
  *scan = (tsi_json_scan){.text = text, .length = length, .origin = origin};
  if (length >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
    return tsi_json_fail(scan, 0, "the text starts with a byte order mark; save it without");
  TS_TRY(scan_value(scan, 0));
  skip_blanks(scan);
  if (scan->at < length) return unexpected(scan, "the end of the text");
  return 0;
}

void tsi_json_scan_free(tsi_json_scan *scan)
{
  free(scan->mark);
  scan->mark = NULL;
}
