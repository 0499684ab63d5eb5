/* SPDX-License-Identifier: MIT
 *
 * The table of one precision and instruction set, and the scratch that its kernels need. */
#include "models/kernels_impl.h"

#define TS_STRING2(x) #x
#define TS_STRING(x) TS_STRING2(x)

/* The largest of the kernels' carvings, each piece rounded up to a line. */
static size_t scratch_bytes(const ts_shape *s, int max_degree)
{
  const size_t A = (size_t)s->atoms, C = (size_t)s->channels, F = (size_t)s->hidden;
  const size_t R = (size_t)s->rows, L = (size_t)s->lmax, L1 = L + 1, H = (size_t)s->heads;
  const size_t degree = (size_t)max_degree, W = (size_t)s->wide;
  const size_t project = R * A * C + A * L1 * F + A * F + R * A * 4 * F;
  const size_t D = (size_t)s->directed, slopes = s->radial ? 2 * H + L1 * D : 0;
  const size_t room = 4 * TS_RADIAL_BLOCK * (size_t)s->radial;
  const size_t attend = degree * (10 * H + 3 * L1 * D + 8 + slopes) + 4 * R * C + 2 * R * D +
                        8 * C + (12 + (size_t)s->head_dim) * H + room;
  const size_t update = 2 * R * A * C + A * L1 * C + 6 * L * A * C + R * A * W;
  const size_t head = 2 * R * A * C + 4 * TS_SPHERE_POINTS * A * C;
  const size_t embed = (s->radial ? 2 * TS_RADIAL_BLOCK + 1 : 2) * L1 * C + R * C + room;
  size_t most = project > attend ? project : attend;
  most = update > most ? update : most;
  most = head > most ? head : most;
  most = embed > most ? embed : most;
  return most * sizeof(real) + 16 * 64;
}

const ts_kernels TS_K(kernels) = {
    .isa = TS_STRING(TS_KERNEL_ISA),
    .is_double = TS_KERNEL_DOUBLE,
    .packed = &TS_K(packed_ops),
    .edge = TS_K(edge),
    .embed = TS_K(embed),
    .embed_back = TS_K(embed_back),
    .project = TS_K(project),
    .project_back = TS_K(project_back),
    .attend = TS_K(attend),
    .attend_back = TS_K(attend_back),
    .attend_send_back = TS_K(attend_send_back),
    .attend_send_fixed = TS_K(attend_send_fixed),
    .settle = TS_K(settle),
    .pack = TS_K(pack),
    .add_returned = TS_K(add_returned),
    .update = TS_K(update),
    .update_back = TS_K(update_back),
    .norm = TS_K(norm),
    .norm_back = TS_K(norm_back),
    .head = TS_K(head),
    .edge_force = TS_K(edge_force),
    .scratch_bytes = scratch_bytes,
};
