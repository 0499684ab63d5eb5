/* SPDX-License-Identifier: MIT
 *
 * `tessera model`: weight files from a seed, shown, or converted.  A checkpoint is a Python
 * pickle, so converting is a Python script (tools/convert_checkpoint.py), which this program hands
 * the words to. */
#include "md/command.h"

#include "md/elements.h"
#include "models/seed.h"
#include "models/tensors.h"
#include "runtime/error.h"
#include "runtime/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- show ------------------------------------------------------------------------------------ */

static void show_stage(const ts_stage_desc *stage, int number)
{
  printf("stage %d      %g to %g Å, envelope %s, layers", number, stage->lower, stage->cutoff,
         stage->envelope == TS_ENVELOPE_POLY ? "polynomial" : "bell");
  for (int l = 0; l < stage->nlayers; ++l)
    printf(" %s", stage->order[l] == TS_ORDER_ZERO ? "zero" : "first");
  const char *before = ", not from";
  for (int z = 1; z <= TS_ELEMENTS; ++z) {
    if (!stage->excluded[z]) continue;
    printf("%s %s", before, ts_element_symbol(z));
    before = "";
  }
  printf("\n");
}

static void show_elements(const ts_model_desc *desc)
{
  printf("elements    ");
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (desc->element[z]) printf(" %s", ts_element_symbol(z));
  printf("%s\n", desc->lists_elements ? "" : " not said");
}

static void show_description(const ts_model_desc *desc)
{
  static const char *const merges[] = {
      [TS_MERGE_NONE] = "one stage", [TS_MERGE_CLUSTER] = "cluster", [TS_MERGE_CHAIN] = "chain"};
  printf("note         %s\n", *desc->note ? desc->note : "-");
  printf("width        %d channels, %d heads of %d, lmax %d, %d radial bases\n", desc->channels,
         desc->heads, desc->head_dim, desc->lmax, desc->bases);
  for (int s = 0; s < desc->nstages; ++s)
    show_stage(&desc->stage[s], s + 1);
  printf("merge        %s; softmax floor %s\n", merges[desc->merge],
         desc->floor == TS_FLOOR_MAX ? "max" : "absolute");
  show_elements(desc);
  printf("energy       head %s, unit %.10g eV\n", desc->head, desc->energy_unit);
  for (int z = 1; z <= TS_ELEMENTS; ++z)
    if (desc->reference_energy[z] != 0.0)
      printf("reference    %-2s %.10g eV\n", ts_element_symbol(z), desc->reference_energy[z]);
}

static void show_tensors(const ts_weights *weights)
{
  int64_t total = 0;
  for (int i = 0; i < ts_weights_count(weights); ++i) {
    const ts_tensor_view t = ts_weights_at(weights, i);
    printf("  %-80s [", t.name);
    for (int d = 0; d < t.rank; ++d)
      printf("%s%lld", d ? ", " : "", (long long)t.dim[d]);
    printf("]\n");
    total += t.count;
  }
  printf("parameters   %lld in %d tensors\n", (long long)total, ts_weights_count(weights));
}

static int show(int argc, char **argv)
{
  struct stat file;
  ts_model_desc desc;
  ts_weights *weights;
  if (argc != 1)
    return tsi_fail(TS_ERR_INPUT,
                    "model show: one weight file is expected; see tessera model --help");
  TS_TRY(ts_model_load(argv[0], false, &desc, &weights));
  printf("file         %s", argv[0]);
  if (!stat(argv[0], &file)) printf(", %lld bytes", (long long)file.st_size);
  printf("\n");
  show_description(&desc);
  show_tensors(weights);
  ts_weights_destroy(&weights);
  return 0;
}

/* ---- seed ------------------------------------------------------------------------------------ */

typedef struct seed_words {
  const char *description, *seed, *output, *dtype;
} seed_words;

static int parse_seed_words(int argc, char **argv, seed_words *words)
{
  *words = (seed_words){.dtype = "F32"};
  const struct {
    const char *name, **value;
  } options[] = {{"--description", &words->description},
                 {"--seed", &words->seed},
                 {"-o", &words->output},
                 {"--dtype", &words->dtype}};
  enum { COUNT = sizeof options / sizeof *options };
  for (int i = 0; i < argc; i += 2) {
    int k = 0;
    while (k < COUNT && strcmp(argv[i], options[k].name))
      ++k;
    if (k == COUNT)
      return tsi_fail(TS_ERR_INPUT, "model seed: unknown word %s; see tessera model --help",
                      argv[i]);
    if (i + 1 == argc) return tsi_fail(TS_ERR_INPUT, "model seed: %s needs a value", argv[i]);
    *options[k].value = argv[i + 1];
  }
  if (!words->description || !words->seed || !words->output)
    return tsi_fail(TS_ERR_INPUT, "model seed: --description, --seed and -o are needed");
  return 0;
}

static int parse_seed(const char *text, uint64_t *seed)
{
  char *end;
  errno = 0;
  *seed = strtoull(text, &end, 10);
  if (errno || end == text || *end || text[strspn(text, "0123456789")])
    return tsi_fail(TS_ERR_INPUT,
                    "model seed: --seed is %s; expected an integer from 0 to 2^64 - 1", text);
  return 0;
}

static int seed(int argc, char **argv)
{
  seed_words words;
  uint64_t number;
  TS_TRY(parse_seed_words(argc, argv, &words));
  TS_TRY(parse_seed(words.seed, &number));
  if (strcmp(words.dtype, "F32") && strcmp(words.dtype, "F64"))
    return tsi_fail(TS_ERR_INPUT, "model seed: --dtype is %s; expected F32 or F64", words.dtype);
  ts_json *doc;
  static ts_model_desc desc;
  ts_weights *weights;
  TS_TRY(ts_json_read(words.description, &doc));
  int status = ts_model_desc_parse(ts_json_root(doc), words.description, &desc);
  ts_json_destroy(&doc);
  if (!status) status = ts_weights_seed(&desc, number, &weights);
  if (status) return status;
  status = ts_weights_write(weights, words.output,
                            strcmp(words.dtype, "F64") ? TS_DTYPE_F32 : TS_DTYPE_F64);
  ts_weights_destroy(&weights);
  return status;
}

/* ---- convert --------------------------------------------------------------------------------- */

/* Where the script is: installed, else in the source tree that this program was built from. */
static const char *find_script(void)
{
  static const char *const places[] = {TS_DATA_DIR "/tools/convert_checkpoint.py",
                                       TS_SOURCE_TREE "/tools/convert_checkpoint.py"};
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i)
    if (!access(places[i], R_OK)) return places[i];
  return NULL;
}

/* The script takes over this process: its messages and its exit status are what the user sees. */
static int convert(int argc, char **argv)
{
  const char *script = find_script();
  if (!script)
    return tsi_fail(TS_ERR_SYSTEM, "model convert: %s/tools/convert_checkpoint.py is missing",
                    TS_DATA_DIR);
  char **words = calloc((size_t)argc + 3, sizeof *words);
  if (!words) return tsi_fail(TS_ERR_MEMORY, "model convert: no memory");
  static char python[] = "python3";
  words[0] = python;
  words[1] = strdup(script);
  memcpy(words + 2, argv, (size_t)argc * sizeof *words);
  fflush(NULL);
  execvp(python, words);
  const int status =
      tsi_fail(TS_ERR_SYSTEM, "model convert: python3 cannot be started: %s", strerror(errno));
  free(words[1]);
  free(words);
  return status;
}

int ts_model_command(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*function)(int argc, char **argv);
  } parts[] = {{"show", show}, {"seed", seed}, {"convert", convert}};
  for (size_t i = 0; argc && i < sizeof parts / sizeof *parts; ++i)
    if (!strcmp(argv[0], parts[i].name)) return parts[i].function(argc - 1, argv + 1);
  if (!argc)
    return tsi_fail(TS_ERR_INPUT,
                    "model: show, seed or convert is expected; see tessera model --help");
  return tsi_fail(TS_ERR_INPUT, "model: unknown word %s; expected show, seed or convert", argv[0]);
}
