/* A block is reversed through shared memory; nobody waits for the others' elements.

x, y = integers(128), zeros(128)
module.reverse[1, 128](x, y)
same(y, x[::-1])
*/
extern "C" __global__ void reverse(const int *x, int *y) {
  __shared__ int s[128];
  s[threadIdx.x] = x[threadIdx.x];  // other: race-shared
#ifndef FAULT
  __syncthreads();
#endif
  y[threadIdx.x] = s[127 - threadIdx.x];  // fault: race-shared
}
