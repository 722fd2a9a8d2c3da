// Valid programs of cooperative groups and the asynchronous copies of CUDA's library.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
template <int N> __device__ int tile_sum(int v) {
  auto tile = cg::tiled_partition<N>(cg::this_thread_block());
  return cg::reduce(tile, v, cg::plus<int>());
}
extern "C" __global__ void reduces(const int *x, int *y) {
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int a = tile_sum<4>(x[i]) + tile_sum<16>(x[i]) + tile_sum<32>(x[i]);
  auto c = cg::coalesced_threads();
  if (t % 3 == 0) { auto k = cg::coalesced_threads(); a += cg::reduce(k, x[i], cg::greater<int>()); a += k.thread_rank(); }
  auto b = cg::binary_partition(cg::tiled_partition<32>(cg::this_thread_block()), x[i] & 1);
  a += cg::reduce(b, 1, cg::plus<int>());
  auto l = cg::labeled_partition(cg::coalesced_threads(), x[i] & 3);
  a += l.shfl(x[i], 0);
  y[i] = a + c.size();
}
extern "C" __global__ void large_tiles(const int *x, int *y) {
  __shared__ cg::block_tile_memory<256> room;
  auto tile = cg::tiled_partition<64>(cg::this_thread_block(room));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = cg::reduce(tile, x[i], cg::plus<int>());
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void tiles_in_reserved_memory(const int *x, int *y) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = cg::reduce(tile, x[i], cg::plus<int>());
}
#endif
extern "C" __global__ void scans(const int *x, int *y) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = cg::inclusive_scan(tile, x[i], cg::plus<int>()) + cg::exclusive_scan(tile, x[i]);
}
extern "C" __global__ void grid_steps(int *a, int *b, int n) {
  auto grid = cg::this_grid();
  int i = grid.thread_rank();
  for (int k = 0; k < 4; ++k) { b[i] = a[(i + 37) % n] + k; grid.sync(); int *c = a; a = b; b = c; }
  auto token = grid.barrier_arrive();
  int own = i * i;
  grid.barrier_wait(cg::grid_group::arrival_token(token));
  b[i] = own + a[n - 1 - i];
}
extern "C" __global__ void copies(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int s[256];
  auto block = cg::this_thread_block();
  int sum = 0;
  for (int k = 0; k < tiles; ++k) {
    cg::memcpy_async(block, s, x + (blockIdx.x * tiles + k) * 256, sizeof(int) * 256);
    cg::wait(block);
    sum += s[255 - threadIdx.x] + s[threadIdx.x ^ 64];
    block.sync();
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void staged(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int s[2][256];
  auto block = cg::this_thread_block();
  int sum = 0;
  cg::memcpy_async(block, s[0], x + blockIdx.x * tiles * 256, sizeof(int) * 256);
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      cg::memcpy_async(block, s[(k + 1) % 2], x + (blockIdx.x * tiles + k + 1) * 256, sizeof(int) * 256);
      cg::wait_prior<1>(block);
    } else cg::wait(block);
    sum += s[k % 2][255 - threadIdx.x];
    block.sync();
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void with_barrier(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int s[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  int sum = 0;
  for (int k = 0; k < tiles; ++k) {
    cuda::memcpy_async(block, s, x + (blockIdx.x * tiles + k) * 256, sizeof(int) * 256, bar);
    bar.arrive_and_wait();
    sum += s[255 - threadIdx.x];
    block.sync();
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void with_pipeline(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int s[2][256];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  pipe.producer_acquire();
  cuda::memcpy_async(block, s[0], x + blockIdx.x * tiles * 256, sizeof(int) * 256, pipe);
  pipe.producer_commit();
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[(k + 1) % 2], x + (blockIdx.x * tiles + k + 1) * 256, sizeof(int) * 256, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += s[k % 2][255 - threadIdx.x];
    pipe.consumer_release();
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void roles(const int *x, int *y, int tiles) {
  __shared__ alignas(16) int s[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const bool produces = threadIdx.x < 128;
  auto pipe = cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int t = threadIdx.x % 128, sum = 0;
  if (produces)
    for (int k = 0; k < tiles; ++k) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[k % 2][t], x + (blockIdx.x * tiles + k) * 128 + t, sizeof(int), pipe);
      pipe.producer_commit();
    }
  else {
    for (int k = 0; k < tiles; ++k) {
      pipe.consumer_wait();
      sum += s[k % 2][127 - t];
      pipe.consumer_release();
    }
    y[blockIdx.x * 128 + t] = sum;
  }
}
