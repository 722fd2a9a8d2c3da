// Cooperative groups: tiles, and a barrier of the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void tiles(int* out) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int sum = cg::reduce(tile, int(threadIdx.x), cg::plus<int>());
  if (tile.thread_rank() == 0) out[threadIdx.x / 8] = sum;
}

__global__ void steps(int* x, int n) {
  const cg::grid_group grid = cg::this_grid();
  for (int step = 1; step < n; step *= 2) {
    const int i = grid.thread_rank();
    const int other = i >= step && i < n ? x[i - step] : 0;
    grid.sync();
    if (i < n) x[i] += other;
    grid.sync();
  }
}

int main() {
  int* out;
  int host[512];
  CUDA(cudaMalloc(&out, sizeof host));
  tiles<<<1, 64>>>(out);
  CUDA(cudaMemcpy(host, out, 8 * 4, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 8; ++k) CHECK(host[k] == 8 * (8 * k) + 28);
  for (int& x : host) x = 1;
  CUDA(cudaMemcpy(out, host, sizeof host, cudaMemcpyHostToDevice));
  int n = 512;
  void* arguments[] = {&out, &n};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(steps), dim3(4), dim3(128), arguments, 0, nullptr));
  CUDA(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 512; ++i) CHECK(host[i] == i + 1);
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(steps), dim3(1 << 20), dim3(128), arguments, 0, nullptr) ==
        cudaErrorCooperativeLaunchTooLarge);
  std::puts("ok");
}
