/* SPDX-License-Identifier: MIT
 *
 * Memory, launches and NCCL's own collectives; the kernels are in collective_gpu_kernels.h. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>

#include <cstdint>
#include <cstdlib>

#include "comm/collective_gpu.h"
extern "C" {
#include "runtime/error.h"
}

#define TS_SHARED __host__ __device__
#define TS_DEVICE __device__
#define TS_KERNEL __global__

namespace machine {

using window = ncclWindow_t;

TS_DEVICE inline char *address(window w, size_t offset, int rank)
{
  return (char *)ncclGetLsaPointer(w, offset, rank);
}

TS_DEVICE inline size_t first()
{
  return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

TS_DEVICE inline size_t step()
{
  return (size_t)gridDim.x * blockDim.x;
}

TS_DEVICE inline void put_pair(char *to, uint64_t word, uint32_t epoch)
{
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};"
               :
               : "l"(to), "r"((uint32_t)word), "r"(epoch), "r"((uint32_t)(word >> 32))
               : "memory");
}

TS_DEVICE inline bool take_pair(const char *from, uint32_t epoch, uint64_t *word)
{
  uint32_t low, high, first, second;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(low), "=r"(first), "=r"(high), "=r"(second)
               : "l"(from)
               : "memory");
  *word = (uint64_t)high << 32 | low;
  return first == epoch && second == epoch;
}

TS_DEVICE inline void put(char *to, uint64_t word)
{
  *(volatile uint64_t *)to = word;
}

TS_DEVICE inline uint64_t take(const char *from)
{
  return *(const volatile uint64_t *)from;
}

TS_DEVICE inline uint64_t swap(char *at, uint64_t old, uint64_t next)
{
  return atomicCAS_system((unsigned long long *)at, old, next);
}

TS_DEVICE inline void count(char *at)
{
  asm volatile("red.release.sys.global.add.u32 [%0], 1;" : : "l"(at) : "memory");
}

TS_DEVICE inline uint32_t counted(const char *at)
{
  uint32_t n;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(n) : "l"(at) : "memory");
  return n;
}

}  // namespace machine

#include "comm/collective_gpu_kernels.h"

namespace {

constexpr int THREADS = 256, MOST_BLOCKS = 32; /* all resident on any GPU */

int fail_cuda(cudaError_t error, const char *what)
{
  if (error == cudaSuccess) return 0;
  return tsi_fail(error == cudaErrorMemoryAllocation ? TS_ERR_MEMORY : TS_ERR_SYSTEM, "%s: %s",
                  what, cudaGetErrorString(error));
}

int fail_nccl(ncclResult_t error, const char *what)
{
  if (error == ncclSuccess) return 0;
  return tsi_fail(TS_ERR_SYSTEM, "%s: %s", what, ncclGetErrorString(error));
}

#define TRY_CUDA(call) TS_TRY(fail_cuda((call), #call))
#define TRY_NCCL(call) TS_TRY(fail_nccl((call), #call))

/* Nobody writes before all windows are filled. */
__global__ void meet(ncclDevComm comm)
{
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

__global__ void fill(uint64_t *word, size_t n, size_t line, uint64_t in_line)
{
  for (size_t i = machine::first(); i < n; i += machine::step())
    word[i] = line && i % line == 0 ? 0 : in_line;
}

const ncclDataType_t nccl_types[TS_CTYPES] = {ncclDouble, ncclFloat, ncclInt64};
const ncclRedOp_t nccl_ops[TS_COPS] = {ncclSum, ncclMax, ncclMin};

size_t words_in(ts_ctype type, size_t n)
{
  return (n * tsi_ctype_size(type) + 7) / 8;
}

}  // namespace

struct ts_gpu_collective {
  ncclComm_t comm;
  bool symmetric, registered, joined;
  view v;
  uint32_t turn; /* calls of ll128 */
  ncclDevComm device;
  void *memory;
  int *flags; /* [2] host memory: refused, stop */
};

static int share(ts_gpu_collective *c)
{
  const int size = c->v.size;
  const size_t words = c->v.words, bytes = window_bytes(size, words);
  const size_t plain = area_start(size, words, 2), lines = area_start(size, words, 4);
  ncclDevCommRequirements needs = {};
  needs.lsaBarrierCount = 1;
  TRY_NCCL(ncclMemAlloc(&c->memory, bytes));
  char *memory = (char *)c->memory;
  TRY_CUDA(cudaMemset(memory, 0, bytes));
  fill<<<MOST_BLOCKS, THREADS>>>((uint64_t *)(memory + plain), (lines - plain) / 8, 0, SENTINEL);
  fill<<<MOST_BLOCKS, THREADS>>>((uint64_t *)(memory + lines), (bytes - lines) / 8, LINE, SENTINEL);
  TRY_CUDA(cudaGetLastError());
  TRY_CUDA(cudaDeviceSynchronize());
  TRY_NCCL(ncclCommWindowRegister(c->comm, memory, bytes, &c->v.window, NCCL_WIN_COLL_SYMMETRIC));
  c->registered = c->v.window != nullptr;
  TRY_NCCL(ncclDevCommCreate(c->comm, &needs, &c->device));
  c->joined = true;
  if (!c->registered) return 0; /* no symmetric memory: NCCL's collectives */
  meet<<<1, THREADS>>>(c->device);
  TRY_CUDA(cudaGetLastError());
  TRY_CUDA(cudaDeviceSynchronize());
  c->symmetric = true;
  return 0;
}

int ts_gpu_collective_create(ncclComm_t comm, size_t words, ts_gpu_collective **out)
{
  *out = (ts_gpu_collective *)calloc(1, sizeof **out);
  if (!*out) return tsi_fail(TS_ERR_MEMORY, "no memory for a collective");
  ts_gpu_collective *c = *out;
  c->comm = comm;
  c->v.words = (words + 1) / 2 * 2;
  int status = words ? 0 : tsi_fail(TS_ERR_ARG, "collectives of no words");
  if (!status) status = fail_nccl(ncclCommUserRank(comm, &c->v.rank), "ncclCommUserRank");
  if (!status) status = fail_nccl(ncclCommCount(comm, &c->v.size), "ncclCommCount");
  if (!status)
    status = fail_cuda(cudaHostAlloc((void **)&c->flags, 2 * sizeof *c->flags,
                                     cudaHostAllocMapped | cudaHostAllocPortable),
                       "cudaHostAlloc");
  if (!status) {
    c->flags[0] = c->flags[1] = 0;
    c->v.refused = &c->flags[0];
    c->v.stop = &c->flags[1];
    if (ncclTeamLsa(comm).nRanks == c->v.size) status = share(c);
  }
  if (status) ts_gpu_collective_destroy(out);
  return status;
}

void ts_gpu_collective_destroy(ts_gpu_collective **collective)
{
  ts_gpu_collective *c = *collective;
  if (!c) return;
  cudaDeviceSynchronize();
  if (c->joined) ncclDevCommDestroy(c->comm, &c->device);
  if (c->registered) ncclCommWindowDeregister(c->comm, c->v.window);
  if (c->memory) ncclMemFree(c->memory);
  if (c->flags) cudaFreeHost(c->flags);
  free(c);
  *collective = nullptr;
}

bool ts_gpu_collective_symmetric(const ts_gpu_collective *c)
{
  return c->symmetric;
}

void ts_gpu_collective_abort(ts_gpu_collective *c)
{
  *(volatile int *)c->v.stop = 1;
}

static int check(const ts_gpu_collective *c)
{
  if (*(volatile int *)c->v.stop) return tsi_fail(TS_ERR_MPI, "the collective was aborted");
  if (*(volatile int *)c->v.refused)
    return tsi_fail(TS_ERR_ARG,
                    "a value with the bits 0x%llx was passed to a collective in mode "
                    "sentinel, where they mark an empty slot",
                    (unsigned long long)SENTINEL);
  return 0;
}

/* Do the kernels take this call?  If so, it is the next one. */
static bool begin(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type, size_t n)
{
  if (!c->symmetric || algorithm == TS_GPU_NCCL || words_in(type, n) > c->v.words) return false;
  c->v.epoch++;
  return true;
}

static bool is_ll(ts_gpu_algorithm algorithm)
{
  return algorithm == TS_GPU_LL_ONE || algorithm == TS_GPU_LL_TWO || algorithm == TS_GPU_LL128;
}

static int grid(ts_ctype type, size_t n)
{
  const size_t blocks = (words_in(type, n) + THREADS - 1) / THREADS;
  return blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
}

/* Statements with T, a type, and op, a literal, in place of their values. */
#define WITH_TYPE(type, ...)               \
  do {                                     \
    if ((type) == TS_CTYPE_DOUBLE) {       \
      using T = double;                    \
      __VA_ARGS__;                         \
    } else if ((type) == TS_CTYPE_FLOAT) { \
      using T = float;                     \
      __VA_ARGS__;                         \
    } else {                               \
      using T = long long;                 \
      __VA_ARGS__;                         \
    }                                      \
  } while (0)
#define WITH_OP(op_, ...)               \
  do {                                  \
    if ((op_) == TS_COP_SUM) {          \
      constexpr ts_cop op = TS_COP_SUM; \
      __VA_ARGS__;                      \
    } else if ((op_) == TS_COP_MAX) {   \
      constexpr ts_cop op = TS_COP_MAX; \
      __VA_ARGS__;                      \
    } else {                            \
      constexpr ts_cop op = TS_COP_MIN; \
      __VA_ARGS__;                      \
    }                                   \
  } while (0)
#define WITH_MODE(algorithm, ...) \
  do {                            \
    if (is_ll(algorithm)) {       \
      using mode = ll;            \
      __VA_ARGS__;                \
    } else {                      \
      using mode = sentinel;      \
      __VA_ARGS__;                \
    }                             \
  } while (0)
#define LAUNCH(kernel, ...) kernel<<<grid(type, n), THREADS, 0, stream>>>(c->v, __VA_ARGS__)

int ts_gpu_collective_allreduce(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type,
                                ts_cop op_, const void *in, void *out, size_t n,
                                cudaStream_t stream)
{
  TS_TRY(check(c));
  if (n == 0) return 0;
  if (!begin(c, algorithm, type, n)) {
    TRY_NCCL(ncclAllReduce(in, out, n, nccl_types[type], nccl_ops[op_], c->comm, stream));
    return 0;
  }
  if (algorithm == TS_GPU_LL128) {
    c->turn++;
    WITH_TYPE(type, WITH_OP(op_, LAUNCH((line_shot<T, op>), c->turn, (const T *)in, (T *)out, n)));
    line_clear<<<1, THREADS, 0, stream>>>(c->v, c->turn);
  } else if (algorithm == TS_GPU_LL_TWO || algorithm == TS_GPU_SENTINEL_TWO) {
    WITH_MODE(
        algorithm,
        WITH_TYPE(type, WITH_OP(op_, LAUNCH((two_shot<mode, T, op>), (const T *)in, (T *)out, n))));
  } else {
    WITH_MODE(
        algorithm,
        WITH_TYPE(type, WITH_OP(op_, LAUNCH((one_shot<mode, T, op>), (const T *)in, (T *)out, n))));
  }
  TRY_CUDA(cudaGetLastError());
  return 0;
}

int ts_gpu_collective_broadcast(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type,
                                int root, void *x, size_t n, cudaStream_t stream)
{
  TS_TRY(check(c));
  if (n == 0) return 0;
  if (!begin(c, algorithm, type, n))
    TRY_NCCL(ncclBroadcast(x, x, n, nccl_types[type], root, c->comm, stream));
  else
    WITH_MODE(algorithm, WITH_TYPE(type, LAUNCH((broadcast<mode, T>), root, (T *)x, n)));
  TRY_CUDA(cudaGetLastError());
  return 0;
}

int ts_gpu_collective_reduce(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type,
                             ts_cop op_, int root, const void *in, void *out, size_t n,
                             cudaStream_t stream)
{
  TS_TRY(check(c));
  if (n == 0) return 0;
  if (!begin(c, algorithm, type, n))
    TRY_NCCL(ncclReduce(in, out, n, nccl_types[type], nccl_ops[op_], root, c->comm, stream));
  else
    WITH_MODE(algorithm, WITH_TYPE(type, WITH_OP(op_, LAUNCH((reduce<mode, T, op>), root,
                                                             (const T *)in, (T *)out, n))));
  TRY_CUDA(cudaGetLastError());
  return 0;
}

int ts_gpu_collective_reduce_scatter(ts_gpu_collective *c, ts_gpu_algorithm algorithm,
                                     ts_ctype type, ts_cop op_, const void *in, void *out, size_t n,
                                     cudaStream_t stream)
{
  TS_TRY(check(c));
  if (n == 0) return 0;
  if (!begin(c, algorithm, type, n))
    TRY_NCCL(ncclReduceScatter(in, out, n, nccl_types[type], nccl_ops[op_], c->comm, stream));
  else
    WITH_MODE(algorithm, WITH_TYPE(type, WITH_OP(op_, LAUNCH((reduce_scatter<mode, T, op>),
                                                             (const T *)in, (T *)out, n))));
  TRY_CUDA(cudaGetLastError());
  return 0;
}

int ts_gpu_collective_all_gather(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type,
                                 const void *in, void *out, size_t n, cudaStream_t stream)
{
  TS_TRY(check(c));
  if (n == 0) return 0;
  if (!begin(c, algorithm, type, n))
    TRY_NCCL(ncclAllGather(in, out, n, nccl_types[type], c->comm, stream));
  else
    WITH_MODE(algorithm,
              WITH_TYPE(type, LAUNCH((all_gather<mode, T>), (const T *)in, (T *)out, n)));
  TRY_CUDA(cudaGetLastError());
  return 0;
}
