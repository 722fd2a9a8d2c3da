// A launch in clusters, by attributes, whose CTAs read each other's shared memory.
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void exchange(int* out) {
  __shared__ int mine;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = 100 + blockIdx.x;
  cluster.sync();
  const int* other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  if (threadIdx.x == 0) out[blockIdx.x] = *other;
  cluster.sync();
}

int main() {
  int *out, host[8];
  CUDA(cudaMalloc(&out, sizeof host));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA(cudaLaunchKernelEx(&config, exchange, out));
  CUDA(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) CHECK(host[i] == 100 + (i ^ 1));
  std::puts("ok");
}
