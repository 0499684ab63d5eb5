/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the job file.  The text up to a NUL byte is the job, what follows is an override.
 * A job that is accepted must print as a job that reads back to the same bytes.
 *
 * fuzz-sources: md/job.c md/job_print.c md/job_schema.c md/job_table.c md/elements.c
 * fuzz-sources: runtime/json.c runtime/json_scan.c runtime/json_write.c runtime/number.c
 * fuzz-sources: runtime/aside.c runtime/file.c runtime/error.c
 * fuzz-needs: mpi
 * fuzz-libs: -lcjson -lm */
#include "md/job.h"
#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reads_back(const ts_job *job)
{
  static ts_job again;
  char *text;
  size_t length;
  FILE *stream = open_memstream(&text, &length);
  if (!stream || ts_job_print(job, stream)) abort();
  fclose(stream);
  if (ts_job_parse(text, length, "fuzz/job.json", 0, NULL, &again)) abort();
  if (memcmp(job, &again, sizeof again)) abort();
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static ts_job job;
  const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
  const size_t length = nul ? (size_t)(nul - data) : size;
  char *set = NULL;
  if (nul) {
    set = strndup((const char *)nul + 1, size - length - 1);
    if (!set) return 0;
  }
  const char *const sets[] = {set};
  const int status =
      ts_job_parse((const char *)data, length, "fuzz/job.json", set ? 1 : 0, sets, &job);
  if (!status) check_reads_back(&job);
  if (status && !*ts_error_message()) abort();
  free(set);
  return 0;
}
