/* The last block adds the sums of all; the fence before the ticket is one within the block.

x, parts, out = integers(256), gpu.zeros(4, np.int32), zeros(1)
module.total[4, 64](x, parts, gpu.zeros(1, np.uint32), out)
same(out, [x.sum()])
*/
#ifdef FAULT
#define FENCE __threadfence_block
#else
#define FENCE __threadfence
#endif
extern "C" __global__ void total(const int *x, int *parts, unsigned *tickets, int *out) {
  __shared__ bool last;
  __shared__ int all;
  const int sum = __reduce_add_sync(~0u, x[blockIdx.x * 64 + threadIdx.x]);
  if (threadIdx.x == 0) all = 0;
  if (threadIdx.x % 32 == 0) atomicAdd(parts + blockIdx.x, sum);  // also: race-global
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] *= 2;  // other: race-global
    FENCE();
    last = atomicAdd(tickets, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < gridDim.x) atomicAdd(&all, parts[threadIdx.x] / 2);  // fault: race-global
  __syncthreads();
  if (threadIdx.x == 0) *out = all;
}
