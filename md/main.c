/* SPDX-License-Identifier: MIT
 *
 * The command line.  A command is one row of a table: name, function, usage.  A job is read and
 * checked in full before anything is started.  Errors leave through one place, as one line, with
 * the exit status that docs/job-file.md promises. */
#include "comm/world.h"
#include "md/command.h"
#include "md/plan_words.h"
#include "md/run.h"
#include "runtime/error.h"
#include "runtime/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET_LIMIT = 64 };

/* The words of `run` and `check`. */
typedef struct job_words {
  const char *path;
  bool resume;
  int nset;
  const char *set[SET_LIMIT];
} job_words;

static int bad_usage(const char *command, const char *what, const char *word)
{
  return tsi_fail(TS_ERR_INPUT, "%s: %s%s%s; see tessera %s --help", command, what,
                  *word ? " " : "", word, command);
}

static int add_set(const char *command, job_words *words, const char *set)
{
  if (!set) return bad_usage(command, "--set needs key=value", "");
  if (words->nset == SET_LIMIT)
    return tsi_fail(TS_ERR_INPUT, "%s: more than %d times --set", command, SET_LIMIT);
  words->set[words->nset++] = set;
  return 0;
}

static int parse_job_words(const char *command, bool may_resume, int argc, char **argv,
                           job_words *words)
{
  *words = (job_words){0};
  for (int i = 0; i < argc; ++i) {
    if (!strcmp(argv[i], "--set")) {
      TS_TRY(add_set(command, words, i + 1 < argc ? argv[i + 1] : NULL));
      ++i;
    } else if (!strncmp(argv[i], "--set=", 6)) {
      TS_TRY(add_set(command, words, argv[i] + 6));
    } else if (may_resume && !strcmp(argv[i], "--resume")) {
      words->resume = true;
    } else if (argv[i][0] == '-') {
      return bad_usage(command, "unknown option", argv[i]);
    } else if (words->path) {
      return bad_usage(command, "one job file is expected, not also", argv[i]);
    } else {
      words->path = argv[i];
    }
  }
  return words->path ? 0 : bad_usage(command, "a job file is expected", "");
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
  static ts_job job;
  job_words words;
  TS_TRY(parse_job_words("run", true, argc, argv, &words));
  const int status = ts_job_read(words.path, words.nset, words.set, &job);
  return status ? ts_run_refuse(status) : ts_run_job(&job, words.resume);
}

static int check(int argc, char **argv)
{
  static ts_job job;
  job_words words;
  TS_TRY(parse_job_words("check", false, argc, argv, &words));
  TS_TRY(ts_job_read(words.path, words.nset, words.set, &job));
  return ts_check_job(&job);
}

static int schema(int argc, char **argv)
{
  return argc ? bad_usage("schema", "unknown word", argv[0]) : ts_job_print_schema(stdout);
}

static int info(int argc, char **argv)
{
  return argc ? bad_usage("info", "unknown word", argv[0]) : ts_info_print();
}

static const struct command {
  const char *name;
  int (*function)(int argc, char **argv);
  const char *summary, *usage;
} commands[] = {
    {"run", run, "run a job",
     "tessera run JOB.json [--resume] [--set KEY=VALUE]...\n\n"
     "Runs the job; output goes to the folder that output.directory names.\n\n"
     "  --resume         continue from the newest sound checkpoint\n"
     "  --set KEY=VALUE  override one key, such as ensemble.temperature_K=310\n"},
    {"check", check, "validate a job and print it with all keys filled in",
     "tessera check JOB.json [--set KEY=VALUE]...\n\n"
     "Prints the job with every key (standard output), and the atoms, the model and\n"
     "the memory it needs (standard error).  Starts and writes nothing.\n"},
    {"plan", ts_plan_command, "what K ranks would do: peers, halos, traffic, memory, times",
     ts_plan_usage},
    {"model", ts_model_command, "make, show and convert weight files",
     "tessera model show FILE\n"
     "tessera model seed --description FILE.json --seed N -o FILE.safetensors [--dtype F32|F64]\n"
     "tessera model convert CHECKPOINT.pt CONFIG.yaml -o FILE.safetensors\n\n"
     "  show     description, tensors and sizes of a weight file\n"
     "  seed     weights from a seed: the same numbers on any machine, for tests\n"
     "  convert  a published checkpoint (needs python3 with NumPy and PyYAML)\n"},
    {"schema", schema, "print the JSON Schema of job files", "tessera schema\n"},
    {"info", info, "print build options, libraries, processors and matrix modes", "tessera info\n"},
};

enum { NCOMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *file)
{
  fprintf(file, "usage: tessera COMMAND ...\n\n");
  for (int i = 0; i < NCOMMANDS; ++i)
    fprintf(file, "  %-8s %s\n", commands[i].name, commands[i].summary);
  fprintf(file,
          "\n  tessera COMMAND --help, tessera --version\n\n"
          "Exit status: 0 done; 1 the job or an input is wrong; 2 the simulation failed;\n"
          "3 the system failed; 4 stopped early by a signal or the wall time.\n");
}

static bool asks_for_help(int argc, char **argv)
{
  for (int i = 0; i < argc; ++i)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
  return false;
}

static int dispatch(int argc, char **argv)
{
  if (argc < 2) {
    print_help(stderr);
    return tsi_fail(TS_ERR_INPUT, "a command is expected");
  }
  if (!strcmp(argv[1], "--version")) return puts(PACKAGE_STRING) < 0 ? TS_ERR_IO : 0;
  for (int i = 0; i < NCOMMANDS; ++i) {
    if (strcmp(argv[1], commands[i].name)) continue;
    if (!asks_for_help(argc - 2, argv + 2)) return commands[i].function(argc - 2, argv + 2);
    printf("usage: %s", commands[i].usage);
    return 0;
  }
  if (asks_for_help(1, argv + 1) || !strcmp(argv[1], "help")) {
    print_help(stdout);
    return 0;
  }
  return tsi_fail(TS_ERR_INPUT, "unknown command \"%s\"; see tessera --help", argv[1]);
}

int main(int argc, char **argv)
{
  int rank;
  ts_world_launched(&rank);
  ts_log_set_rank(rank); /* all ranks have the same words, and one of them complains */
  int status = dispatch(argc, argv);
  if (fflush(stdout) || ferror(stdout)) {
    if (!status) status = tsi_fail(TS_ERR_IO, "standard output could not be written");
  }
  if (status && ts_log_rank() == 0) ts_error_print(status); /* the status is that of all ranks */
  return ts_status_exit(status);
}
