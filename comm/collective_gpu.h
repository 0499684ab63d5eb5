/* SPDX-License-Identifier: MIT
 *
 * The collectives of comm/collective.h among GPUs that can write to each other's memory (NCCL's
 * symmetric windows): the same algorithms, one kernel a call, no barrier.  Built only where
 * configure finds CUDA and NCCL 2.28; where the GPUs share no memory, and for longer arrays, NCCL's
 * own.
 *
 * The kernels are tested with threads of the host; on GPUs they have been compiled, not yet run. */
#ifndef TS_COLLECTIVE_GPU_H
#define TS_COLLECTIVE_GPU_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>

#include "comm/collective_op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ts_gpu_algorithm {
  TS_GPU_LL_ONE,
  TS_GPU_LL_TWO,
  TS_GPU_SENTINEL_ONE,
  TS_GPU_SENTINEL_TWO,
  TS_GPU_LL128, /**< sums in the order of arrival: their last bits change from call to call */
  TS_GPU_NCCL,  /**< NCCL's; order of sums as NCCL has it */
  TS_GPU_ALGORITHMS
} ts_gpu_algorithm;

typedef struct ts_gpu_collective ts_gpu_collective;

/** Prepare collectives on the current device.  Collective on comm.
 * \param [in]  comm   Borrowed until ts_gpu_collective_destroy().
 * \param [in]  words  Longest array (or part, of reduce-scatter and all-gather) that the kernels
 *                     take, in 8 bytes; longer ones are NCCL's.
 * \param [out] out    Owned by the caller; NULL on failure.
 * \return 0; TS_ERR_ARG; TS_ERR_MEMORY; TS_ERR_SYSTEM: CUDA or NCCL failed. */
int ts_gpu_collective_create(ncclComm_t comm, size_t words, ts_gpu_collective **out);

/** Waits for the device.  Accepts NULL, sets it to NULL. */
void ts_gpu_collective_destroy(ts_gpu_collective **collective);

/** Do the ranks share memory, so that the kernels can be used? */
bool ts_gpu_collective_symmetric(const ts_gpu_collective *collective);

/** Let kernels that wait for others return, with undefined results, because a rank is gone; later
 * calls fail.  From any thread; whoever finds a peer dead (comm/collective.h, mpirun) calls it. */
void ts_gpu_collective_abort(ts_gpu_collective *collective);

/* All calls are collective, on all ranks in the same order and always on one stream, and return
 * when the work is enqueued.  Arrays are device memory of `type`; of an algorithm the calls that
 * are no all-reduces take the mode.  Sums are taken in the order of the ranks, except by ll128 and
 * NCCL. They return 0; TS_ERR_SYSTEM; TS_ERR_MPI: aborted; TS_ERR_ARG: an earlier call in mode
 * sentinel or ll128 met a value with the sentinel's bits (a NaN was sent in its place). */

/** Combine in [n] of all ranks into out [n] of all; out may be in. */
int ts_gpu_collective_allreduce(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                                ts_ctype type, ts_cop op, const void *in, void *out, size_t n,
                                cudaStream_t stream);

/** x [n] of the root to all. */
int ts_gpu_collective_broadcast(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                                ts_ctype type, int root, void *x, size_t n, cudaStream_t stream);

/** Combine in [n] of all ranks into the root's out [n], which may be in; others' out is not used.
 */
int ts_gpu_collective_reduce(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                             ts_ctype type, ts_cop op, int root, const void *in, void *out,
                             size_t n, cudaStream_t stream);

/** Combine row `rank` of in [size,n] of all ranks into out [n], which may be that row. */
int ts_gpu_collective_reduce_scatter(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                                     ts_ctype type, ts_cop op, const void *in, void *out, size_t n,
                                     cudaStream_t stream);

/** in [n] of each rank into its row of out [size,n] of all; in may be that row. */
int ts_gpu_collective_all_gather(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                                 ts_ctype type, const void *in, void *out, size_t n,
                                 cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
