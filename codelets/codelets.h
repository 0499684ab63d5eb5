/* SPDX-License-Identifier: MIT
 *
 * Tasks on tiles.  One helper per codelet records one task into a program: it names the data that
 * the task reads and writes (StarPU handles, each one block of bytes of one tile) and the model's
 * weights.  Kernels do the arithmetic; the order of the calls in
 * md/step_record.c is the physics.
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
 * and of the exchange with a peer (n rows in the order of its plan):
 *   block     real, as kv with A = n       keys and values, or their gradients
 *   fixed     int64 [n,d H + R C]          gradients as integers (kernels.h), of a tile or a peer
 *   places    double [n,3]                 positions
 *   feel      double [n,3] or int64 [n,3]  forces on the way home, in units of 2^-TS_FORCE_BITS
 *
 * Every helper: not collective; returns 0, or the failure of ts_program_add.  Pointers in the
 * arguments are borrowed until the program is destroyed. */
#ifndef TS_CODELETS_H
#define TS_CODELETS_H

#include "models/model.h"
#include "neighbor/geometry.h"
#include "neighbor/tiles.h"
#include "runtime/program.h"

/** Phases of the accounting, in the order in which they are reported. */
#define TS_PHASE_MAP(X)                      \
  X(TS_PHASE_MOVE, "integrate")              \
  X(TS_PHASE_GEOMETRY, "geometry")           \
  X(TS_PHASE_EMBED, "embed")                 \
  X(TS_PHASE_PROJECT, "project")             \
  X(TS_PHASE_PACK, "pack")                   \
  X(TS_PHASE_ATTEND, "attend")               \
  X(TS_PHASE_ATTEND_REMOTE, "attend remote") \
  X(TS_PHASE_UPDATE, "update")               \
  X(TS_PHASE_HEAD, "head")                   \
  X(TS_PHASE_UPDATE_BACK, "update back")     \
  X(TS_PHASE_ATTEND_BACK, "attend back")     \
  X(TS_PHASE_SEND_BACK, "send back")         \
  X(TS_PHASE_RETURN, "return")               \
  X(TS_PHASE_PROJECT_BACK, "project back")   \
  X(TS_PHASE_EMBED_BACK, "embed back")       \
  X(TS_PHASE_FORCE, "force")                 \
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

/** kv_from [tile->nfrom]: keys and values of the senders' blocks; a half reads its own only. */
int ts_submit_attend(const ts_recorder *r, int stage, int layer, bool keep, ts_half half,
                     const ts_tile *tile, starpu_data_handle_t edges, starpu_data_handle_t q,
                     const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                     starpu_data_handle_t sum);
int ts_submit_attend_back(const ts_recorder *r, int stage, int layer, bool keep,
                          const ts_tile *tile, starpu_data_handle_t edges, starpu_data_handle_t q,
                          const starpu_data_handle_t *kv_from, starpu_data_handle_t saved,
                          starpu_data_handle_t sum, starpu_data_handle_t dq,
                          starpu_data_handle_t share, starpu_data_handle_t grad);

/** The four lists [tile->nto] are of the tiles that receive from this block (a tile, or the halo
 * from a peer); dkv has `rows` rows, or is `fixed`, which may fail with TS_ERR_SIMULATION. */
int ts_submit_send_back(const ts_recorder *r, int stage, int layer, bool fixed, int rows,
                        const ts_tile *tile, const ts_tile *tiles, const starpu_data_handle_t *q,
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

enum { TS_FORCE_BITS = 48 }; /**< of forces as integers: 3.6e-15 eV/Å, up to 3e4 eV/Å */

/** Where the forces of a tile or of a peer's atoms are added up. */
typedef struct ts_force_sums {
  double (*f)[3];      /**< [n,3] [eV/Å] */
  int64_t (*fixed)[3]; /**< [n,3] instead, in units of 2^-TS_FORCE_BITS; or NULL */
  double (*virial)[9]; /**< [n,9] [eV] per atom dE/d(strain); NULL for a peer's atoms */
} ts_force_sums;

/** Forces of a tile from the pulls of its own edges and of those it sends on, written (first) or
 * added to, and its virial.  pull_to [tile->nto].  May fail with TS_ERR_SIMULATION if fixed. */
int ts_submit_force(const ts_recorder *r, const ts_tile *tile, bool first,
                    starpu_data_handle_t edges, starpu_data_handle_t pull,
                    const starpu_data_handle_t *pull_to, const ts_force_sums *sums,
                    starpu_data_handle_t motion);

/* ---- exchange with peers */

/** Rows of this rank's tiles for one peer: [n] TS_SLOT into `tile`, and the atoms themselves. */
typedef struct ts_outbound {
  int n;
  const int32_t *slot; /**< [n] */
  const ts_lidx *atom; /**< [n] */
  int ntiles;
  const int32_t *tile; /**< [ntiles] ascending */
} ts_outbound;

/** What peers return to one tile, in a fixed order: by peer, then row. */
typedef struct ts_inbound {
  int n;
  const int32_t *slot; /**< [n] TS_SLOT into `peer` */
  const int32_t *row;  /**< [n] row of the tile */
  int npeers;
  const int32_t *peer; /**< [npeers] targets of the plan, ascending */
  const int32_t *rows; /**< [npeers] rows of each one's block */
} ts_inbound;

/** places of a peer from the rank's positions x; x_from [out->ntiles]. */
int ts_submit_pack_places(const ts_recorder *r, const ts_outbound *out, const double (*x)[3],
                          const starpu_data_handle_t *x_from, starpu_data_handle_t places);

/** block of a peer from keys and values; kv_from [out->ntiles]. */
int ts_submit_pack(const ts_recorder *r, const ts_outbound *out,
                   const starpu_data_handle_t *kv_from, starpu_data_handle_t block);

/** dkv += the blocks that came back; blocks [in->npeers]. */
int ts_submit_add_returned(const ts_recorder *r, const ts_inbound *in,
                           const starpu_data_handle_t *blocks, starpu_data_handle_t dkv);

/** dkv from the tile's n rows of `fixed` and those that came back. */
int ts_submit_settle(const ts_recorder *r, int n, const ts_inbound *in, starpu_data_handle_t fixed,
                     const starpu_data_handle_t *blocks, starpu_data_handle_t dkv);

/** feel of a peer's atoms (a halo block) from the pulls on the edges that they send on.
 * pull_to [halo->nto].  May fail as ts_submit_force. */
int ts_submit_halo_force(const ts_recorder *r, const ts_tile *halo, bool fixed,
                         const starpu_data_handle_t *pull_to, starpu_data_handle_t feel);

/** Forces of a tile: what came back is added, and then n atoms' integers become sums->f.
 * feel [in->npeers]. */
int ts_submit_return_force(const ts_recorder *r, int n, const ts_inbound *in,
                           const ts_force_sums *sums, const starpu_data_handle_t *feel,
                           starpu_data_handle_t motion);

#endif
