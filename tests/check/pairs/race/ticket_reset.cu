/* The tickets are reset by the block that takes the first one; in the twin by the one that takes the last.

x, parts, out, tickets = integers(256), gpu.zeros(4, np.int32), zeros(1), gpu.zeros(1, np.uint32)
for _ in range(2):
    module.total[4, 64](x, parts, tickets, out)
    same(out, [x.sum()])
*/
#ifdef FAULT
#define RESETS 0
#else
#define RESETS gridDim.x - 1
#endif
extern "C" __global__ void total(const int *x, int *parts, unsigned *tickets, int *out) {
  __shared__ int sum;
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * 64 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    ticket = atomicAdd(tickets, 1);  // other: race-global
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 32 && ticket == RESETS) *tickets = 0;  // fault: race-global
  if (threadIdx.x > 0 || ticket < gridDim.x - 1) return;
  int all = 0;
  for (int i = 0; i < gridDim.x; ++i) all += parts[i];
  *out = all;
}
