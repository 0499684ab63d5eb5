/* SPDX-License-Identifier: MIT
 *
 * StarPU, started and stopped.
 *
 * Each worker is bound to the first allowed thread of a core of its own, named by hwloc's logical
 * index, because StarPU by itself counts cores of the machine and not of this process's mask (1.3
 * looks at the mask only when told to, 1.4 renumbers the cores then: STARPU_WORKERS_GETBIND=0 gives
 * one numbering).  Processes that share a mask take consecutive parts of it.  When there are more
 * workers than cores, or fewer, nothing is bound: the system then shares the cores fairly.
 *
 * Signals stay ours (StarPU would catch SIGINT).  StarPU's files, performance models of codelets,
 * go where it always keeps them: the directory is in the description. */
#include "runtime/engine.h"

#include <pthread.h>
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TS_HAVE_OPENBLAS
#include <cblas.h>
#endif

#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/number.h"

struct ts_engine {
  int workers;
  bool bound;
  ts_transfers *transfers; /* NULL on one rank */
  char scheduler[64];
  char models[1024]; /* StarPU's directory of performance models */
};

void ts_engine_params_init(ts_engine_params *params)
{
  *params = (ts_engine_params){
      .workers = 0, .scheduler = NULL, .sharers = 1, .share = 0, .comm = MPI_COMM_NULL};
}

int ts_engine_schedulers(const char **names, int size)
{
  struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
  int count = 0;
  for (; policy[count]; count++)
    if (count < size) names[count] = policy[count]->policy_name;
  return count;
}

static int check_scheduler(const char *name)
{
  const char *known[128];
  char list[1536] = "";
  int count = ts_engine_schedulers(known, 128);
  if (count > 128) count = 128;
  for (int i = 0; i < count; i++) {
    if (strcmp(known[i], name) == 0) return 0;
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", known[i]);
  }
  return tsi_fail(TS_ERR_ARG, "unknown scheduler \"%s\"; StarPU %d.%d knows: %s", name,
                  STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION, list);
}

/* One BLAS thread per worker; other libraries read their variable when they start. */
static void quieten_libraries(void)
{
#ifdef TS_HAVE_OPENBLAS
  openblas_set_num_threads(1);
#endif
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  setenv("MKL_NUM_THREADS", "1", 0);
  setenv("BLIS_NUM_THREADS", "1", 0);
  setenv("STARPU_SILENT", "1", 0);
}

static int choose_workers(const ts_topology *topology, const ts_engine_params *params)
{
  int workers = params->workers ? params->workers : ts_topology_workers(topology, params->sharers);
  if (workers > STARPU_MAXCPUS) {
    ts_log(TS_LOG_INFO, "%d workers instead of %d: this StarPU was built for at most %d",
           STARPU_MAXCPUS, workers, STARPU_MAXCPUS);
    workers = STARPU_MAXCPUS;
  }
  return workers;
}

/* Bind the workers to this process's part of the allowed cores, if they use all of them.  Fewer may
 * run beside another program: bound, the workers of both would meet on the first cores. */
static bool bind_workers(const ts_topology *topology, const ts_engine_params *params, int workers,
                         struct starpu_conf *conf)
{
  const int64_t first = (int64_t)params->share * workers, all = (int64_t)params->sharers * workers;
  if (all > topology->cores && params->share == 0)
    ts_log(TS_LOG_WARNING, "%lld workers on %d cores: they are not bound and take turns",
           (long long)all, topology->cores);
  /* at every start the same: switched off later, 1.4.10 frees its set of cores a second time */
  setenv("STARPU_WORKERS_GETBIND", "0", 1);
  if (all != topology->cores) {
    setenv("STARPU_WORKERS_NOBIND", "1", 1);
    return false;
  }
  unsetenv("STARPU_WORKERS_NOBIND");
  conf->use_explicit_workers_bindid = 1;
  for (int i = 0; i < STARPU_NMAXWORKERS; i++)
    conf->workers_bindid[i] = (unsigned)topology->thread_of_core[first + i % workers];
  return true;
}

/* StarPU prints the directory; it has no call that returns it. */
static void find_models(char *text, size_t size)
{
  char *printed = NULL;
  size_t length = 0;
  FILE *stream = open_memstream(&printed, &length);
  if (!stream) return;
  starpu_perfmodel_directory(stream);
  fclose(stream);
  const char *path = strchr(printed, '<');
  snprintf(text, size, "%.*s", path ? (int)strcspn(path + 1, ">\n") : 0, path ? path + 1 : "");
  free(printed);
}

static int start(const ts_topology *topology, const ts_engine_params *params, ts_engine *engine)
{
  struct starpu_conf conf;
  if (starpu_conf_init(&conf)) return tsi_fail(TS_ERR_STARPU, "StarPU gives no configuration");
  engine->workers = choose_workers(topology, params);
  conf.precedence_over_environment_variables = 1;
  conf.ncpus = engine->workers;
  conf.sched_policy_name = engine->scheduler;
  conf.catch_signals = 0;
  conf.will_use_mpi = params->comm != MPI_COMM_NULL && params->transport == TS_TRANSPORT_STARPU;
  quieten_libraries();
  engine->bound = bind_workers(topology, params, engine->workers, &conf);
  /* heteroprio of 1.4 would learn which codelets suit which processors, and gives up at the
   * hundredth that it takes for a new one; it is of no use on CPUs alone */
  setenv("STARPU_HETEROPRIO_USE_AUTO_CALIBRATION", "0", 0);
  const locale_t before = tsi_number_plain(); /* StarPU's files have decimal points */
  const int failed = starpu_init(&conf);
  uselocale(before);
  if (failed) return tsi_fail(TS_ERR_STARPU, "StarPU does not start: %s", strerror(-failed));
  engine->workers = (int)starpu_cpu_worker_get_count();
  find_models(engine->models, sizeof engine->models);
  return 0;
}

int ts_engine_create(const ts_topology *topology, const ts_engine_params *params, ts_engine **out)
{
  *out = NULL;
  if (params->workers < 0)
    return tsi_fail(TS_ERR_ARG, "workers is %d; 0 (automatic) or more is needed", params->workers);
  if (params->sharers < 1 || params->share < 0 || params->share >= params->sharers)
    return tsi_fail(TS_ERR_ARG, "share %d of %d", params->share, params->sharers);
  if (starpu_is_initialized()) return tsi_fail(TS_ERR_ARG, "the engine runs already");
  const char *wanted = params->scheduler ? params->scheduler : getenv("STARPU_SCHED");
  if (!wanted || !*wanted) wanted = "lws";
  TS_TRY(check_scheduler(wanted));

  ts_engine *engine = NULL;
  TS_TRY(TSI_NEW(engine, 1));
  snprintf(engine->scheduler, sizeof engine->scheduler, "%s", wanted);
  int status = start(topology, params, engine);
  if (!status && params->comm != MPI_COMM_NULL) {
    status =
        ts_transfers_create(params->comm, params->transport, engine->workers, &engine->transfers);
    if (status) starpu_shutdown();
  }
  if (status)
    free(engine);
  else
    *out = engine;
  return status;
}

void ts_engine_destroy(ts_engine **engine)
{
  ts_engine *e = *engine;
  if (!e) return;
  ts_engine_rest(false);
  starpu_task_wait_for_all();
  ts_transfers_destroy(&e->transfers);
  const locale_t before = tsi_number_plain();
  starpu_shutdown(); /* writes the timings */
  uselocale(before);
  free(e);
  *engine = NULL;
}

/* StarPU counts, and exists once. */
static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER;
static bool resting;

void ts_engine_rest(bool rest)
{
  pthread_mutex_lock(&rest_lock);
  if (rest && !resting) starpu_pause();
  if (!rest && resting) starpu_resume();
  resting = rest;
  pthread_mutex_unlock(&rest_lock);
}

bool ts_engine_resting(void)
{
  pthread_mutex_lock(&rest_lock);
  const bool now = resting;
  pthread_mutex_unlock(&rest_lock);
  return now;
}

ts_transfers *ts_engine_transfers(const ts_engine *engine)
{
  return engine->transfers;
}

int ts_engine_workers(const ts_engine *engine)
{
  return engine->workers;
}

const char *ts_engine_scheduler(const ts_engine *engine)
{
  return engine->scheduler;
}

int ts_engine_describe(const ts_engine *engine, char *text, size_t size)
{
  return snprintf(text, size,
                  "StarPU %d.%d.%d: %d CPU worker%s (%s), scheduler %s, task timings kept in %s",
                  STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION, STARPU_RELEASE_VERSION,
                  engine->workers, engine->workers == 1 ? "" : "s",
                  engine->bound ? "bound" : "not bound", engine->scheduler, engine->models);
}
