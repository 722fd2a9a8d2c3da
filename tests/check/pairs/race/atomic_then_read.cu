/* A counter is read while other threads still count.

x, count = integers(128), zeros(1)
module.positive[1, 128](x, count)
same(count, [(x > 0).sum()])
*/
extern "C" __global__ void positive(const int *x, int *count) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (x[threadIdx.x] > 0) atomicAdd(&n, 1);  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  if (threadIdx.x == 0) *count = n;  // fault: race-shared
}
