/* A block's sum is read by its neighbour after a barrier of the block; cooperative groups, as in CUDA's examples.
gpu: h100
slow: cooperative_groups.h compiles for seconds

x, y = integers(128), zeros(2)
module.sums[2, 64](x, y)
same(y, x.reshape(2, 64).sum(1)[::-1])
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) sums(const int *x, int *y) {
  __shared__ int sum;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  atomicAdd(&sum, x[blockIdx.x * 64 + threadIdx.x]);  // other: race-cluster
#ifdef FAULT
  __syncthreads();
#else
  cluster.sync();
#endif
  if (threadIdx.x == 0)
    y[blockIdx.x] = *cluster.map_shared_rank(&sum, cluster.block_rank() ^ 1);  // fault: race-cluster
  cluster.sync();
}
