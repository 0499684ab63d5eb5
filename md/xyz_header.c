/* SPDX-License-Identifier: MIT
 *
 * A small scanner for pairs, then one function for each key that matters. */
#include "md/xyz_header.h"

#include "runtime/error.h"
#include "runtime/number.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

typedef struct span {
  const char *at;
  size_t length;
} span;

/* A key with its value; `open` is the quote or bracket around the value, or 0. */
typedef struct pair {
  span key, value;
  bool assigned; /* false: a word alone */
  char open;
} pair;

static bool is_blank(char c)
{
  return c == ' ' || c == '\t';
}

static bool equals(span s, const char *word)
{
  return s.length == strlen(word) && !strncasecmp(s.at, word, s.length);
}

/* Length of a bracketed text with everything nested in it; 0 if it has no end. */
static size_t bracketed(const char *text)
{
  int depth = 0;
  for (size_t i = 0; text[i]; ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (depth == 0) return i + 1;
  }
  return 0;
}

/* Length of a quoted text with its quotes; a backslash hides the next character. */
static size_t quoted(const char *text)
{
  for (size_t i = 1; text[i]; ++i) {
    if (text[i] == text[0]) return i + 1;
    if (text[i] == '\\' && text[i + 1]) ++i;
  }
  return 0;
}

/* Take one word from *text; bare words end at a blank, keys also at '='. */
static bool take_word(const char **text, bool is_key, span *word, char *open)
{
  const char *p = *text;
  size_t whole = 0;
  *open = '\0';
  if (*p && strchr("\"'{[", *p)) {
    whole = *p == '"' || *p == '\'' ? quoted(p) : bracketed(p);
    if (!whole) return false;
    *open = *p;
    *word = (span){p + 1, whole - 2};
  } else {
    whole = strcspn(p, is_key ? " \t=" : " \t");
    *word = (span){p, whole};
  }
  *text = p + whole;
  return true;
}

/* The next pair or lone word; *more is false at the end of the line. */
static bool take_pair(const char **text, pair *out, bool *more)
{
  char open;
  *text += strspn(*text, " \t");
  *more = **text != '\0';
  if (!*more) return true;
  *out = (pair){.value = {"", 0}};
  if (**text == '=') {
    ++*text; /* no key before it */
    return true;
  }
  if (!take_word(text, true, &out->key, &open)) return false;
  const char *after = *text + strspn(*text, " \t");
  if (*after != '=') return true;
  out->assigned = true;
  *text = after + 1 + strspn(after + 1, " \t");
  return take_word(text, false, &out->value, &out->open);
}

/* The next blank-separated word of a value. */
static bool next_item(span *rest, span *item)
{
  while (rest->length && is_blank(*rest->at)) {
    ++rest->at;
    --rest->length;
  }
  *item = (span){rest->at, 0};
  while (rest->length && !is_blank(*rest->at)) {
    ++rest->at;
    --rest->length;
    ++item->length;
  }
  return item->length > 0;
}

static int shown(span s)
{
  return s.length > 60 ? 60 : (int)s.length;
}

static int parse_lattice(const pair *p, tsi_xyz_header *h)
{
  if (p->open != '"' && p->open != '\'' && p->open != '{')
    return tsi_fail(TS_ERR_INPUT,
                    "Lattice=%.*s: expected nine numbers in quotes, \"ax ay az bx ...\"",
                    shown(p->value), p->value.at);
  span rest = p->value, item;
  int count = 0;
  while (next_item(&rest, &item)) {
    double value;
    if (!tsi_number_double(item.at, item.length, &value))
      return tsi_fail(TS_ERR_INPUT, "'%.*s' in Lattice is not a number", shown(item), item.at);
    if (count < 9) h->h[count / 3][count % 3] = value;
    ++count;
  }
  if (count != 9)
    return tsi_fail(TS_ERR_INPUT, "Lattice has %d numbers; expected nine, \"ax ay az bx ...\"",
                    count);
  return 0;
}

static int parse_pbc(const pair *p, tsi_xyz_header *h)
{
  static const char *const yes[] = {"T", "true", "1"}, *const no[] = {"F", "false", "0"};
  span rest = p->value, item;
  int count = 0;
  while (next_item(&rest, &item)) {
    int value = -1;
    for (size_t k = 0; k < 3; ++k)
      value = equals(item, yes[k]) ? 1 : equals(item, no[k]) ? 0 : value;
    if (value < 0)
      return tsi_fail(TS_ERR_INPUT, "'%.*s' in pbc: expected T or F", shown(item), item.at);
    if (count < 3) h->periodic[count] = value == 1;
    ++count;
  }
  if (count != 3)
    return tsi_fail(TS_ERR_INPUT, "pbc has %d values; expected three in quotes, \"T T T\"", count);
  return 0;
}

/* A whole number; ASE writes some as 1.0. */
static int parse_whole(const pair *p, const char *key, int64_t low, int64_t high, int64_t *out)
{
  double value;
  if (!tsi_number_int64(p->value.at, p->value.length, out)) {
    if (!tsi_number_double(p->value.at, p->value.length, &value) || value < -1e15 || value > 1e15 ||
        value != (double)(int64_t)value)
      return tsi_fail(TS_ERR_INPUT, "%s=%.*s: expected a whole number", key, shown(p->value),
                      p->value.at);
    *out = (int64_t)value;
  }
  if (*out < low || *out > high)
    return tsi_fail(TS_ERR_INPUT, "%s=%.*s: out of range", key, shown(p->value), p->value.at);
  return 0;
}

static int parse_velocity_unit(const pair *p, tsi_xyz_header *h)
{
  static const struct {
    const char *name;
    double factor; /* Å/fs */
  } units[] = {{"A/fs", 1.0},         {"Angstrom/fs", 1.0}, {"A/ps", 1e-3},
               {"Angstrom/ps", 1e-3}, {"nm/ps", 1e-2},      {"m/s", 1e-5}};
  for (size_t k = 0; k < sizeof units / sizeof *units; ++k)
    if (equals(p->value, units[k].name)) {
      h->velocity_factor = units[k].factor;
      return 0;
    }
  return tsi_fail(TS_ERR_INPUT, "velocity_unit=%.*s: expected A/fs, A/ps, nm/ps or m/s",
                  shown(p->value), p->value.at);
}

/* What a column's name means, the type and the number of values that it must have. */
static const struct {
  const char *name;
  tsi_xyz_column column;
  const char *types;
  int count;
} known_columns[] = {
    {"species", TSI_XYZ_SPECIES, "SI", 1},  {"symbols", TSI_XYZ_SPECIES, "S", 1},
    {"element", TSI_XYZ_SPECIES, "S", 1},   {"Z", TSI_XYZ_NUMBER, "I", 1},
    {"numbers", TSI_XYZ_NUMBER, "I", 1},    {"atomic_numbers", TSI_XYZ_NUMBER, "I", 1},
    {"pos", TSI_XYZ_POSITION, "R", 3},      {"positions", TSI_XYZ_POSITION, "R", 3},
    {"velo", TSI_XYZ_VELOCITY, "R", 3},     {"vel", TSI_XYZ_VELOCITY, "R", 3},
    {"velocity", TSI_XYZ_VELOCITY, "R", 3}, {"velocities", TSI_XYZ_VELOCITY, "R", 3},
    {"momenta", TSI_XYZ_MOMENTUM, "R", 3},  {"mass", TSI_XYZ_MASS, "R", 1},
    {"masses", TSI_XYZ_MASS, "R", 1},
};

/* The next part of name:type:count:name:... */
static bool next_part(span *rest, span *part)
{
  if (!rest->at) return false;
  const char *colon = memchr(rest->at, ':', rest->length);
  *part = (span){rest->at, colon ? (size_t)(colon - rest->at) : rest->length};
  if (colon)
    *rest = (span){colon + 1, rest->length - part->length - 1};
  else
    rest->at = NULL;
  return true;
}

static int add_column(span name, char type, int64_t count, tsi_xyz_header *h)
{
  for (size_t k = 0; k < sizeof known_columns / sizeof *known_columns; ++k) {
    if (!equals(name, known_columns[k].name)) continue;
    int *first = &h->first[known_columns[k].column];
    if (!strchr(known_columns[k].types, type) || count != known_columns[k].count)
      return tsi_fail(TS_ERR_INPUT, "Properties: %.*s:%c:%ld; expected %s:%c:%d", shown(name),
                      name.at, type, (long)count, known_columns[k].name, known_columns[k].types[0],
                      known_columns[k].count);
    if (*first >= 0)
      return tsi_fail(TS_ERR_INPUT, "Properties: a second column of that meaning, %.*s",
                      shown(name), name.at);
    *first = h->width;
  }
  h->width += (int)count;
  return 0;
}

static int parse_properties(const pair *p, tsi_xyz_header *h)
{
  span rest = p->value, name, type, count;
  h->width = 0;
  for (int k = 0; k < TSI_XYZ_COLUMNS; ++k)
    h->first[k] = -1;
  while (next_part(&rest, &name)) {
    int64_t n = 0;
    if (!next_part(&rest, &type) || !next_part(&rest, &count) || !name.length || type.length != 1 ||
        !strchr("SIRL", type.at[0]) || !tsi_number_int64(count.at, count.length, &n) || n < 1 ||
        n > 100000 - h->width)
      return tsi_fail(TS_ERR_INPUT,
                      "Properties=%.*s: expected name:type:count:... with types S, I, R or L",
                      shown(p->value), p->value.at);
    TS_TRY(add_column(name, type.at[0], n, h));
  }
  if (h->first[TSI_XYZ_POSITION] < 0)
    return tsi_fail(TS_ERR_INPUT, "Properties has no column pos:R:3");
  if (h->first[TSI_XYZ_SPECIES] < 0 && h->first[TSI_XYZ_NUMBER] < 0)
    return tsi_fail(TS_ERR_INPUT, "Properties has neither species:S:1 nor Z:I:1");
  return 0;
}

static int once(bool *seen, const char *key)
{
  if (*seen) return tsi_fail(TS_ERR_INPUT, "%s is given twice", key);
  *seen = true;
  return 0;
}

static int parse_pair(const pair *p, tsi_xyz_header *h)
{
  int64_t whole;
  if (equals(p->key, "Lattice")) {
    TS_TRY(once(&h->has_lattice, "Lattice"));
    return parse_lattice(p, h);
  }
  if (equals(p->key, "Properties")) {
    TS_TRY(once(&h->has_properties, "Properties"));
    return parse_properties(p, h);
  }
  if (equals(p->key, "pbc")) {
    TS_TRY(once(&h->has_pbc, "pbc"));
    return parse_pbc(p, h);
  }
  if (equals(p->key, "charge")) {
    TS_TRY(once(&h->has_charge, "charge"));
    TS_TRY(parse_whole(p, "charge", INT_MIN, INT_MAX, &whole));
    h->charge = (int)whole;
  } else if (equals(p->key, "multiplicity")) {
    TS_TRY(once(&h->has_multiplicity, "multiplicity"));
    TS_TRY(parse_whole(p, "multiplicity", 1, INT_MAX, &whole));
    h->multiplicity = (int)whole;
  } else if (equals(p->key, "velocity_unit")) {
    return parse_velocity_unit(p, h);
  } else if (equals(p->key, "step")) {
    h->has_step = tsi_number_int64(p->value.at, p->value.length, &h->step);
  }
  return 0;
}

static bool is_word(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A key that was meant but not understood: its name, followed by what looks like a value. */
static const char *unread_key(const char *text, const tsi_xyz_header *h)
{
  const struct {
    const char *word, *value;
    bool seen;
  } keys[] = {{"Lattice", "=:\"'{[(+-.0123456789", h->has_lattice},
              {"Properties", "=", h->has_properties},
              {"pbc", "=", h->has_pbc}};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) {
    const char *at = keys[k].seen ? NULL : strcasestr(text, keys[k].word);
    for (; at; at = strcasestr(at + 1, keys[k].word)) {
      const char *after = at + strlen(keys[k].word);
      after += strspn(after, " \t");
      const bool starts = at == text || !is_word(at[-1]);
      if (starts && *after && strchr(keys[k].value, *after)) return keys[k].word;
    }
  }
  return NULL;
}

int tsi_xyz_header_parse(const char *text, tsi_xyz_header *out)
{
  *out = (tsi_xyz_header){.multiplicity = 1, .width = 4};
  for (int k = 0; k < TSI_XYZ_COLUMNS; ++k)
    out->first[k] = -1;
  out->first[TSI_XYZ_SPECIES] = 0;
  out->first[TSI_XYZ_POSITION] = 1;
  pair p;
  bool more = true;
  for (const char *rest = text; more && take_pair(&rest, &p, &more);)
    if (more && p.assigned) TS_TRY(parse_pair(&p, out));
  const char *unread = unread_key(text, out);
  if (unread)
    return tsi_fail(TS_ERR_INPUT, "%s is mentioned, but not as %s=\"...\" (is a quote missing?)",
                    unread, unread);
  if (out->has_lattice && !out->has_pbc)
    for (int k = 0; k < 3; ++k)
      out->periodic[k] = true;
  if (!out->has_lattice && (out->periodic[0] || out->periodic[1] || out->periodic[2]))
    return tsi_fail(TS_ERR_INPUT, "pbc is periodic, but there is no Lattice");
  return 0;
}
