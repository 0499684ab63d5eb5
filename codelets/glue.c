/* SPDX-License-Identifier: MIT
 *
 * Shared by the codelets; see glue.h. */
#include "codelets/glue.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/memory.h"

tsi_layer_args tsi_layer_arguments(const ts_recorder *r, int stage, int layer, const ts_tile *tile,
                                   bool keep)
{
  return (tsi_layer_args){.model = r->model,
                          .shape = r->shape,
                          .layer = layer < 0 ? NULL : &r->model->layer[stage][layer],
                          .tile = tile,
                          .keep = keep};
}

int tsi_record(const ts_recorder *r, const struct starpu_codelet *codelet, ts_phase_id phase,
               const void *args, size_t args_size, int naccess, const ts_access *access)
{
  const ts_task_desc desc = {.codelet = codelet,
                             .access = access,
                             .naccess = naccess,
                             .args = args,
                             .args_size = args_size,
                             .priority = r->priority,
                             .phase = (int)phase};
  return ts_program_add(r->program, &desc);
}

int tsi_record_lists(const ts_recorder *r, const struct starpu_codelet *codelet, ts_phase_id phase,
                     const void *args, size_t args_size, int nfixed, const ts_access *fixed,
                     int nlists, int count, const starpu_data_handle_t *const *lists)
{
  ts_access *access = NULL;
  TS_TRY(TSI_NEW(access, nfixed + nlists * count));
  memcpy(access, fixed, (size_t)nfixed * sizeof *access);
  for (int k = 0; k < nlists; k++)
    for (int i = 0; i < count; i++)
      access[nfixed + k * count + i] = (ts_access){lists[k][i], STARPU_R};
  const int status =
      tsi_record(r, codelet, phase, args, args_size, nfixed + nlists * count, access);
  free(access);
  return status;
}

size_t tsi_pointers_bytes(int lists, int count)
{
  return (size_t)lists * ts_arena_round((size_t)count * sizeof(void *));
}

const void **tsi_pointers(char **scratch, void *buffers[], int first, int count)
{
  const void **list = (const void **)(void *)*scratch;
  for (int i = 0; i < count; i++)
    list[i] = tsi_buffer(buffers, first + i);
  *scratch += tsi_pointers_bytes(1, count);
  return list;
}

size_t ts_edge_layout(const ts_model *model, int edges, void *base, ts_edge_arrays *out)
{
  const size_t E = (size_t)edges;
  const size_t bytes[] = {E * 4 * sizeof(double), E * TS_EDGE_REALS * model->real_size,
                          E * sizeof(int32_t), E * sizeof(uint8_t)};
  char *at[4];
  size_t total = 0;
  for (int i = 0; i < 4; i++) {
    at[i] = base ? (char *)base + total : NULL;
    total += ts_arena_round(bytes[i]);
  }
  if (out)
    *out = (ts_edge_arrays){.geometry = (double *)(void *)at[0],
                            .edge = at[1],
                            .node = (int32_t *)(void *)at[2],
                            .active = (uint8_t *)at[3]};
  return total;
}

ts_edge_block tsi_edge_block(const ts_model *model, const ts_tile *tile, void *edges)
{
  ts_edge_arrays at;
  ts_edge_layout(model, tile->edges, edges, &at);
  return (ts_edge_block){.n = tile->n,
                         .local = tile->nlocal,
                         .rows = tile->from_rows,
                         .row = tile->row,
                         .sender = tile->sender,
                         .active = at.active,
                         .node = at.node,
                         .edge = at.edge};
}
