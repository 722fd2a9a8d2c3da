// libcu++: atomics of scopes, barriers, asynchronous copies; grid-wide synchronisation; shuffles and votes.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void staged(const int* in, int* out, int n) {
  __shared__ int tile[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  const int tiles = n / 128;
  int sum = 0;
  for (int load = 0, use = 0; use < tiles; ++use) {
    for (; load < tiles && load < use + 2; ++load) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tile[load % 2], in + load * 128, sizeof tile[0], pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += tile[use % 2][threadIdx.x ^ 1];
    block.sync();
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

__global__ void arrived(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int copy[256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&copy[threadIdx.x], &in[threadIdx.x], sizeof(int), barrier);
  auto token = barrier.arrive();
  barrier.wait(std::move(token));
  out[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

__global__ void relaxed(float* a, float* b, int n, int steps) {
  auto grid = cg::this_grid();
  for (int s = 0; s < steps; ++s) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      b[i] = (i > 0 ? a[i - 1] : 0) + (i + 1 < n ? a[i + 1] : 0);
    grid.sync();
    float* c = a;
    a = b, b = c;
  }
}

struct Accumulator {
  cuda::atomic<unsigned, cuda::thread_scope_device> count{0};
  cuda::std::array<unsigned, 4> votes{};
};

__global__ void counted(Accumulator* total, cuda::std::span<const int> in) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = i < in.size() ? in[i] : 0;
  const unsigned odd = __popc(__ballot_sync(~0u, value & 1));
  const int sum = cg::reduce(warp, value, cg::plus<int>());
  const int most = __reduce_max_sync(~0u, value);
  const int scanned = __shfl_up_sync(~0u, value, 1);
  if (warp.thread_rank() == 0) {
    total->count.fetch_add(odd, cuda::memory_order_relaxed);
    atomicAdd(&total->votes[0], unsigned(sum));
    atomicMax(&total->votes[1], unsigned(most));
  }
  atomicAdd(&total->votes[2], unsigned(warp.thread_rank() == 0 ? 0 : scanned));
  const cuda::std::complex<float> z(3, 4);
  if (i == 0) total->votes[3] = unsigned(abs(z) + cuda::std::get<1>(cuda::std::make_tuple(1, 2)));
}

int main() {
  const int n = 1024;
  std::vector<int> host(n), back(n);
  for (int i = 0; i < n; ++i) host[i] = (i * 37) % 101;
  int *in, *out;
  CUDA(cudaMalloc(&in, n * 4));
  CUDA(cudaMalloc(&out, n * 4));
  CUDA(cudaMemcpy(in, host.data(), n * 4, cudaMemcpyHostToDevice));
  staged<<<1, 128>>>(in, out, n);
  CUDA(cudaMemcpy(back.data(), out, 512, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 128; ++t) {
    int sum = 0;
    for (int k = 0; k < n / 128; ++k) sum += host[128 * k + (t ^ 1)];
    CHECK(back[t] == sum);
  }
  arrived<<<1, 256>>>(in, out);
  CUDA(cudaMemcpy(back.data(), out, 1024, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 256; ++t) CHECK(back[t] == host[255 - t]);

  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, relaxed, 128, 0));
  CHECK(blocks > 0);
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = float(i % 3);
  float *da, *db;
  int count = n, steps = 4;
  CUDA(cudaMalloc(&da, n * 4));
  CUDA(cudaMalloc(&db, n * 4));
  CUDA(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
  void* arguments[] = {&da, &db, &count, &steps};
  CUDA(cudaLaunchCooperativeKernel(relaxed, 3, 128, arguments, 0, nullptr));
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < n; ++i) b[i] = (i > 0 ? a[i - 1] : 0) + (i + 1 < n ? a[i + 1] : 0);
    std::swap(a, b);
  }
  CUDA(cudaMemcpy(b.data(), da, n * 4, cudaMemcpyDeviceToHost));
  CHECK(a == b);

  Accumulator* total;
  CUDA(cudaMallocManaged(&total, sizeof *total));
  new (total) Accumulator;
  counted<<<8, 128>>>(total, cuda::std::span<const int>(in, n));
  CUDA(cudaDeviceSynchronize());
  unsigned odd = 0, sum = 0, most = 0, scanned = 0;
  for (int i = 0; i < n; ++i) {
    odd += host[i] & 1, sum += host[i], most = std::max(most, unsigned(host[i]));
    if (i % 32) scanned += host[i - 1];
  }
  CHECK(total->count.load() == odd && total->votes[0] == sum && total->votes[1] == most);
  CHECK(total->votes[2] == scanned && total->votes[3] == 7);
  std::puts("ok");
}
