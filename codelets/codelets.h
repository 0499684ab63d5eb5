/* SPDX-License-Identifier: MIT
 *
 * Tasks on tiles.  One helper per codelet records one task into a program: it names the data that
 * the task reads and writes (StarPU handles, each one block of bytes of one tile) and the model's
 * weights.  Kernels do the arithmetic; the order of the calls in md/step.c is the physics.
 *
 * What the handles hold, with the shapes of models/kernels.h (real: the model's precision):
 *   x         [n,3] double                 positions of a tile [Å]
 *   motion    velocities, forces, masses   (one handle per tile, several arrays)
 *   edges     ts_edge_arrays               what changes on every step for a tile's edges
 *   h, dh     real [R,A,C]                 features and gradients
 *   q, dq     real [A,d,H], then [R,A,D] where a score sees directions
 *   kv, dkv   real [A,d,H] then [R,A,C]    keys and values
 *   saved     ts_saved_layout
 *   sum       real [3,R,A,C] or [R,A,C]    aggregate, and its gradient in backward
 *   share     real [E,2,H]
 *   grad      real [E,4]                   dE/d(u, r)
 *   pull      double [E,3]                 dE/d(x_i - x_j) [eV/Å]
 *   energy    double [A]                   [eV]
 *
 * Every helper: collective submission is not needed yet (one rank); returns 0, or the failure of
 * ts_program_add.  Pointers in the arguments are borrowed until the program is destroyed. */
#ifndef TS_CODELETS_H
#define TS_CODELETS_H

#include "models/model.h"
#include "neighbor/geometry.h"
#include "neighbor/tiles.h"
#include "runtime/program.h"

/** Phases of the accounting, in the order in which they are reported. */
#define TS_PHASE_MAP(X)                    \
  X(TS_PHASE_MOVE, "integrate")            \
  X(TS_PHASE_GEOMETRY, "geometry")         \
  X(TS_PHASE_EMBED, "embed")               \
  X(TS_PHASE_PROJECT, "project")           \
  X(TS_PHASE_ATTEND, "attend")             \
  X(TS_PHASE_UPDATE, "update")             \
  X(TS_PHASE_HEAD, "head")                 \
  X(TS_PHASE_UPDATE_BACK, "update back")   \
  X(TS_PHASE_ATTEND_BACK, "attend back")   \
  X(TS_PHASE_SEND_BACK, "send back")       \
  X(TS_PHASE_PROJECT_BACK, "project back") \
  X(TS_PHASE_EMBED_BACK, "embed back")     \
  X(TS_PHASE_FORCE, "force")               \
  X(TS_PHASE_OBSERVE, "observe")

#define TS_PHASE_ENUM(name, text) name,
typedef enum ts_phase_id { TS_PHASE_MAP(TS_PHASE_ENUM) TS_PHASE_COUNT } ts_phase_id;
#undef TS_PHASE_ENUM

/** What every task of a step needs. */
typedef struct ts_recorder {
  ts_program *program;
  const ts_model *model;
  const ts_shape *shape;
  starpu_data_handle_t scratch; /**< STARPU_SCRATCH, shape's scratch_bytes */
  int priority;                 /**< of the tasks recorded next */
} ts_recorder;

/** The step's data about a tile's edges, all in one block. */
typedef struct ts_edge_arrays {
  double *geometry; /**< [E,4] unit vector, distance [Å] */
  void *edge;       /**< real [E,TS_EDGE_REALS] */
  int32_t *node;    /**< [E] */
  uint8_t *active;  /**< [E] */
} ts_edge_arrays;

/** Where the arrays are in a block at `base` (NULL: only the size).  \return bytes. */
size_t ts_edge_layout(const ts_model *model, int edges, void *base, ts_edge_arrays *out);

/** What a geometry task saw. */
typedef struct ts_closest {
  double r; /**< the shortest edge [Å] */
  int64_t edge;
  int bounded; /**< receivers with more active senders than max_neighbors */
} ts_closest;

/** Distances, active flags and radial data of a tile's edges; clears grad.
 * x_from [tile->nfrom] are the senders' positions; x is the whole rank's array that the edge set
 * indexes; pair [E] species pairs of the tile's edges; closest is written. */
int ts_submit_geometry(const ts_recorder *r, int stage, const ts_edges *set, const ts_tile *tile,
                       const double (*x)[3], const int32_t *pair, starpu_data_handle_t x_own,
                       const starpu_data_handle_t *x_from, starpu_data_handle_t edges,
                       starpu_data_handle_t grad, ts_closest *closest);

int ts_submit_embed(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                    starpu_data_handle_t h);
int ts_submit_embed_back(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                         starpu_data_handle_t dh, starpu_data_handle_t grad);

/** keep: the big intermediate stays in `saved` for project_back instead of being computed again. */
int ts_submit_project(const ts_recorder *r, int stage, int layer, bool keep, starpu_data_handle_t h,
                      starpu_data_handle_t q, starpu_data_handle_t kv, starpu_data_handle_t saved);
int ts_submit_project_back(const ts_recorder *r, int stage, int layer, bool keep,
                           starpu_data_handle_t h, starpu_data_handle_t dq,
                           starpu_data_handle_t dkv, starpu_data_handle_t saved,
                           starpu_data_handle_t dh);

/** kv_from [tile->nfrom]: keys and values of the senders' tiles. */
int ts_submit_attend(const ts_recorder *r, int stage, int layer, bool keep, const ts_tile *tile,
                     starpu_data_handle_t edges, starpu_data_handle_t q,
                     const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                     starpu_data_handle_t sum);
int ts_submit_attend_back(const ts_recorder *r, int stage, int layer, bool keep,
                          const ts_tile *tile, starpu_data_handle_t edges, starpu_data_handle_t q,
                          const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                          starpu_data_handle_t sum, starpu_data_handle_t dq,
                          starpu_data_handle_t share, starpu_data_handle_t grad);

/** The four lists [tile->nto] are of the tiles that receive from this one; receivers [nto] are
 * those tiles. */
int ts_submit_send_back(const ts_recorder *r, int stage, int layer, const ts_tile *tile,
                        const ts_tile *tiles, const starpu_data_handle_t *q,
                        const starpu_data_handle_t *sum, const starpu_data_handle_t *share,
                        const starpu_data_handle_t *edges, starpu_data_handle_t dkv);

int ts_submit_update(const ts_recorder *r, int stage, int layer, bool keep, starpu_data_handle_t h,
                     starpu_data_handle_t sum, starpu_data_handle_t saved,
                     starpu_data_handle_t h_out);
int ts_submit_update_back(const ts_recorder *r, int stage, int layer, bool keep,
                          starpu_data_handle_t saved, starpu_data_handle_t dh,
                          starpu_data_handle_t sum);

/** The norm between the stages of a cluster merge: g = norm(h), and dh += its gradient. */
int ts_submit_norm(const ts_recorder *r, starpu_data_handle_t h, starpu_data_handle_t g);
int ts_submit_norm_back(const ts_recorder *r, starpu_data_handle_t h, starpu_data_handle_t dg,
                        starpu_data_handle_t dh);

/** Energies of a tile's n atoms, reference [n] double [eV] added; hshort and dshort are used by the
 * cluster merge only (pass hlast and dlast otherwise). */
int ts_submit_head(const ts_recorder *r, int n, const double *reference,
                   starpu_data_handle_t hshort, starpu_data_handle_t hlast,
                   starpu_data_handle_t energy, starpu_data_handle_t dshort,
                   starpu_data_handle_t dlast);

int ts_submit_edge_force(const ts_recorder *r, const ts_tile *tile, starpu_data_handle_t edges,
                         starpu_data_handle_t grad, starpu_data_handle_t pull);

/** Forces of a tile from the pulls of its own edges and of those it sends on; f [n,3] double
 * [eV/Å] is written (first) or added to, and so is virial [n,9] double [eV], per atom
 * dE/d(strain).  pull_to [tile->nto]. */
int ts_submit_force(const ts_recorder *r, const ts_tile *tile, bool first,
                    starpu_data_handle_t edges, starpu_data_handle_t pull,
                    const starpu_data_handle_t *pull_to, double (*f)[3], double (*virial)[9],
                    starpu_data_handle_t motion);

#endif
