/* SPDX-License-Identifier: MIT
 *
 * Look-ups in the table of keys, and what a key takes in words: the same words stand in error
 * messages and in the documentation. */
#include "md/job_schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const tsi_job_key *tsi_job_key_find(const char *path)
{
  for (int i = 0; i < tsi_job_key_count; ++i)
    if (!strcmp(tsi_job_keys[i].path, path)) return &tsi_job_keys[i];
  return NULL;
}

static const char *last_part(const char *path)
{
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

const char *tsi_job_key_name(const tsi_job_key *key)
{
  return last_part(key->path);
}

bool tsi_job_key_is_in(const tsi_job_key *key, const char *path)
{
  const size_t length = strlen(path);
  const char *name = tsi_job_key_name(key);
  if (!length) return name == key->path;
  return !strncmp(key->path, path, length) && name == key->path + length + 1;
}

/* ---- the nearest key ------------------------------------------------------------------------- */

enum { NAME_LIMIT = 40 }; /* letters that are compared */

/* Letters inserted, deleted, changed or swapped with their neighbour to turn a into b. */
static int typing_errors(const char *a, const char *b)
{
  int cost[3][NAME_LIMIT + 1];
  const int na = (int)strnlen(a, NAME_LIMIT), nb = (int)strnlen(b, NAME_LIMIT);
  for (int j = 0; j <= nb; ++j)
    cost[0][j] = j;
  for (int i = 1; i <= na; ++i) {
    int *now = cost[i % 3];
    const int *above = cost[(i + 2) % 3], *before = cost[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= nb; ++j) {
      const int change = above[j - 1] + (a[i - 1] != b[j - 1]);
      const int remove = above[j] + 1, insert = now[j - 1] + 1;
      now[j] = change < remove ? change : remove;
      if (insert < now[j]) now[j] = insert;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < now[j])
        now[j] = before[j - 2] + 1;
    }
  }
  return cost[na % 3][nb];
}

const tsi_job_key *tsi_job_key_nearest(const char *path)
{
  const char *name = last_part(path);
  const size_t section = (size_t)(name - path);
  const tsi_job_key *best = NULL;
  int least = 0;
  for (int i = 0; i < tsi_job_key_count; ++i) {
    if (tsi_job_keys[i].planned) continue;
    const char *known = tsi_job_key_name(&tsi_job_keys[i]);
    const bool same = (size_t)(known - tsi_job_keys[i].path) == section &&
                      !strncmp(tsi_job_keys[i].path, path, section);
    int errors = 2 * typing_errors(name, known) + !same;
    /* a unit left out is one error: "skin" for "skin_A" */
    if (!strncmp(known, name, strlen(name)) && known[strlen(name)] == '_') errors = 2 + !same;
    if (!best || errors < least) {
      best = &tsi_job_keys[i];
      least = errors;
    }
  }
  return best;
}

/* ---- in words -------------------------------------------------------------------------------- */

static void list_words(const tsi_job_word *words, char *out, size_t size)
{
  size_t used = 0;
  int left = 0;
  for (const tsi_job_word *w = words; w->word; ++w)
    left += !w->planned;
  out[0] = '\0';
  for (const tsi_job_word *w = words; w->word && used < size; ++w) {
    if (w->planned) continue;
    --left;
    const char *after = left > 1 ? ", " : left == 1 ? " or " : "";
    used += (size_t)snprintf(out + used, size - used, "\"%s\"%s", w->word, after);
  }
}

static void limits_text(const tsi_job_key *key, const char *noun, char *out, size_t size)
{
  const char *special = key->special == TSI_JOB_AUTO   ? " or \"auto\""
                        : key->special == TSI_JOB_NULL ? " or null"
                                                       : "";
  if (key->above)
    snprintf(out, size, "%s above %g, at most %g%s", noun, key->min, key->max, special);
  else if (isinf(key->max))
    snprintf(out, size, "%s, at least %g%s", noun, key->min, special);
  else
    snprintf(out, size, "%s from %g to %.15g%s", noun, key->min, key->max, special);
}

const char *tsi_job_key_expects(const tsi_job_key *key, char *out, size_t size)
{
  char words[200] = "";
  if (key->words) list_words(key->words, words, sizeof words);
  switch (key->type) {
    case TSI_JOB_SECTION:
      snprintf(out, size, "an object");
      break;
    case TSI_JOB_PATH:
      snprintf(out, size, "a path of 1 to %d bytes", TS_JOB_TEXT - 1);
      break;
    case TSI_JOB_NAME:
      if (key->words)
        snprintf(out, size, "%s", words);
      else
        snprintf(out, size, "a name of 1 to %d bytes", TS_JOB_NAME - 1);
      break;
    case TSI_JOB_FILE:
      snprintf(out, size, "a file name without folders that ends in %s", words);
      break;
    case TSI_JOB_WORD:
      snprintf(out, size, "%s", words);
      break;
    case TSI_JOB_BOOL:
      snprintf(out, size, "true or false");
      break;
    case TSI_JOB_INTEGER:
      limits_text(key, "an integer", out, size);
      break;
    case TSI_JOB_REAL:
      limits_text(key, "a number", out, size);
      break;
    case TSI_JOB_TIME:
      snprintf(out, size, "a time \"HH:MM:SS\" above zero or null");
      break;
    case TSI_JOB_PAIRS:
      snprintf(out, size, "up to %d pairs of elements such as \"O-H\"", TS_JOB_PAIRS);
      break;
  }
  return out;
}

const char *tsi_job_show_time(int64_t seconds, char out[32])
{
  snprintf(out, 32, "%02lld:%02d:%02d", (long long)(seconds / 3600), (int)(seconds / 60 % 60),
           (int)(seconds % 60));
  return out;
}
