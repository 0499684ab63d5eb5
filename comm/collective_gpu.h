/* SPDX-License-Identifier: MIT
 *
 * The all-reduce of comm/collective.h among GPUs that can write to each other's memory (NCCL's
 * symmetric windows): the same algorithms, one kernel a call, no barrier.  Built only where
 * configure finds CUDA and NCCL 2.28; where the GPUs share no memory, NCCL's own all-reduce.
 *
 * Compiled and linked by us, not yet run on a GPU. */
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
  TS_GPU_NCCL, /**< NCCL's; order of sums as NCCL has it */
  TS_GPU_ALGORITHMS
} ts_gpu_algorithm;

typedef struct ts_gpu_collective ts_gpu_collective;

/** Prepare all-reduces on the current device.  Collective on comm.
 * \param [in]  comm   Borrowed until ts_gpu_collective_destroy().
 * \param [in]  words  Longest array that the kernels take; longer ones are NCCL's.
 * \param [out] out    Owned by the caller; NULL on failure.
 * \return 0; TS_ERR_ARG; TS_ERR_MEMORY; TS_ERR_SYSTEM: CUDA or NCCL failed. */
int ts_gpu_collective_create(ncclComm_t comm, size_t words, ts_gpu_collective **out);

/** Waits for the device.  Accepts NULL, sets it to NULL. */
void ts_gpu_collective_destroy(ts_gpu_collective **collective);

/** Do the ranks share memory, so that the kernels can be used? */
bool ts_gpu_collective_symmetric(const ts_gpu_collective *collective);

/** Combine [n] values of all ranks in the order of the ranks.  Collective; always on one stream.
 * Arrays of float, arrays longer than `words` and ranks without shared memory take NCCL's.
 * \param [in]  in   [n] of type, device memory
 * \param [out] out  [n] of type, device memory; may be in
 * \return 0; TS_ERR_SYSTEM; TS_ERR_ARG: an earlier call in mode sentinel met a value with the
 *         sentinel's bits (a NaN was sent in its place). */
int ts_gpu_collective_allreduce(ts_gpu_collective *collective, ts_gpu_algorithm algorithm,
                                ts_ctype type, ts_cop op, const void *in, void *out, size_t n,
                                cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
