/* A thread clears a counter that the others may already have added to.

x, y = integers(64), zeros(1)
module.positive[1, 64](x, y)
same(y, [(x > 0).sum()])
*/
extern "C" __global__ void positive(const int *x, int *y) {
  __shared__ int count;
  const int t = threadIdx.x;
  if (t == 0) count = 0;  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  atomicAdd(&count, x[t] > 0);  // fault: race-shared  // also: uninitialised-shared
  __syncthreads();
  if (t == 0) *y = count;
}
