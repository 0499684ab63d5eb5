/* SPDX-License-Identifier: MIT
 *
 * `tessera info`: what a report of a fault should begin with.  It starts no engine and no MPI, so
 * it also answers where those fail. */
#include "md/command.h"

#include "md/setup.h"
#include "models/kernels.h"
#include "models/matrix.h"
#include "runtime/error.h"
#include "runtime/topology.h"

#include <stdio.h>
#include <string.h>

/* One line for each "; " in the list that configure wrote down. */
static void print_list(const char *list)
{
  for (const char *item = list; *item;) {
    const char *end = strstr(item, "; ");
    const size_t length = end ? (size_t)(end - item) : strlen(item);
    printf("  %.*s\n", (int)length, item);
    item += length + (end ? 2 : 0);
  }
}

static void print_matrix_modes(void)
{
  static const char *const name[] = {"packed", "cblas", "amx3", "amx2", "amx"};
  printf("matrix modes (largest error against double, relative)\n");
  for (int i = 0; i < 5; ++i) {
    const ts_matrix_ops *single, *dual;
    const int found =
        ts_matrix_ops_find(name[i], false, ts_kernels_find(false, "auto")->packed, &single);
    printf("  %-8s ", name[i]);
    if (found)
      printf("none: %s\n", ts_error_message());
    else if (ts_matrix_ops_find(name[i], true, ts_kernels_find(true, "auto")->packed, &dual))
      printf("float %.1e\n", ts_matrix_error(single, false));
    else
      printf("float %.1e, double %.1e\n", ts_matrix_error(single, false),
             ts_matrix_error(dual, true));
  }
}

int ts_info_print(void)
{
  char text[400];
  ts_topology topology;
  TS_TRY(ts_topology_read(&topology));
  ts_topology_describe(&topology, text, sizeof text);
  printf("%s\nbuilt with\n", PACKAGE_STRING);
  print_list(TS_BUILT_WITH);
  printf("processors\n  %s\n", text);
  printf("kernels\n  %s\n", tsi_setup_kernels(ts_kernels_find(false, "auto")->isa));
  print_matrix_modes();
  return 0;
}
