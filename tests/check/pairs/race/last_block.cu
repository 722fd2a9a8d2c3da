/* The last block adds the sums of all; no fence orders a block's sum before its ticket.

x, parts, out = integers(256), gpu.zeros(4, np.int32), zeros(1)
module.total[4, 64](x, parts, gpu.zeros(1, np.uint32), out)
same(out, [x.sum()])
*/
extern "C" __global__ void total(const int *x, int *parts, unsigned *tickets, int *out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * 64 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x > 0) return;
  parts[blockIdx.x] = sum;  // other: race-global
#ifndef FAULT
  __threadfence();
#endif
  if (atomicAdd(tickets, 1) < gridDim.x - 1) return;
  __threadfence();
  int all = 0;
  for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // fault: race-global
  *out = all;
}
