/* All blocks of a cluster count in the first one's bins, which it may not have cleared yet.
gpu: h100

x, y = integers(256, 0, 8), zeros(8)
module.count[4, 64](x, y)
same(y, np.bincount(x, minlength=8))
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4) count(const int *x, int *y) {
  __shared__ int bins[8];
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;  // other: race-cluster
#ifdef FAULT
  __syncthreads();
#else
  cluster.sync();
#endif
  int *const first = cluster.map_shared_rank(bins, 0);
  atomicAdd(&first[x[blockIdx.x * 64 + threadIdx.x]], 1);  // fault: race-cluster
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x < 8) y[threadIdx.x] = bins[threadIdx.x];
}
