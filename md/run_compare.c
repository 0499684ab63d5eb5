/* SPDX-License-Identifier: MIT
 *
 * Every rank reads the job for itself: a file that changed in between, a copy that is another on
 * one node, or other words of the command line would give ranks that compute different things, or
 * wait for each other for ever.  So all compare, before anything else, every setting as it will be
 * used (numbers to the last digit) and the digest of the weights, and fail together. */
#include <stdlib.h>
#include <string.h>

#include "comm/sparse.h"
#include "md/run_impl.h"
#include "runtime/error.h"

/* All settings, a line each. */
static int write_settings(const tsi_run *run, char **text)
{
  size_t size = 0;
  *text = NULL;
  FILE *file = open_memstream(text, &size);
  if (!file) return tsi_fail(TS_ERR_MEMORY, "no memory for the settings");
  const int status = ts_job_print(run->job, file);
  fprintf(file, "\nweights: %s\n", run->model_digest);
  if (fclose(file) && !status) return tsi_fail(TS_ERR_MEMORY, "no memory for the settings");
  return status;
}

/* Rank 0's settings to all; freed by the caller. */
static int send_settings(const tsi_run *run, const char *own, char **first)
{
  int size = (int)strlen(own) + 1;
  TS_TRY_MPI(MPI_Bcast(&size, 1, MPI_INT, 0, run->ranks.comm));
  *first = malloc((size_t)size);
  TS_TRY(tsi_ranks_agree(&run->ranks, *first ? 0 : tsi_fail(TS_ERR_MEMORY, "no memory")));
  if (run->ranks.first == 0) memcpy(*first, own, (size_t)size);
  TS_TRY_MPI(MPI_Bcast(*first, size, MPI_CHAR, 0, run->ranks.comm));
  return 0;
}

/* The line around the first difference, bare. */
static void line_at(const char *text, size_t at, char *out, size_t size)
{
  while (at > 0 && text[at - 1] != '\n')
    at--;
  at += strspn(text + at, " ");
  size_t length = strcspn(text + at, "\n");
  if (length && text[at + length - 1] == ',') length--;
  snprintf(out, size, "%.*s", (int)length, text + at);
}

static int compare(const tsi_run *run, const char *own, const char *first)
{
  char line[2][160] = {"", ""};
  const int rank = run->ranks.first, same = !strcmp(own, first);
  int other = same ? run->ranks.size : rank;
  TS_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &other, 1, MPI_INT, MPI_MIN, run->ranks.comm));
  if (other == run->ranks.size) return 0;
  if (rank == other) {
    size_t at = 0;
    while (own[at] == first[at])
      at++;
    line_at(first, at, line[0], sizeof line[0]);
    line_at(own, at, line[1], sizeof line[1]);
  }
  TS_TRY_MPI(MPI_Bcast(line, sizeof line, MPI_CHAR, other, run->ranks.comm));
  return tsi_fail(TS_ERR_INPUT, "%s: settings differ between ranks: rank 0 has %s, rank %d has %s",
                  run->job->path, line[0], other, line[1]);
}

int tsi_run_compare(const tsi_run *run)
{
  char *own = NULL, *first = NULL;
  if (run->ranks.size == 1) return 0;
  int status = tsi_ranks_agree(&run->ranks, write_settings(run, &own));
  if (!status) status = send_settings(run, own, &first);
  if (!status) status = compare(run, own, first);
  free(own);
  free(first);
  return status;
}
