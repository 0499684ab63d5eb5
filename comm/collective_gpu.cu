/* SPDX-License-Identifier: MIT
 *
 * Every rank has a window of four areas (mode, shot); an area is two sub-buffers of a row per
 * sender.  A word of mode ll is 16 bytes {low, epoch, high, epoch}: each half carries its flag, so
 * only 8 bytes need to arrive together.  A thread sends its words to all peers and then waits for
 * theirs.
 *
 * Flow control: every call receives from every peer, so a kernel of round e that runs knows that
 * the peers have begun round e-1 and, calls being in order on one stream, have ended round e-2:
 * their rows of that round are free.  Threads wait for threads of any block of a peer, hence all
 * blocks must be resident: there are few. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>

#include <cstdint>
#include <cstdlib>

#include "comm/collective_gpu.h"
extern "C" {
#include "runtime/error.h"
}

namespace {

constexpr uint64_t SENTINEL = 0xFFF5A3C9FF9A5C3Dull; /* TS_SENTINEL of collective_buffer.h */
constexpr uint64_t QUIET_NAN = 0x7FF8000000000000ull;
constexpr int THREADS = 256, MOST_BLOCKS = 32;

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

/* What a kernel needs to know. */
struct view {
  ncclWindow_t window;
  int rank, size;
  size_t words;
  uint32_t epoch;
  int *refused; /* host memory: a value had the sentinel's bits */
};

struct ll {
  static constexpr size_t BYTES = 16, AREA = 0;
  static __device__ void put(char *row, size_t i, uint64_t word, uint32_t epoch)
  {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};"
                 :
                 : "l"(row + i * BYTES), "r"((uint32_t)word), "r"(epoch),
                   "r"((uint32_t)(word >> 32))
                 : "memory");
  }
  static __device__ uint64_t take(char *row, size_t i, uint32_t epoch)
  {
    uint32_t low, high, first, second;
    do {
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(low), "=r"(first), "=r"(high), "=r"(second)
                   : "l"(row + i * BYTES)
                   : "memory");
    } while (first != epoch || second != epoch);
    return (uint64_t)high << 32 | low;
  }
  static __device__ uint64_t check(uint64_t word, int *)
  {
    return word;
  }
};

struct sentinel {
  static constexpr size_t BYTES = 8, AREA = 2;
  static __device__ void put(char *row, size_t i, uint64_t word, uint32_t)
  {
    *(volatile uint64_t *)(row + i * BYTES) = word;
  }
  static __device__ uint64_t take(char *row, size_t i, uint32_t)
  {
    volatile uint64_t *slot = (volatile uint64_t *)(row + i * BYTES);
    uint64_t word;
    do
      word = *slot;
    while (word == SENTINEL);
    *slot = SENTINEL;
    return word;
  }
  static __device__ uint64_t check(uint64_t word, int *refused)
  {
    if (word != SENTINEL) return word;
    *(volatile int *)refused = 1;
    return QUIET_NAN;
  }
};

__host__ __device__ size_t area_bytes(int size, size_t words, size_t slot)
{
  return 2 * (size_t)size * words * slot;
}

__host__ __device__ size_t area_start(int size, size_t words, size_t area)
{
  return area < 2 ? area * area_bytes(size, words, ll::BYTES)
                  : 2 * area_bytes(size, words, ll::BYTES) +
                        (area - 2) * area_bytes(size, words, sentinel::BYTES);
}

/* The row of `to` that `from` writes in this round. */
template <typename mode>
__device__ char *row_of(const view &v, int shot, int to, int from)
{
  const size_t row = ((v.epoch & 1) * (size_t)v.size + (size_t)from) * v.words * mode::BYTES;
  return (char *)ncclGetLsaPointer(
      v.window, area_start(v.size, v.words, mode::AREA + (size_t)shot) + row, to);
}

template <typename T>
__device__ uint64_t bits(T x)
{
  return *reinterpret_cast<uint64_t *>(&x);
}

template <typename T, ts_cop op>
__device__ uint64_t combine(uint64_t a_, uint64_t b_)
{
  const T a = *reinterpret_cast<T *>(&a_), b = *reinterpret_cast<T *>(&b_);
  if (op == TS_COP_SUM) return bits<T>(a + b);
  const bool first = op == TS_COP_MAX ? a > b : a < b;
  return first || a != a ? a_ : b_;
}

/* Words `at` of all ranks combined in the order of the ranks; a peer's is number i of its row. */
template <typename mode, typename T, ts_cop op>
__device__ uint64_t gather(const view &v, uint64_t own, size_t i)
{
  uint64_t sum = 0;
  for (int p = 0; p < v.size; p++) {
    const uint64_t x = p == v.rank ? own : mode::take(row_of<mode>(v, 0, v.rank, p), i, v.epoch);
    sum = p ? combine<T, op>(sum, x) : x;
  }
  return sum;
}

template <typename mode, typename T, ts_cop op>
__global__ void one_shot(view v, const uint64_t *in, uint64_t *out, size_t n)
{
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const uint64_t own = mode::check(in[i], v.refused);
    for (int k = 1; k < v.size; k++) {
      const int p = (v.rank + k) % v.size;
      mode::put(row_of<mode>(v, 0, p, v.rank), i, own, v.epoch);
    }
    out[i] = gather<mode, T, op>(v, own, i);
  }
}

__device__ size_t part(size_t n, int p, int size)
{
  return n * (size_t)p / (size_t)size;
}

template <typename mode, typename T, ts_cop op>
__global__ void two_shot(view v, const uint64_t *in, uint64_t *out, size_t n)
{
  const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (int k = 1; k < v.size; k++) {
    const int p = (v.rank + k) % v.size;
    const size_t start = part(n, p, v.size), m = part(n, p + 1, v.size) - start;
    for (size_t i = first; i < m; i += step)
      mode::put(row_of<mode>(v, 0, p, v.rank), i, mode::check(in[start + i], v.refused), v.epoch);
  }
  const size_t start = part(n, v.rank, v.size), m = part(n, v.rank + 1, v.size) - start;
  for (size_t i = first; i < m; i += step) {
    const uint64_t own = mode::check(in[start + i], v.refused);
    const uint64_t sum = mode::check(gather<mode, T, op>(v, own, i), v.refused);
    out[start + i] = sum;
    for (int k = 1; k < v.size; k++) {
      const int p = (v.rank + k) % v.size;
      mode::put(row_of<mode>(v, 1, p, v.rank), i, sum, v.epoch);
    }
  }
  for (int k = 1; k < v.size; k++) {
    const int p = (v.rank + v.size - k) % v.size;
    const size_t theirs = part(n, p, v.size), count = part(n, p + 1, v.size) - theirs;
    for (size_t i = first; i < count; i += step)
      out[theirs + i] = mode::take(row_of<mode>(v, 1, v.rank, p), i, v.epoch);
  }
}

__global__ void empty(uint64_t *slot, size_t n)
{
  for (size_t i = threadIdx.x; i < n; i += blockDim.x)
    slot[i] = SENTINEL;
}

/* Nobody writes before all windows are filled. */
__global__ void meet(ncclDevComm comm)
{
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

template <typename mode, typename T>
void launch(const view &v, bool two, ts_cop op, const uint64_t *in, uint64_t *out, size_t n,
            cudaStream_t stream)
{
  const size_t blocks = (n + THREADS - 1) / THREADS;
  const int grid = blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
  void (*const kernels[2][TS_COPS])(view, const uint64_t *, uint64_t *, size_t) = {
      {one_shot<mode, T, TS_COP_SUM>, one_shot<mode, T, TS_COP_MAX>, one_shot<mode, T, TS_COP_MIN>},
      {two_shot<mode, T, TS_COP_SUM>, two_shot<mode, T, TS_COP_MAX>,
       two_shot<mode, T, TS_COP_MIN>}};
  kernels[two][op]<<<grid, THREADS, 0, stream>>>(v, in, out, n);
}

}  // namespace

struct ts_gpu_collective {
  ncclComm_t comm;
  bool symmetric, registered, joined;
  view v;
  ncclDevComm device;
  void *memory;
};

static int share(ts_gpu_collective *c)
{
  const size_t bytes = area_start(c->v.size, c->v.words, 4);
  const size_t first = area_start(c->v.size, c->v.words, 2);
  ncclDevCommRequirements needs = {};
  needs.lsaBarrierCount = 1;
  TRY_NCCL(ncclMemAlloc(&c->memory, bytes));
  TRY_CUDA(cudaMemset(c->memory, 0, bytes));
  empty<<<1, THREADS>>>((uint64_t *)((char *)c->memory + first), (bytes - first) / 8);
  TRY_CUDA(cudaGetLastError());
  TRY_CUDA(cudaDeviceSynchronize());
  TRY_NCCL(
      ncclCommWindowRegister(c->comm, c->memory, bytes, &c->v.window, NCCL_WIN_COLL_SYMMETRIC));
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
  c->v.words = (words + 1) / 2 * 2; /* rows of whole 16 bytes */
  c->v.epoch = 0;
  int status = words ? 0 : tsi_fail(TS_ERR_ARG, "collectives of no words");
  if (!status) status = fail_nccl(ncclCommUserRank(comm, &c->v.rank), "ncclCommUserRank");
  if (!status) status = fail_nccl(ncclCommCount(comm, &c->v.size), "ncclCommCount");
  if (!status)
    status = fail_cuda(cudaHostAlloc((void **)&c->v.refused, sizeof *c->v.refused,
                                     cudaHostAllocMapped | cudaHostAllocPortable),
                       "cudaHostAlloc");
  if (!status) *c->v.refused = 0;
  if (!status && ncclTeamLsa(comm).nRanks == c->v.size) status = share(c);
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
  if (c->v.refused) cudaFreeHost(c->v.refused);
  free(c);
  *collective = nullptr;
}

bool ts_gpu_collective_symmetric(const ts_gpu_collective *c)
{
  return c->symmetric;
}

static int allreduce_nccl(ts_gpu_collective *c, ts_ctype type, ts_cop op, const void *in, void *out,
                          size_t n, cudaStream_t stream)
{
  const ncclDataType_t types[TS_CTYPES] = {ncclDouble, ncclFloat, ncclInt64};
  const ncclRedOp_t ops[TS_COPS] = {ncclSum, ncclMax, ncclMin};
  TRY_NCCL(ncclAllReduce(in, out, n, types[type], ops[op], c->comm, stream));
  return 0;
}

int ts_gpu_collective_allreduce(ts_gpu_collective *c, ts_gpu_algorithm algorithm, ts_ctype type,
                                ts_cop op, const void *in, void *out, size_t n, cudaStream_t stream)
{
  if (*(volatile int *)c->v.refused)
    return tsi_fail(TS_ERR_ARG,
                    "a value with the bits 0x%llx was passed to a collective in mode "
                    "sentinel, where they mark an empty slot",
                    (unsigned long long)SENTINEL);
  if (n == 0) return 0;
  if (!c->symmetric || algorithm == TS_GPU_NCCL || type == TS_CTYPE_FLOAT || n > c->v.words)
    return allreduce_nccl(c, type, op, in, out, n, stream);
  /* every rank needs a part, or flow control would not hear of it */
  const bool two =
      (algorithm == TS_GPU_LL_TWO || algorithm == TS_GPU_SENTINEL_TWO) && n >= (size_t)c->v.size;
  const bool is_ll = algorithm == TS_GPU_LL_ONE || algorithm == TS_GPU_LL_TWO;
  const uint64_t *x = (const uint64_t *)in;
  uint64_t *y = (uint64_t *)out;
  c->v.epoch++;
  if (type == TS_CTYPE_DOUBLE && is_ll)
    launch<ll, double>(c->v, two, op, x, y, n, stream);
  else if (type == TS_CTYPE_DOUBLE)
    launch<sentinel, double>(c->v, two, op, x, y, n, stream);
  else if (is_ll)
    launch<ll, long long>(c->v, two, op, x, y, n, stream);
  else
    launch<sentinel, long long>(c->v, two, op, x, y, n, stream);
  TRY_CUDA(cudaGetLastError());
  return 0;
}
