/* SPDX-License-Identifier: MIT
 *
 * The kernels of one tile: plain arrays in, plain arrays out; no StarPU, no MPI, no allocation, no
 * globals.  Each exists in float and double and for several instruction sets, from one source; the
 * table below is how the rest of the program sees them.  Arrays of the model's precision are
 * `void *` here (called "real" in the comments) and typed inside the kernels.
 *
 * Shapes, used throughout:
 *   A  rows of a tile (the last tile is padded)   n  atoms really in it, n <= A
 *   C channels, H heads, d head_dim, L lmax, R = (L+1)^2 rows of a feature
 *   F = H d / 2 hidden width of an invariant map, W = H head_channels (first order)
 *   D  channels of the map whose values along the edge a score sees: 0 for score "qk", K or
 *      H/(L+1) + 1 for the others; M of its D (L+1) invariants are used (K (L+1), or H)
 *   E  candidate edges whose receiver is in the tile (superset; inactive ones are skipped)
 * A feature is [R,A,C]: rows outermost, so that each degree is one dense matrix.
 * Heads are innermost in queries and keys, [A,d,H], so that every per-head loop is a vector loop.
 *
 * Source of the arithmetic: E2Former-V2 (docs/model.md states it, with the derivatives). */
#ifndef TS_KERNELS_H
#define TS_KERNELS_H

#include "models/description.h"
#include "models/matrix.h"
#include "runtime/types.h"

/** Sizes of one model at one tile size. */
typedef struct ts_shape {
  int atoms;    /* A */
  int channels; /* C */
  int heads;    /* H */
  int head_dim; /* d */
  int lmax;     /* L */
  int rows;     /* R */
  int hidden;   /* F */
  int wide;     /* W */
  int directed; /* D: width of the receiver's features that a score sees along the edge, or 0 */
  int radial;   /* m of split radial networks, or 0 */
} ts_shape;

/** An equivariant layer norm. weight real [L+1,C], bias real [C] (degree 0). */
typedef struct ts_norm {
  void *weight, *bias;
} ts_norm;

/** One matrix per degree, bias on degree 0. */
typedef struct ts_so3 {
  ts_matrix degree[TS_LMAX + 1];
  void *bias; /* real [out] */
} ts_so3;

/** Tail of an invariant map (query or key): (L+1)F -> F, layer norm, SiLU, F -> d H (permuted to
 * [d,H]; the query's carries the 1/sqrt(d) of the score). */
typedef struct ts_invariant {
  ts_matrix first, last;
  void *first_bias, *norm_weight, *norm_bias, *last_bias;
} ts_invariant;

/** What follows the first layer of a radial network of P: layer norm, SiLU, m -> m, again, m -> its
 * outputs.  scale, shift real [m]. */
typedef struct ts_radial_rest {
  void *scale[2], *shift[2];
  ts_matrix second, third;
  void *second_bias, *third_bias;
} ts_radial_rest;

/** Radial functions of an edge as kernels read them, W outputs: a table of each pair of elements,
 * or, split (models/radial.h), a table of the distance's part of the first layers, the elements'
 * parts, and the networks from there on. */
typedef struct ts_radial {
  int width;         /* W */
  const void *table; /* real [S,S,nodes,W] coefficients; split: [nodes,P,m] */
  bool split;
  int species, nodes, nets, middle; /* S, rows of a table, P, m */
  const void *receiver, *sender;    /* split: real [S,P,m] */
  ts_radial_rest rest[TS_LMAX + 1]; /* split: [P] */
} ts_radial;

enum { TS_RADIAL_BLOCK = 32 }; /**< edges whose networks are evaluated at once */

/** The packed weights of one attention layer. */
typedef struct ts_layer {
  ts_order order;
  ts_softmax_floor floor;
  ts_score score;
  ts_weighting weighting;
  ts_norm norm_1, norm_ffn;
  const void *system;          /* real [C] added after norm_1, or NULL (charge and multiplicity) */
  ts_so3 pairs;                /* C -> 4F: query a, query b, key a, key b; bias real [4F] */
  ts_invariant map[2];         /* query, key */
  ts_so3 value;                /* C -> C */
  ts_so3 directed;             /* C -> D, for the scores that see the edge's direction */
  ts_invariant gate_map;       /* and their gate: M -> H ("qkdot": first alone), H -> H -> H */
  ts_matrix path[TS_LMAX + 1]; /* first order: (paths of l3) C -> W, carries 1/sqrt(paths) */
  ts_so3 out;                  /* proj_zero C -> C, or proj_first W -> C */
  ts_so3 ffn_1, ffn_2;         /* C -> C */
  ts_matrix gate;              /* C -> (L+1) C */
  void *gate_bias;             /* real [(L+1) C] */
  double silu_scale, sigmoid_scale;
  ts_radial radial; /* W = 2H: gate | weight; scores that see the direction: weight | factors of the
                     * invariants, H+M */
} ts_layer;

/** The published default, which has kernels of its own. */
static inline bool ts_layer_is_plain(const ts_layer *w)
{
  return w->score == TS_SCORE_QK && w->weighting == TS_WEIGHTING_SOFTMAX;
}

/** The energy head and the joining of the stages. */
typedef struct ts_head {
  ts_head_kind kind;
  ts_merge merge;
  ts_norm norm;     /* norm_final, or norm_cluster */
  ts_so3 join[2];   /* cluster: the rows of final_linear for h and for g, C -> C; a bias in the
                     * first; degree 0 alone unless the head is a sphere's */
  void *directions; /* real [TS_SPHERE_POINTS,R], sphere: harmonics of its directions */
  ts_matrix mlp[2];
  void *mlp_bias[2];
  void *last; /* real [C] */
  double last_bias, energy_scale;
} ts_head;

/** Per edge and stage, real [E,TS_EDGE_REALS]: what every layer of the stage needs. */
enum {
  TS_EDGE_B = 0,     /* 6 spline weights */
  TS_EDGE_DB = 6,    /* 6 slopes of them [1/Å] */
  TS_EDGE_ENV = 12,  /* envelope */
  TS_EDGE_DENV = 13, /* its slope [1/Å] */
  TS_EDGE_U = 14,    /* unit vector x_i - x_j over r */
  TS_EDGE_R = 17,    /* distance [Å] */
  TS_EDGE_REALS = 18
};

/** Reals of a row of keys and values. */
static inline size_t ts_kv_width(const ts_shape *s)
{
  return (size_t)(s->heads * s->head_dim + s->rows * s->channels);
}

enum { TS_FIXED_BITS = 44 }; /**< of the integers of attend_send_fixed: 6e-14, up to 5e5 */

/** The edges of one tile in one stage, with what changes every step.  Senders sit in blocks: tiles
 * of this rank (of A rows), then what came from each peer (of as many rows as came). */
typedef struct ts_edge_block {
  int n;                 /* receivers */
  int local;             /* blocks of this rank in the list; the others came from peers */
  const int32_t *row;    /* [n+1] offsets into this block */
  const int32_t *sender; /* [E] TS_SLOT of the sender */
  const int32_t *rows;   /* [blocks] rows that a block's arrays have */
  const uint8_t *active; /* [E] */
  const int32_t *node;   /* [E] row of the tables of pairs: pair * nodes + interval */
  const void *edge;      /* real [E,TS_EDGE_REALS] */
} ts_edge_block;

/** The same seen from the senders of one tile: entries sorted by the receiver's id. */
typedef struct ts_sender_block {
  int n;                   /* senders */
  int rows;                /* rows that the arrays of their keys and values have, >= n */
  const int32_t *column;   /* [n+1] offsets into the entries */
  const int32_t *tile;     /* [entries] index of the receiver's tile in the list */
  const int32_t *receiver; /* [entries] row of the receiver in its tile */
  const int32_t *edge;     /* [entries] index of the edge in that tile's block */
} ts_sender_block;

/** Which edges an attention task takes.  The two halves give what `both` gives, to rounding: the
 * local half leaves sums without their denominator, the remote half adds to them and divides. */
typedef enum ts_half { TS_HALF_BOTH, TS_HALF_LOCAL, TS_HALF_REMOTE } ts_half;

/** What a layer keeps from forward for backward, per tile. */
typedef struct ts_saved {
  void *pairs;  /* real [R,A,4F], NULL when recomputed */
  void *hidden; /* real [2,A,F] before the layer norms of the invariant maps */
  void *stats;  /* real [2,A,H]: largest score, 1/(sum + eps) */
  void *middle; /* real [R,A,C] after the attention's residual */
  void *ffn;    /* real [R,A,C] after ffn_1 */
  void *gates;  /* real [A,(L+1)C] before the non-linearity */
} ts_saved;

/** The step of one kind of radial grid, see models/radial.h. */
typedef struct ts_edge_params {
  double cutoff, lower, step; /* [Å] */
  int nodes;                  /* rows of a pair's table */
  ts_envelope envelope;
  int most; /* the stage's max_neighbors; 0: all */
} ts_edge_params;

typedef struct ts_kernels {
  const char *isa;
  bool is_double;
  const ts_matrix_ops *packed; /**< the matrix back end for this instruction set */

  /** Radial data of a tile's edges.  geometry [E,4] double (u, r), pair [E] species pair;
   * writes node [E] and edge real [E,TS_EDGE_REALS]; inactive edges are left alone. */
  void (*edge)(const ts_edge_params *p, int64_t count, const double *geometry,
               const uint8_t *active, const int32_t *pair, int32_t *node, void *edge);

  /** h [R,A,C] = 1/average_degree sum over edges of Y(u) f_l(r) env; f of (L+1) C outputs. */
  void (*embed)(const ts_shape *s, double average_degree, const ts_radial *f,
                const ts_edge_block *b, void *h, void *scratch);
  /** grad [E,4] real (du, dr) += the embedding's. */
  void (*embed_back)(const ts_shape *s, double average_degree, const ts_radial *f,
                     const ts_edge_block *b, const void *dh, void *grad, void *scratch);

  /** q [A,d,H] (then, where D > 0, [R,A,D]), kv = k [A,d,H] then v [R,A,C], from h [R,A,C]. */
  void (*project)(const ts_shape *s, const ts_layer *w, const void *h, void *q, void *kv,
                  const ts_saved *saved, void *scratch);
  /** dh [R,A,C] += from dq and dkv (shapes of q and kv). */
  void (*project_back)(const ts_shape *s, const ts_layer *w, const void *h, const void *dq,
                       const void *dkv, const ts_saved *saved, void *dh, void *scratch);

  /** aggregate [R,A,C] (zero order) or [3,R,A,C] (first) over the active edges; kv[] are the
   * blocks of keys and values that b->sender names.  In two halves only where ts_layer_is_plain;
   * the local one does not read the blocks of peers. */
  void (*attend)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, ts_half half,
                 const void *q, const void *const *kv, const ts_saved *saved, void *aggregate,
                 void *scratch);
  /** Receiver's half: dq, the edges' grad [E,4] +=, and per edge share real [E,2,H]: the weight of
   * the value, and the factor of q in the key's gradient. */
  void (*attend_back)(const ts_shape *s, const ts_layer *w, const ts_edge_block *b, const void *q,
                      const void *const *kv, const ts_saved *saved, const void *daggregate,
                      void *dq, void *share, void *grad, void *scratch);
  /** Sender's half: dkv of this tile from the receivers' q, daggregate and shares.  For first
   * order, edges[] are the receiver tiles' edge arrays (unit vectors). */
  void (*attend_send_back)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                           const void *const *q, const void *const *daggregate,
                           const void *const *share, const void *const *active,
                           const void *const *edges, void *dkv, void *scratch);
  /** The same as sums of integers, which no order of adding changes: fixed [n,d H + R C] int64, in
   * units of 2^-TS_FIXED_BITS, is added to.  \return whether every term was in range. */
  bool (*attend_send_fixed)(const ts_shape *s, const ts_layer *w, const ts_sender_block *b,
                            const void *const *q, const void *const *daggregate,
                            const void *const *share, const void *const *active,
                            const void *const *edges, int64_t *fixed, void *scratch);
  /** dkv (of `rows` rows, n of them in use) from fixed [n,d H + R C]. */
  void (*settle)(const ts_shape *s, int n, int rows, const int64_t *fixed, void *dkv);
  /** A block of `n` rows for a peer: out = the rows slot [n] (TS_SLOT) of kv blocks of A rows. */
  void (*pack)(const ts_shape *s, int n, const int32_t *slot, const void *const *kv, void *out);
  /** dkv (of A rows) += what peers returned: for i < n in order, row[i] += row slot[i] of the
   * blocks, which have rows[block] rows. */
  void (*add_returned)(const ts_shape *s, int n, const int32_t *slot, const int32_t *row,
                       const int32_t *rows, const void *const *blocks, void *dkv);

  /** h_out [R,A,C] from h and the aggregate. */
  void (*update)(const ts_shape *s, const ts_layer *w, const void *h, const void *aggregate,
                 const ts_saved *saved, void *h_out, void *scratch);
  /** dh [R,A,C]: gradient of h_out on entry, of h (through the residual) on return;
   * daggregate is written. */
  void (*update_back)(const ts_shape *s, const ts_layer *w, const ts_saved *saved, void *dh,
                      void *daggregate, void *scratch);

  /** out = norm(h); and dh += its gradient. */
  void (*norm)(const ts_shape *s, const ts_norm *w, const void *h, void *out);
  void (*norm_back)(const ts_shape *s, const ts_norm *w, const void *h, const void *dout, void *dh);

  /** energy [A] double of each atom [eV], dlast [R,A,C] and (merge cluster) dshort [R,A,C]:
   * gradients of the sum of the n energies.  hshort is read for the cluster merge only. */
  void (*head)(const ts_shape *s, const ts_head *w, int n, const void *hshort, const void *hlast,
               double *energy, void *dshort, void *dlast, void *scratch);

  /** Turn an edge's grad (du, dr) into dE/d(x_i - x_j) [E,3] double [eV/Å]. */
  void (*edge_force)(int64_t count, const double *geometry, const uint8_t *active, const void *grad,
                     double *pull);

  /** Bytes of scratch that any kernel above needs. */
  size_t (*scratch_bytes)(const ts_shape *s, int max_degree);
} ts_kernels;

/** The fastest kernels that this CPU can run.  Not collective; static.
 * isa: "auto", or "base", "v3", "v4" (an x86-64 level) to force one; NULL if it cannot run here. */
const ts_kernels *ts_kernels_find(bool is_double, const char *isa);

#endif
